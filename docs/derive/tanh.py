#!/usr/bin/env python3
"""Prints the coefficients of tanh in ir/math/exp.c: e^r - 1 = r + r^2 P(r), |r| <= ln(2) / 2. The result is y / (y + 2) of y = 2^n (e^r - 1) + 2^n - 1,
and an error of P counts as it does there, for the n where it counts most: n = 0 has no negative r. By lawson.py, each coefficient rounded to f32 from the
highest power down and the rest fitted again. Needs numpy and mpmath."""
import mpmath
import numpy as np

from lawson import fit

DEGREE, POINTS = 4, 2400
mpmath.mp.dps = 30
r = float(mpmath.log(2)) / 2 * 1.0005 * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
r = r[np.abs(r) > 1e-5]
p = np.array([float(mpmath.expm1(mpmath.mpf(v))) for v in r])
target = np.array([float((mpmath.expm1(mpmath.mpf(v)) - mpmath.mpf(v)) / mpmath.mpf(v) ** 2) for v in r])
counts = np.zeros_like(r)
for n in range(6):
    y = 2**n * p + 2**n - 1
    counts = np.maximum(counts, np.where((n > 0) | (r > 0), np.abs(2**n * r**2 / y * 2 / (y + 2)), 0))
powers, rest, found = list(range(DEGREE + 1)), target.copy(), []
for power in range(DEGREE, -1, -1):
    value = np.float32(fit(r, 1 / counts, powers, rest, 150)[1][-1])
    rest, powers = rest - float(value) * r**power, powers[:-1]
    found.append(float(value).hex())
print("in f32: 2^%.1f" % np.log2((np.abs(rest) * counts).max()))
print("\n".join(found))
