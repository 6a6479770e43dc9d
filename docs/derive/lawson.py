"""Relative least maxima by Lawson's reweighting (C. L. Lawson, 1961), for the scripts beside it. Needs numpy."""
import numpy as np


def fit(x, q, powers, target, rounds):
    """The largest error beside q and the coefficients, lowest power first, of the polynomial in x of these powers that is nearest to the target at points x."""
    a, b = np.stack([x**p for p in powers], 1) / q[:, None], target / q
    weight, best = np.full(len(x), 1 / len(x)), None
    for _ in range(rounds):
        s = np.sqrt(weight)
        c = np.linalg.lstsq(a * s[:, None], b * s, rcond=None)[0]
        error = np.abs(a @ c - b)
        if best is None or error.max() < best[0]:
            best = (error.max(), c)
        weight = weight * (error + error.max() * 1e-3)
        weight /= weight.sum()
    return best
