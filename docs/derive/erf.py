#!/usr/bin/env python3
"""Prints the coefficients of ir/math/erf.c: erf(x) = x Q(t), t = S x^2 - 1, |x| <= 3.93, relative minimax by lawson.py,
each coefficient rounded to f32 from the highest power down and the rest fitted again.
Needs numpy and mpmath."""
import mpmath
import numpy as np

from lawson import fit

DEGREE, POINTS, LIMIT = 16, 1200, np.float32(3.93)
mpmath.mp.dps = 30
S = np.float32(2 / float(LIMIT) ** 2)
t = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
roots = [mpmath.sqrt(mpmath.mpf(float(v) + 1) / float(S)) for v in t]
q = np.array([float(mpmath.erf(r) / r) for r in roots])
print("minimax: 2^%.1f" % np.log2(fit(t, q, list(range(DEGREE + 1)), q, 200)[0]))
powers, rest, found = list(range(DEGREE + 1)), q.copy(), []
for power in range(DEGREE, -1, -1):
    value = np.float32(fit(t, q, powers, rest, 60)[1][-1])
    rest, powers = rest - float(value) * t**power, powers[:-1]
    found.append(float(value).hex())
print("S", float(S).hex())
print("in f32: 2^%.1f" % np.log2((np.abs(rest) / q).max()))
print("\n".join(found))
