"""Do the intervals of the leaderboard hold what they promise? Coverage in simulated test rows.

python benchmarks/intervals.py > benchmarks/results/intervals.txt

Rows of each group are right with a known probability, so the true worst group is known. Shares of
400 repetitions in which an interval holds it: the one we use, and the plain quantiles of the draws.
"""

import numpy as np

from isrlearn.leaderboard._bootstrap import (
    TAILS,
    difference_interval,
    interval,
    worst_group_draws,
)

REPETITIONS, DRAWS, ALIKE = 400, 300, 0.7
CASES = (
    ((0.85, 0.85, 0.9, 0.95), (0.84, 0.86, 0.9, 0.9), (300, 300, 600, 600)),
    ((0.7,) * 6, (0.7,) * 6, (30,) * 6),
    ((0.6, 0.9, 0.9, 0.9), (0.8, 0.8, 0.8, 0.8), (50,) * 4),
    ((0.4, 0.42, 0.45, 0.6), (0.3, 0.5, 0.5, 0.6), (140, 150, 350, 600)),
    ((0.8,) * 12, (0.8,) * 12, (40,) * 12),
)


def right_rows(truth, sizes, random):
    """Draw which rows two methods get right, alike in 70 % of the rows."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    first = random.random(len(codes))
    second = np.where(random.random(len(codes)) < ALIKE, first, random.random(len(codes)))
    shares = np.stack([np.asarray(t)[codes] for t in truth], axis=1)
    return np.stack([first, second], axis=1) < shares, codes


def holds(low, high, truth):
    """Return whether an interval holds the truth, rounding aside."""
    return low - 1e-12 <= truth <= high + 1e-12


print("worst group: ours, quantiles; difference: ours, quantiles")
for a, b, sizes in CASES:
    random, hits = np.random.default_rng(0), np.zeros(4)
    for repetition in range(REPETITIONS):
        right, codes = right_rows((a, b), sizes, random)
        tested = np.ones_like(right)
        draws = worst_group_draws(right, tested, codes, n_draws=DRAWS, random_state=repetition)
        means = [np.bincount(codes, right[:, m]) / np.bincount(codes) for m in (0, 1)]
        worst = [float(mean.min()) for mean in means]
        apart = draws[:, 0] - draws[:, 1]
        found = [
            interval(worst[0], draws[:, 0])[1:],
            np.quantile(draws[:, 0], TAILS),
            difference_interval(worst[0] - worst[1], apart)[1:],
            np.quantile(apart, TAILS),
        ]
        truths = (min(a), min(a), min(a) - min(b), min(a) - min(b))
        hits += [holds(*ends, truth) for ends, truth in zip(found, truths, strict=True)]
    print(f"{len(sizes)} groups of {min(sizes)} rows or more:", *(hits / REPETITIONS).round(3))
