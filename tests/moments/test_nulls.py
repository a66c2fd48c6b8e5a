"""What chance alone gives: sums that permutation and parts must keep."""

import numpy as np
import pytest
from conftest import draw_rows

from isrlearn import CellMoments
from isrlearn.moments import _nulls
from isrlearn.moments._evidence import (
    CellEvidence,
    covariance_evidence,
    given_classes,
    mean_evidence,
)
from isrlearn.moments._nulls import PermuteEnvironments
from isrlearn.moments._parts import N_PARTS, AddUnits, PartMoments, _deviations, resampled
from isrlearn.rows._validation import check_rows


def seed_of(random):
    return int(random.integers(2**31))


def evidence_of(cells, n_leading=None):
    found = CellEvidence.of(cells, given_classes(cells))
    if n_leading is None:
        return found
    return found._replace(frame=found.frame._replace(n_leading=n_leading))


def permuted(rows, evidence):
    return PermuteEnvironments(evidence, 7, np.random.default_rng(0))(rows)


def test_permutation_keeps_weights_of_cells_and_spread_within_them(random, monkeypatch):
    X, y, e = draw_rows(seed_of(random), per_cell=12)
    weights = np.array([3.0, 1.0, 2.0])[e]
    cells = CellMoments.from_rows(X, y, e, weights)
    evidence_here = evidence_of(cells)
    _, cond, frame = evidence_here[:3]
    kept, evidence = [], _nulls._evidence

    def seen(sums, sizes, cond):
        kept.append((sums, sizes))
        return evidence(sums, sizes, cond)

    monkeypatch.setattr(_nulls, "_evidence", seen)
    permuted(check_rows(X, y, e, weights), evidence_here)
    sums, sizes = kept[0]
    np.testing.assert_allclose(sums[..., 0], np.tile(cells.weights, (7, 1)))
    # Over all cells of equal weight the squares add up to what they are within the true cells.
    squares = _nulls.symmetric(sums[..., -sizes[-1] :] / weights_of(cells)[:, None], 5).sum(axis=1)
    covariances = cond.scatters / cond.freedom[:, None, None]
    within = frame.forward.T @ covariances @ frame.forward
    expected = np.tile(within_sum(cells, within), (7, 1, 1))
    np.testing.assert_allclose(squares, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_permutations_give_the_same_bits_one_by_one_and_all_at_once(random, monkeypatch):
    X, y, e = draw_rows(seed_of(random), per_cell=12)
    cells = CellMoments.from_rows(X, y, e)
    rows, evidence = check_rows(X, y, e), evidence_of(cells)
    every = permuted(rows, evidence)
    monkeypatch.setattr(_nulls, "MOST_ENTRIES", 1)
    single = permuted(rows, evidence)
    assert [part.tobytes() for part in single] == [part.tobytes() for part in every]


def weights_of(cells):
    return cells.weights / cells.counts


def within_sum(cells, within):
    """Return the sum over cells of n S, with the stretch to the degrees of freedom of weights."""
    return np.tensordot(cells.counts, within, axes=1)


def test_deviations_of_the_parts_of_a_cell_add_up_to_nothing(random):
    X, y, e = draw_rows(seed_of(random), per_cell=70)
    weights = random.exponential(size=len(X))
    checked = check_rows(X, y, e, weights)
    parts = PartMoments.empty(5).update_checked(checked)
    cells = parts.total()
    evidence = evidence_of(cells)
    for units in (parts.units(evidence), AddUnits.of(evidence)(checked).units()):
        rows, owners = _deviations(units, cells, evidence.frame)
        for owner in range(len(cells.means)):
            own = rows[owners == owner]
            np.testing.assert_allclose(own.sum(axis=0), 0, atol=1e-8 * np.abs(own).sum())


@pytest.mark.parametrize("d", [5, 30])
def test_parts_of_a_stream_and_of_rows_are_the_same(random, d):
    """Whether d x d matrices are kept and mapped, or rows are mapped first."""
    X, y, e = draw_rows(seed_of(random), per_cell=3 * N_PARTS, n_features=d)
    weights = random.exponential(size=len(X))
    checked = check_rows(X, y, e, weights)
    parts = PartMoments.empty(d).update_checked(checked)
    cells = parts.total()
    evidence = evidence_of(cells, n_leading=4)
    units = AddUnits.of(evidence, by_chance=False)(checked).units()
    kept = parts.units(evidence)
    order = np.argsort(kept.owners, kind="stable")  # a stream has them part by part
    for one, other in zip(kept, units, strict=True):
        np.testing.assert_allclose(one[order], other, rtol=1e-6, atol=1e-6)


def test_parts_give_the_noise_that_chance_gives(random):
    """In white coordinates each of the contrasts of means has as many units as coordinates."""
    sizes, squares = [100, 400, 1600], []
    e, y = np.repeat([0, 1, 2], sizes), np.arange(sum(sizes)) % 2
    for _ in range(5):
        rows = check_rows(random.normal(size=(len(e), 5)), y, e)
        parts = PartMoments.empty(5).update_checked(rows)
        cells = parts.total()
        evidence = evidence_of(cells)
        cond = evidence.cond
        null = resampled(parts.units(evidence), evidence, 200, random)
        squares.append(np.sum(null.means**2, axis=(1, 2)).mean())
        assert null.means.shape[1:] == mean_evidence(cond).shape
    assert 0.8 < np.mean(squares) / (2 * 2 * 5) < 1.25


def test_single_rows_are_dealt_out_in_turn(random):
    X, y, e = draw_rows(seed_of(random), per_cell=40)
    parts = PartMoments.empty(5)
    for i in range(len(X)):
        parts.update_checked(check_rows(X[[i]], y[[i]], e[[i]]))
    sizes = [part.counts_table() for part in parts.parts]
    assert np.max(sizes) - np.min(sizes) <= 1
    assert len(parts.parts) == N_PARTS
    at_once = PartMoments.empty(5).update_checked(check_rows(X, y, e))
    for one, other in zip(parts.parts, at_once.parts, strict=True):
        np.testing.assert_allclose(one.means, other.means)


def test_a_covariance_of_few_rows_is_not_compared(random):
    X, y, e = draw_rows(seed_of(random), per_cell=40)
    kept = np.ones(len(X), dtype=bool)
    kept[np.flatnonzero((y == 0) & (e == 0))[6:]] = False
    X, y, e = X[kept], y[kept], e[kept]
    before = covariance_evidence(given_classes(CellMoments.from_rows(X, y, e)))
    X[(y == 0) & (e == 0)] *= 100
    after = covariance_evidence(given_classes(CellMoments.from_rows(X, y, e)))
    np.testing.assert_allclose(after, before)
