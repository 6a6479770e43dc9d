"""quantised"""
import numpy as np


def cases(case):
    pass
