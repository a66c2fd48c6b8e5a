"""What limits the figures of a comparison: intervals, and the notes beside them."""

from types import SimpleNamespace

import numpy as np
import pytest
from leaderboard_support import draw

from isrlearn import compare
from isrlearn.leaderboard import Interval
from isrlearn.leaderboard._bootstrap import difference_interval, interval, worst_group_draws
from isrlearn.leaderboard._recommendation import recommend

QUICK = {"methods": ["erm"], "n_seeds": 1, "n_draws": 20}


def test_draws_of_a_worst_group_are_mirrored_and_hold_the_estimate(random):
    draws = random.uniform(0.3, 0.5, 1001)
    low, high = np.quantile(draws, [0.025, 0.975])
    found = interval(0.42, draws)
    assert found == pytest.approx((0.42, 0.84 - high, 0.84 - low))
    below = interval(0.6, draws)  # all draws are lower than the estimate
    assert below.low == 0.6
    assert below.high == pytest.approx(1.2 - low)
    assert interval(0.98, draws).high == 1.0


def test_draws_of_a_difference_are_moved_to_the_estimate(random):
    draws = random.normal(0.1, 0.02, 1001)
    low, middle, high = np.quantile(draws, [0.025, 0.5, 0.975])
    found = difference_interval(-0.05, draws)
    assert found == pytest.approx((-0.05, low - middle - 0.05, high - middle - 0.05))


def test_intervals_of_small_groups_hold_the_truth(random):
    """Six groups of 30 rows, all right in 70 %: plain quantiles hold it in a third of cases."""
    codes, truth, held = np.repeat(np.arange(6), 30), 0.7, 0
    for repetition in range(100):
        right = random.random((len(codes), 1)) < truth
        tested = np.ones_like(right)
        draws = worst_group_draws(right, tested, codes, n_draws=200, random_state=repetition)
        found = interval((np.bincount(codes, right[:, 0]) / 30).min(), draws[:, 0])
        held += found.low <= truth <= found.high
    assert held >= 80


@pytest.mark.parametrize(
    ("lead", "tied"),
    [
        (Interval(0.1, 0.01, 0.2), False),
        (Interval(0.1, 0.0, 0.2), True),
        (Interval(0.1, -0.1, 0.2), True),
        (Interval(0.0, 0.0, 0.0), True),
    ],
)
def test_a_lead_counts_only_beyond_chance(lead, tied):
    worst = Interval(0.8, 0.7, 0.9)
    about = {"worst_group": worst, "worst": "1, a", "groups": (0.8, 0.9)}
    entries = [SimpleNamespace(key=k, title=k, **about) for k in ("isr", "erm")]
    found = recommend(entries, [lambda a, b: lead if b == "erm" else None], "here", "average")
    assert found.tied == (("erm",) if tied else ())
    assert found.fit_options == "--method isr"


def test_notes_name_small_groups_lonely_classes_and_rows_without_environment(random):
    X, y, e, split = draw(random)
    clean = compare(X, y, environments=e, split=split, **QUICK)
    assert all("fewer than 10" in note for note in clean.notes)
    test = np.flatnonzero(split == 2)
    strange, known = y.copy(), e.astype(object)
    strange[test[:3]] = 7
    known[test[3:8]] = None
    notes = " ".join(compare(X, strange, environments=known, split=split, **QUICK).notes)
    assert "never predicted, of class [7]" in notes
    assert f"5 of {len(test)} test rows have no environment" in notes
    assert "fewer than 10 test rows" in notes
    assert "7, " in notes
