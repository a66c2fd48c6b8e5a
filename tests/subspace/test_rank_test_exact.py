"""The tests of the rank by their definitions, and the sequence on tests that are made up."""

from xml.etree import ElementTree

import numpy as np
import pytest

from isrlearn import RankChoice, RankStep
from isrlearn.moments._evidence import FEW_COORDINATES, CellEvidence, Evidence, Frame
from isrlearn.subspace._rank_statistics import (
    EQUAL,
    TIE,
    _used_up_contrasts,
    contrast,
    mean_scores,
    more_extreme,
    p_value,
    standardise,
)
from isrlearn.subspace._rank_test import RankTest, _Test, _Tests, choose_rank

MANY = FEW_COORDINATES + 1


def z_scores(columns):
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


# --- statistics


@pytest.mark.parametrize(("m", "q"), [(3, 7), (7, 7), (9, 7)])
def test_scores_of_means_are_those_of_the_scatter_that_is_left(random, m, q):
    means = random.normal(size=(40, m, q))
    removed = random.normal(size=(2, q))
    away = np.eye(q) - np.linalg.pinv(removed) @ removed
    sizes = np.linalg.svd(means @ away, compute_uv=False) ** 2
    expected = z_scores(np.cbrt(np.stack([sizes[:, 0], sizes.sum(axis=1)], axis=1)))
    found = mean_scores([means[:1], means[1:]], removed)
    np.testing.assert_allclose(found, expected.max(axis=1), atol=1e-8)


def test_what_rounding_left_counts_as_nothing():
    """Squares of a million: a part of 1e-11 is rounding, one of 1e-6 is not."""
    left = np.array([1.0, 2.0, 0.5, 1e-11 * 1e6, 1e-6 * 1e6])
    means = np.zeros((5, 1, 2))
    means[:, 0, 0], means[:, 0, 1] = np.sqrt(1e6), np.sqrt(left)
    assert 1e-11 < EQUAL**2 < 1e-6
    expected = z_scores(np.cbrt(np.where(left < 1e-4, 0.0, left)))
    found = mean_scores([means], np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("left", [0.0, 3.0, -3.0])
def test_coordinates_in_which_nothing_differs_change_nothing(random, left):
    """Also where contrasts are used up or not, in more cells than coordinates and in fewer."""
    means = random.normal(size=(60, MANY + 4, MANY))
    means[0] += 1e3 * np.eye(MANY + 4, MANY) * (np.arange(MANY + 4)[:, None] < 3)
    means[0, :3, 3:] = left
    removed = np.eye(3, MANY)
    wide, wide_removed = (np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, 9)]) for a in (means, removed))
    found = mean_scores([means], removed)
    np.testing.assert_allclose(found, mean_scores([wide], wide_removed), atol=1e-6)


@pytest.mark.parametrize(
    ("nulls_before", "data_left", "nulls_left", "gone"),
    [
        ([20.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0]),  # 10^2 stands out from 20, 3^2 does not
        ([8.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0, 1]),
        ([8.0, 1.0], [5.0, 5.0], [10.0, 0.0], [0, 1]),  # nothing is left: less than 9 of 10 nulls
        ([8.0, 1.0], [9.5, 5.0], [10.0, 0.0], [1]),
        ([8.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0, 1]),  # as much as the nulls
        ([8.0, 1.0], [5.0, 5.0], [0.0, 0.0], []),
        ([200.0, 1.0], [0.0, 0.0], [1.0, 1.0], []),
    ],
)
def test_contrasts_are_used_up_where_they_stood_out_and_are_gone(
    nulls_before, data_left, nulls_left, gone
):
    inside = np.array([[10.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    before = np.array([100 * np.eye(3), *(np.diag([size, 0.5, 0.1]) for size in nulls_before)])
    left = np.array([np.diag([*data_left, 0.0]), *(size * np.eye(3) for size in nulls_left)])
    expected = np.zeros((3, 3))
    expected[gone, gone] = 1.0

    def squares(contrasts):
        return np.einsum("ic,bij,jc->bc", contrasts, left, contrasts)

    found = _used_up_contrasts(inside, before, squares, MANY)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-12)
    assert _used_up_contrasts(inside, before, squares, FEW_COORDINATES).shape == (3, 0)


def test_columns_are_put_on_one_scale_each_for_itself(random):
    columns = random.normal(size=(50, 3)) * [1.0, 5.0, 0.1] + [0.0, 30.0, -7.0]
    np.testing.assert_allclose(standardise(columns), z_scores(columns), atol=1e-9)
    columns[:, 1] = 30.0
    np.testing.assert_array_equal(standardise(columns)[:, 1], 0)


def test_a_tie_is_what_differs_by_no_more_than_rounding():
    just, beyond = np.array([0.0, -TIE]), np.array([0.0, -1.6 * TIE])
    assert p_value(just) == 1.0
    assert p_value(beyond) == more_extreme([beyond]) == 0.5
    assert more_extreme([]) == 1.0


@pytest.mark.parametrize("n_environments", [2, 4, 25, 26, 40])
def test_no_contrast_of_environments_differs_more(random, n_environments):
    differences = 1e-3 * random.normal(size=(3, n_environments, 5, 5))
    for found, own in zip(contrast(differences), differences, strict=True):
        _, sizes, rows = np.linalg.svd(own.reshape(n_environments, -1))
        expected = (sizes[0] * rows[0]).reshape(5, 5)
        np.testing.assert_allclose(found * np.sign(np.sum(found * expected)), expected, atol=1e-12)


def decomposed(monkeypatch):
    """The shapes of all matrices whose eigenvalues are asked for from now on."""
    shapes = set()

    def noted(function):
        def wrapped(matrices):
            shapes.add(matrices.shape[-2:])
            return function(matrices)

        return wrapped

    for name in ("eigh", "eigvalsh"):
        monkeypatch.setattr(np.linalg, name, noted(getattr(np.linalg, name)))
    return shapes


@pytest.mark.parametrize(("n_environments", "size"), [(2, 2), (8, 8), (10, 9), (40, 9)])
def test_no_table_of_contrasts_is_larger_than_it_must_be(random, monkeypatch, n_environments, size):
    """Of environments or of the entries of a covariance, whichever are fewer."""
    shapes = decomposed(monkeypatch)
    contrast(random.normal(size=(2, n_environments, 3, 3)))
    assert shapes == {(size, size)}


@pytest.mark.parametrize("m", [3, MANY, MANY + 9])
def test_no_table_of_means_is_larger_than_it_must_be(random, monkeypatch, m):
    """Of cells or of coordinates: thousands of cells squared would fill the memory."""
    shapes = decomposed(monkeypatch)
    mean_scores([random.normal(size=(5, m, MANY))], np.eye(1, MANY))
    assert shapes == {(min(m, MANY),) * 2}


# --- tests


def frame(q):
    return Frame(np.eye(q), np.eye(q), q)


def made(random, means, changes, n_rows=1e9, orders="both"):
    """Tests of two environments whose covariances differ by `changes`, against 19 nulls."""
    D, q = np.diag(changes), len(changes)
    null = random.normal(size=(19, 2, q, q))
    observed = Evidence(np.asarray(means), np.stack([D, -D]))
    nulls = Evidence(random.normal(size=(19, len(means), q)), null + np.swapaxes(null, 2, 3))
    return _Tests.of(observed, nulls, frame(q), n_rows, orders)


def test_covariances_are_white_within_cells(random):
    """The total is white, and the means have their share of it: the rest is made white."""
    means = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 0.0]])
    tests = made(random, means, [4.0, 2.0, 1.0], n_rows=20)
    within = np.eye(3) - means.T @ means / 20
    np.testing.assert_allclose(tests.whiten @ within @ tests.whiten, np.eye(3), atol=1e-12)
    white = tests.whiten @ np.diag([4.0, 2.0, 1.0]) @ tests.whiten
    np.testing.assert_allclose(tests.covariances[0], [white, -white])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("size", "axes"), [(1, [0]), (2, [1, 2])])
def test_the_block_is_that_of_the_largest_sum(random, sign, size, axes):
    """Of -4, 3 and 3.5 the first is the largest alone, and the others are together."""
    tests = made(random, np.zeros((1, 3)), sign * np.array([-4.0, 3.0, 3.5]))
    block = tests.with_block(np.zeros((0, 3)), size)
    assert block.shape == (size, 3)
    np.testing.assert_allclose(np.linalg.norm(block[:, axes]), np.sqrt(size))


def test_what_is_not_tested_shows_one_direction(random):
    tests = made(random, np.zeros((1, 3)), [4.0, 4.0, 0.0], orders="means")
    assert tests._of(np.zeros((0, 3))).shared == 1
    everything = made(random, np.zeros((1, 3)), [4.0, 4.0, 0.0])._of(np.eye(3))
    assert np.isnan(everything.p_covariance)
    assert everything.shared == 1


def test_a_difference_must_show_whichever_directions_are_removed(random, monkeypatch):
    strong, weak = _Test(0.01, 0.01, 0.5, 1), _Test(0.3, 0.3, 0.3, 2)
    as_strong, weaker = _Test(0.01, 0.02, 0.5, 3), _Test(0.9, 0.9, 0.9, 4)
    outcomes = {0: strong, 1: weak, 2: as_strong, 3: weaker}
    monkeypatch.setattr(_Tests, "_of", lambda self, removed: outcomes[len(removed)])
    tests = made(random, np.zeros((1, 5)), np.zeros(5))

    def found(removed, otherwise, alpha=0.05):
        return tests.of_rest(np.eye(5)[:removed], np.eye(5)[:otherwise], alpha)

    assert found(0, 1) is weak
    assert found(2, 0) is as_strong  # nothing else to remove
    assert found(1, 3) is weak  # not significant at once: no second test
    assert found(0, 2) is strong  # equal: the first
    assert found(1, 3, alpha=0.3) is weaker  # significant at its level


# --- the sequence


class Script:
    """Tests with outcomes that are made up; remembers what was to be removed."""

    def __init__(self, *outcomes):
        self.outcomes, self.asked = list(outcomes), []

    def of_rest(self, removed, otherwise, alpha):
        self.asked.append((len(removed), len(otherwise)))
        return self.outcomes[len(self.asked) - 1]

    def with_block(self, removed, size):
        return np.eye(6)[: len(removed) + size]


def played(monkeypatch, script, most=5):
    null = Evidence(np.zeros((99, 1, 6)), np.zeros((99, 2, 6, 6)))
    monkeypatch.setattr(_Tests, "of", lambda *given: script)
    return choose_rank(
        null, null, frame(6), lambda rank: np.eye(6)[:rank], alpha=0.05, most=most, n_rows=9.0
    )


def test_a_block_is_completed_after_a_mean_at_the_very_level(monkeypatch):
    """P-values that reach the level count, of means, of covariances and of both."""
    script = Script(_Test(0.05, 0.05, 0.05, 3), _Test(0.5, 0.5, 0.5, 1), _Test(0.5, 0.5, 0.5, 1))
    choice = played(monkeypatch, script)
    assert [(s.n_removed, s.block, s.level) for s in choice.steps] == [
        (0, 1, 0.05),
        (1, 2, 0.05),
        (3, 0, 0.01),
    ]
    assert (choice.rank, choice.alpha, choice.n_permutations) == (3, 0.05, 99)
    # What means showed need not be shown twice; what covariances showed is removed otherwise too.
    assert script.asked == [(0, 0), (1, 0), (3, 3)]


def test_a_block_that_was_not_significant_is_not_completed(monkeypatch):
    for first in (_Test(0.05, 0.05, 0.06, 3), _Test(0.06, 0.05, 0.05, 3)):
        choice = played(monkeypatch, Script(first, _Test(0.5, 0.5, 0.5, 1)))
        assert choice.rank == (1 if first.p_value <= 0.05 else 0)


def test_the_last_test_is_kept_where_no_more_can_be_removed(monkeypatch):
    script = Script(_Test(0.01, 0.5, 0.01, 4), _Test(0.01, 0.01, 0.01, 4))
    choice = played(monkeypatch, script, most=2)
    assert [(s.n_removed, s.block) for s in choice.steps] == [(0, 2), (2, 0)]
    np.testing.assert_array_equal(choice.p_values, [0.01, 0.01])


def test_a_notebook_shows_every_step():
    step = RankStep(2, 0.25, 0.00001, float("nan"), level=0.05, block=1)
    page = ElementTree.fromstring(RankChoice(3, 0.05, 199, (step,))._repr_html_())
    assert page.findtext("caption") == "3 direction(s) differ, by 199 permutations"
    assert [[cell.text for cell in row] for row in page.iter("tr")] == [
        ["removed before", "p", "p of means", "p of covariances", "level", "removed after"],
        ["2", "0.25", "1e-05", "–", "0.05", "1"],
    ]


# --- from evidence to a rank


def drawn_evidence(random, n=60):
    """Two cells that differ in the first of three white coordinates, and their null."""
    frame = Frame(np.eye(3), np.eye(3), 3)
    means, covariances = random.normal(size=(n, 2, 3)), random.normal(size=(n, 2, 3, 3))
    covariances += np.swapaxes(covariances, -1, -2)
    observed = Evidence(means[0] + [30, 0, 0] * np.array([[1], [-1]]), covariances[0])
    null = Evidence(means[1:], covariances[1:])
    return CellEvidence(None, None, frame, observed, 1e4), null


def first_coordinates(rank):
    return np.eye(3)[:rank]


@pytest.mark.parametrize("orders", ["both", "means", "covariances"])
def test_a_rank_test_keeps_what_it_was_made_of(random, orders):
    evidence, null = drawn_evidence(random)
    test = RankTest(evidence, null, 0.05)
    choice, kept = test.choose(first_coordinates, most=2, orders=orders)
    how = {"alpha": 0.05, "most": 2, "n_rows": 1e4, "orders": orders}
    expected = choose_rank(evidence.observed, null, evidence.frame, first_coordinates, **how)
    assert repr(choice) == repr(expected)  # figures that were not tested are NaN
    assert kept.observed is evidence.observed and kept.frame is evidence.frame
    assert kept.n_rows == 1e4 and kept.orders == orders
    for part, whole in zip(kept.null, null, strict=True):
        assert part.dtype == np.float32
        np.testing.assert_array_equal(part, whole.astype(np.float32))
    default, kept = test.choose(first_coordinates, most=2)
    assert kept.orders == "both"
    both, _ = test.choose(first_coordinates, most=2, orders="both")
    assert repr(default) == repr(both)


def test_where_no_feature_varies_there_is_no_rank_to_find(random):
    evidence, null = drawn_evidence(random)
    frame = Frame(np.empty((3, 0)), np.empty((0, 3)), 0)
    choice, kept = RankTest(evidence._replace(frame=frame), null, 0.05).choose(None, most=2)
    assert choice == RankChoice(0, 0.05, 0, ())
    assert kept is None
    one = evidence._replace(frame=evidence.frame._replace(n_leading=1))
    one = one._replace(observed=Evidence(one.observed.means, one.observed.covariances[:, :1, :1]))
    null = Evidence(null.means, null.covariances[:, :, :1, :1])
    assert RankTest(one, null, 0.05).choose(first_coordinates, most=2)[1] is not None
