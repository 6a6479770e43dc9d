"""Normalisations and activations."""
import numpy as np


def cases(case):
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def erf(x):
        from math import erf as one

        return np.vectorize(one)(x)

    x, bias = normal(3, 5), normal(5)
    wide = x.astype(float)
    case("gelu", "Gelu", [x], [wide * 0.5 * (1 + erf(wide / np.sqrt(2)))])
