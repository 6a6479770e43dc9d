"""The cheap forms of tanh and erf: f(x) = x P(x^2) / Q(x^2), Q(0) = 1, least squares reweighted towards minimax (Lawson). Needs numpy."""
import math
import struct

import numpy as np


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def fit(name, f, reach, p_degree, q_degree):
    nodes = 4000
    x = 0.5 * reach * (1 - np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)) + 1e-9
    y = np.array([f(t) / t for t in x])
    z = (x / reach) ** 2
    weight, q, best = np.ones(nodes) / nodes, np.ones(nodes), None
    for _ in range(300):
        w = np.sqrt(weight) / (q * y)
        columns = np.hstack([z[:, None] ** np.arange(p_degree + 1), -y[:, None] * z[:, None] ** np.arange(1, q_degree + 1)])
        c, *_ = np.linalg.lstsq(columns * w[:, None], y * w, rcond=None)
        p = sum(c[i] * z**i for i in range(p_degree + 1))
        q = 1 + sum(c[p_degree + i] * z**i for i in range(1, q_degree + 1))
        error = np.abs(p / q / y - 1)
        if best is None or error.max() < best[0]:
            best = (error.max(), c.copy())
        weight = weight * (0.02 * error.max() + error)
        weight /= weight.sum()
    worst, c = best
    print(name, "relative error 2^%.1f" % math.log2(worst))
    print("  P", [f32(c[i] / reach ** (2 * i)).hex() for i in range(p_degree + 1)])
    print("  Q", ["0x1p+0"] + [f32(c[p_degree + i] / reach ** (2 * i)).hex() for i in range(1, q_degree + 1)])


fit("tanh", math.tanh, 9.0, 4, 4)
fit("erf", math.erf, 3.92, 5, 5)
