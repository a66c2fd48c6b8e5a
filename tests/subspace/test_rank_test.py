"""The sequence of tests, on evidence made by hand."""

import numpy as np
import pytest

from isrlearn.moments._evidence import Evidence, Frame
from isrlearn.subspace._rank_statistics import (
    block_size,
    mean_scores,
    more_extreme,
    p_value,
    partial_traces,
    standardise,
)
from isrlearn.subspace._rank_test import _Test, _verdict, choose_rank

Q = 6


def noise(random, n):
    """Return n draws of evidence of two environments without differences."""
    half = random.normal(size=(n, Q, Q)) / np.sqrt(2)
    D = (half + np.swapaxes(half, 1, 2)) / np.sqrt(2)
    return Evidence(random.normal(size=(n, 1, Q)), np.stack([D, -D], axis=1))


def sequence(
    random, *, means=(), changes=(), order=range(Q), orders="both", alpha=0.005, most=Q - 1
):
    """Choose the rank where means and covariances differ along axes, removed in some order."""
    # Quieter than the null, so that no test here fails by an error of the first kind.
    observed = Evidence(*(0.3 * part[0] for part in noise(random, 1)))
    for axis, size in means:
        observed.means[0, axis] += size
    for axis, size in changes:
        observed.covariances[:, axis, axis] += np.array([size, -size])
    return choose_rank(
        observed,
        noise(random, 199),
        Frame(np.eye(Q), np.eye(Q), Q),
        lambda rank: np.eye(Q)[list(order)[:rank]],
        alpha=alpha,
        most=most,
        n_rows=1e9,
        orders=orders,
    )


def blocks(choice):
    return [step.block for step in choice.steps]


def test_each_direction_that_differs_is_found_and_no_more(random):
    found = sequence(random, means=[(0, 40.0)], changes=[(1, 60.0)])
    assert found.rank == 2
    assert found.steps[-1].p_value > 0.005
    assert len(found.p_values) == len(found.steps)


def test_what_covariances_show_at_once_is_removed_at_once(random):
    assert blocks(sequence(random, changes=[(i, 40.0) for i in range(3)])) == [3, 0]


def test_the_block_is_completed_after_means_took_some_of_it(random):
    together = [(i, 30.0) for i in range(4)]
    found = sequence(random, means=[(0, 50.0)], changes=together)
    assert blocks(found)[0] == 1
    assert found.rank == 4


def test_beyond_the_first_block_directions_are_taken_one_by_one(random):
    strong, weak = [(0, 900.0)], [(i, 25.0) for i in (1, 2, 3)]
    assert blocks(sequence(random, changes=strong + weak)) == [1, 1, 1, 1, 0]


def test_a_difference_that_the_estimate_does_not_take_is_counted_once(random):
    """Removed are other directions than the one that differs: it must not show again and again."""
    found = sequence(random, changes=[(0, 60.0)], order=[5, 4, 3, 2, 1])
    assert blocks(found) == [1, 0]


@pytest.mark.parametrize("orders", ["means", "covariances"])
def test_only_the_orders_asked_for_are_tested(random, orders):
    found = sequence(random, means=[(0, 40.0)], changes=[(1, 60.0)], order=[0, 1], orders=orders)
    step = found.steps[0]
    assert np.isnan(step.p_covariance if orders == "means" else step.p_mean)
    assert blocks(sequence(random, means=[(0, 40.0)], orders="covariances")) == [0]
    assert blocks(sequence(random, changes=[(0, 60.0)], orders="means")) == [0]


def test_beyond_the_first_block_no_permutation_may_reach_the_data(random):
    found = sequence(random, changes=[(0, 900.0), (1, 60.0)], alpha=0.2)
    assert [step.level for step in found.steps] == [0.2, 1 / 200, 1 / 200]
    by_means = sequence(random, means=[(0, 90.0), (1, 40.0)], alpha=0.2)
    assert [step.level for step in by_means.steps[:2]] == [0.2, 0.2]


def test_no_more_is_removed_than_there_is(random):
    found = sequence(random, changes=[(i, 40.0) for i in range(4)], most=2)
    assert found.rank == 2
    assert blocks(found)[-1] == 0


@pytest.mark.parametrize("true", [1, 2, 3, 5, 10])
def test_the_block_is_as_large_as_the_common_change(random, true):
    """In twenty dimensions, with noise of the size that it has in units of itself."""
    half = random.normal(size=(20, 20)) / np.sqrt(2)
    D = (half + half.T) / np.sqrt(2) + np.diag(np.repeat([25.0, 0.0], [true, 20 - true]))
    assert block_size(partial_traces(np.stack([D, -D])[None])[0]) == true


def test_partial_traces_are_those_of_the_best_subspace(random):
    D = noise(random, 1).covariances
    values = np.linalg.eigvalsh(D[0, 0]) * np.sqrt(2)  # the contrast (1, -1) / sqrt(2)
    for b, trace in enumerate(partial_traces(D)[0], start=1):
        best = max(values[-b:].sum(), -values[:b].sum())
        np.testing.assert_allclose(trace, best / np.sqrt(b))


def test_ties_count_against_the_data():
    assert p_value(np.array([1.0, 1.0, 0.0, 2.0])) == 0.75


@pytest.mark.parametrize(
    ("p_value", "p_mean", "shared", "rank", "shown", "level", "size"),
    [
        (0.01, 0.01, 3, 0, 3, 0.05, 1),  # means name their directions one by one
        (0.01, 0.50, 3, 0, 3, 0.05, 3),  # covariances show a block at once
        (0.01, 0.50, 1, 2, 5, 0.05, 3),  # what is left of it may look smaller, or larger
        (0.01, 0.50, 4, 2, 5, 0.05, 4),
        (0.50, 0.50, 1, 2, 5, 0.05, 3),  # it is completed also where it shows no more
        (0.01, 0.50, 3, 5, 5, 0.005, 0),  # beyond it p must be the least there is
        (0.005, 0.50, 3, 5, 5, 0.005, 1),
        (0.01, 0.01, 3, 5, 5, 0.05, 1),  # but not where means differ
        (0.50, 0.50, 3, 0, 0, 0.05, 0),
    ],
)
def test_the_verdict_of_a_test(p_value, p_mean, shared, rank, shown, level, size):
    test = _Test(p_value, p_mean, 0.5, shared)
    assert _verdict(test, rank, shown, 0.05, 0.005) == (level, size)


@pytest.mark.parametrize(
    ("squares", "best"),
    [
        ([25, 26.9, 0, 0], 1),  # of four directions one has 3 parameters, two or more have 4
        ([25, 27.1, 0, 0], 2),
        ([25, 0, 0, 26.9], 1),
        ([25, 0, 0, 27.1], 4),
    ],
)
def test_a_parameter_must_explain_two(squares, best):
    assert block_size(np.sqrt(squares)) == best


def test_statistics_that_differ_by_rounding_are_the_same(random):
    same = 5 * (1 + 1e-7 * random.normal(size=(50, 2)))
    np.testing.assert_array_equal(standardise(same), 0)
    np.testing.assert_allclose(standardise(random.normal(size=(50, 2))).std(axis=0), 1)


def test_of_two_statistics_the_rarer_decides_whatever_their_tails(random):
    light, heavy = random.normal(size=500), random.standard_cauchy(size=500)
    light[0], heavy[0] = 6.0, 0.0  # beyond all of its own, and nothing against the other's
    assert more_extreme([light, heavy]) < 0.01
    assert np.mean(np.maximum(light, heavy) >= 6.0) > 0.01
    assert more_extreme([light]) == p_value(light)


def test_the_smaller_of_two_p_values_is_tested_at_its_level(random):
    small = [more_extreme([random.normal(size=100) for _ in range(2)]) for _ in range(4000)]
    assert 0.03 < np.mean(np.array(small) <= 0.05) < 0.07
    assert min(small) == 0.01


@pytest.mark.parametrize("q", [8, 40])
def test_means_show_no_more_than_their_contrasts(random, q):
    """Two contrasts show two directions; of a third nothing is left but rounding errors."""
    contrasts = np.linalg.qr(random.normal(size=(4, 4)))[0][:, :2]
    strong = 100 * contrasts @ random.normal(size=(2, q))
    noise = np.array([contrasts @ random.normal(size=(2, q)) for _ in range(99)])
    means = np.concatenate([(strong + noise[0])[None], noise])
    removed = np.linalg.svd(means[0])[2][:2]
    assert p_value(mean_scores([means], np.empty((0, q)))) == 0.01
    assert p_value(mean_scores([means], removed)) > 0.01


def test_in_many_coordinates_the_next_direction_is_not_hidden_by_the_first(random):
    """Without the count of Bartlett the nulls have more noise left than the data."""
    hidden, seen = 0, 0
    for _ in range(20):
        noise = random.normal(size=(200, 6, 60))
        means = noise.copy()
        means[0] += 60 * np.eye(6, 60) * (np.arange(6)[:, None] < 4)
        p = p_value(mean_scores([means], np.linalg.svd(means[0])[2][:4]))
        hidden += p > 0.9
        seen += p < 0.1
    assert hidden <= 8  # 2 are expected; nearly all without the count
    assert seen <= 8


def test_a_null_that_differs_by_rounding_is_as_extreme():
    """Nulls are in single precision: one that is the data again may lie just below."""
    assert p_value(np.array([2.0, 2.0 - 1e-7, 1.0, 0.0])) == 0.5
    assert more_extreme([np.array([2.0, 2.0 - 1e-7, 1.0, 0.0])]) == 0.5
