"""Blocks of times to what the tables say: minima, medians, the ratio of two sides with its interval, the noise of one side against itself."""
import math
import random


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def minima(blocks):
    """The least time of each block; None where a side sat a block out."""
    return [min(b) if b else None for b in blocks]


def ratio_interval(theirs, ours, share=0.9, rounds=2000):
    """theirs / ours with an interval: the geometric mean of the blocks' ratios of minima, and where `share` of resampled means lie.

    Both sides of a block were timed one after the other, so what slows the machine for seconds falls out of a block's ratio.
    """
    pairs = [t / o for t, o in zip(minima(theirs), minima(ours)) if t and o]
    if not pairs:
        return None
    draw = random.Random(1)
    means = sorted(geometric_mean([draw.choice(pairs) for _ in pairs]) for _ in range(rounds))
    edge = int((1 - share) / 2 * rounds)
    return {"ratio": geometric_mean(pairs), "low": means[edge], "high": means[rounds - 1 - edge], "blocks": len(pairs)}


def noise(blocks):
    """A/A: the minimum of the odd blocks against that of the even ones, as a fraction."""
    least = [m for m in minima(blocks) if m]
    if len(least) < 2:
        return float("nan")
    a, b = min(least[0::2]), min(least[1::2])
    return max(a, b) / min(a, b) - 1


def verdict(interval):
    """A row fails where the whole interval is below 1."""
    if not interval:
        return "no peer"
    return "fails" if interval["high"] < 1 else "ahead" if interval["low"] > 1 else "tie"
