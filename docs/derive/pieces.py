#!/usr/bin/env python3
"""Prints the tables of ir/math/pieces.c: erf and tanh in sixteen pieces, a polynomial each, relative minimax by
lawson.py, each coefficient rounded to f32 from the highest power down and the rest fitted again.
pieces_check.c holds them to every float. Needs numpy and mpmath."""
import mpmath
import numpy as np

from lawson import fit

POINTS, PIECES = 200, 16
mpmath.mp.dps = 30


def piece(f, degree, first, last, fixed, powers):
    """Coefficients of r = x - middle, x from `first` to `last`, the highest first; those that are not among `powers` are 0 but for what is `fixed`."""
    middle = 0.0 if fixed else MIDDLE(first, last)
    x = (first + last) / 2 + (last - first) / 2 * np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    r, y = x - middle, np.array([float(f(mpmath.mpf(float(v)))) for v in x])
    half, rest, left, found = np.abs(r).max(), y.copy(), list(powers), dict(fixed)
    for power, value in fixed.items():
        rest = rest - value * r**power
    while left:
        value = np.float32(fit(r / half, y, left, rest, 60)[1][-1] / half ** left[-1])
        rest = rest - float(value) * r ** left[-1]
        found[left.pop()] = float(value)
    return [found.get(power, 0.0) for power in range(degree, -1, -1)], (np.abs(rest) / y).max()


def show(name, pieces):
    columns = list(zip(*(found for found, _ in pieces)))
    print("/* in f32: 2^%.1f */" % np.log2(max(error for _, error in pieces)))
    print("static const float %s[%d][%d] = {" % (name, len(columns), PIECES))
    for column in columns:
        print("    {%s}," % ", ".join(literal(c) for c in column))
    print("};")


def literal(c):
    mantissa, exponent = c.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return "%sp%sf" % (mantissa, exponent)


# erf: pieces of 1/4 around multiples of it
MIDDLE = lambda first, last: (first + last) / 2
erf = [piece(mpmath.erf, 5, 0, 0.125, {0: 0.0}, [1, 3, 5])]
erf += [piece(mpmath.erf, 5, n / 4 - 0.125, n / 4 + 0.125, {}, range(6)) for n in range(1, PIECES)]
erf[-1][0][-1] = float(np.nextafter(np.float32(erf[-1][0][-1]), np.float32(1)))  # one place more: its end, at which larger arguments are held, is 1
show("ERF", erf)

# tanh: u = x + 1 in 1..16, four pieces an octave, numbered by the last two bits of the exponent and the first two of the fraction
MIDDLE = lambda first, last: first
tanh = {}
for octave in range(4):
    for quarter in range(4):
        first, last = 2.0**octave * (1 + quarter / 4) - 1, 2.0**octave * (1 + (quarter + 1) / 4) - 1
        number = ((127 + octave) & 3) << 2 | quarter
        if first >= 9:  # half a place from 1
            tanh[number] = [0.0] * 6 + [1.0], 2.0**-25
        elif first == 0:
            tanh[number] = piece(mpmath.tanh, 6, first, last, {0: 0.0, 1: 1.0}, range(2, 7))
        else:
            tanh[number] = piece(mpmath.tanh, 6, first, last, {}, range(7))
show("TANH", [tanh[n] for n in range(PIECES)])
