#!/usr/bin/env python3
"""Prints the coefficients of ir/math/erf.c: erf(x) = x Q(t), t = S x^2 - 1, |x| <= 3.93, relative minimax by Lawson's reweighting
(C. L. Lawson, 1961), each coefficient rounded to f32 from the highest power down and the rest fitted again.
Needs numpy and mpmath."""
import mpmath
import numpy as np

DEGREE, POINTS, LIMIT = 16, 1200, np.float32(3.93)
mpmath.mp.dps = 30
S = np.float32(2 / float(LIMIT) ** 2)
t = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
roots = [mpmath.sqrt(mpmath.mpf(float(v) + 1) / float(S)) for v in t]
q = np.array([float(mpmath.erf(r) / r) for r in roots])


def fit(powers, target, rounds):
    a, b = np.stack([t**p for p in powers], 1) / q[:, None], target / q
    weight, best = np.full(POINTS, 1 / POINTS), None
    for _ in range(rounds):
        s = np.sqrt(weight)
        c = np.linalg.lstsq(a * s[:, None], b * s, rcond=None)[0]
        error = np.abs(a @ c - b)
        if best is None or error.max() < best[0]:
            best = (error.max(), c)
        weight = weight * (error + error.max() * 1e-3)
        weight /= weight.sum()
    return best


print("minimax: 2^%.1f" % np.log2(fit(list(range(DEGREE + 1)), q, 200)[0]))
powers, rest, found = list(range(DEGREE + 1)), q.copy(), []
for power in range(DEGREE, -1, -1):
    value = np.float32(fit(powers, rest, 60)[1][-1])
    rest, powers = rest - float(value) * t**power, powers[:-1]
    found.append(float(value).hex())
print("S", float(S).hex())
print("in f32: 2^%.1f" % np.log2((np.abs(rest) / q).max()))
print("\n".join(found))
