"""Moments of rows whose sums are known, and what is said when there are none."""

from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import draw_rows, says

from isrlearn import CellMoments
from isrlearn.moments import AddMoments, _cells
from isrlearn.moments._sums import FEW_CELLS
from isrlearn.rows._validation import check_rows

X = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 5.0], [6.0, -3.0]])
CLASSES = ["b", "b", "a", "b"]
PLACES = ["lab", "lab", "lab", "field"]


def small(**given):
    """One class in one place, and another in two."""
    return CellMoments.from_rows(X, CLASSES, PLACES, **given)


def numbers(*labels):
    """Moments of one row per label, all in one environment."""
    labels = np.array(labels)
    return CellMoments.from_rows(np.ones((len(labels), 2)), labels, np.zeros(len(labels)))


def assert_same(found, expected):
    for name, value in expected.to_arrays().items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(getattr(found, name), value, atol=1e-12)
        elif name != "protocol":
            np.testing.assert_array_equal(getattr(found, name), value)
    assert (found.scatters is None) == (expected.scatters is None)


# --- growing


@pytest.mark.parametrize("second_order", [True, False])
def test_chunks_of_rows_with_weights_add_up(random, second_order):
    """Every way in gives the same, also where a chunk brings new classes and environments."""
    rows, y, e = draw_rows(random.integers(2**31))
    weights = random.uniform(0.5, 2, len(rows))
    whole = CellMoments.from_rows(rows, y, e, weights, second_order=second_order)
    grown = CellMoments.empty(5, second_order=second_order)
    parts = np.array_split(np.arange(len(rows)), 11)
    for part in parts:
        grown.update(rows[part], y[part], e[part], weights[part])
    assert_same(grown, whole)
    added = sum(
        CellMoments.from_rows(rows[p], y[p], e[p], weights[p], second_order=second_order)
        for p in parts
    )
    assert_same(added, whole)


@pytest.mark.parametrize(
    ("classes", "environments"),
    [
        ([0], [2]),  # a new environment: in a table without it, where (1, 0) is
        ([1], [0]),  # a new class between the others
        ([0], [1]),  # a class and an environment that were seen, not together
        ([1], [2]),
    ],
)
def test_a_new_cell_is_not_taken_for_another(classes, environments):
    before = CellMoments.from_rows(np.eye(3), [0, 2, 2], [0, 0, 1])
    row = np.array([[5.0, 6.0, 7.0]])
    expected = CellMoments.from_rows(
        np.vstack([np.eye(3), row]), [0, 2, 2, *classes], [0, 0, 1, *environments]
    )
    assert_same(before.update(row, classes, environments), expected)


def test_known_cells_grow_where_they_are():
    """No new cell: the arrays stay, however large they are."""
    m = small()
    means, scatters, counts = m.means, m.scatters, m.counts
    m.update(X[2:], CLASSES[2:], PLACES[2:])
    assert m.means is means
    assert m.scatters is scatters
    assert m.counts is counts
    np.testing.assert_array_equal(counts, [2, 2, 2])


def test_a_chunk_may_have_no_weight_but_not_all_rows():
    m = small()
    m.update(X, CLASSES, PLACES, np.zeros(4))
    assert_same(m, small())
    with says("sample_weight is zero for every row: at least one must be positive."):
        CellMoments.from_rows(X, CLASSES, PLACES, np.zeros(4))


def test_classes_of_one_environment_are_kept_apart():
    total = numbers(3, 4, 5) + numbers(4)
    np.testing.assert_array_equal(total.counts_table(), [[1], [2], [1]])


@pytest.mark.parametrize("labels", [(2.0, 3.0), (True, False), (np.uint8(2), np.uint8(3))])
def test_numbers_of_any_type_are_joined(labels):
    total = numbers(0, 1) + numbers(*labels)
    assert total.classes.tolist() == sorted({0, 1, *(int(v) for v in labels)})
    assert total.counts.sum() == 4


def test_labels_of_two_kinds_are_not():
    with says("cannot join labels 3 and 'a': use only strings or only numbers.", TypeError):
        numbers(3, 4) + numbers("a", "b")
    with says("cannot join labels 'a' and 3: use only strings or only numbers.", TypeError):
        numbers("a", "b") + numbers(3, 4)


@pytest.mark.parametrize("second_order", [True, False])
def test_no_rows_change_nothing(second_order):
    """Whatever the labels are: no rows have none."""
    m, none = small(second_order=second_order), CellMoments.empty(2, second_order=second_order)
    assert_same(m + none, m)
    assert_same(none + m, m)
    assert_same(none + none, none)
    assert_same(sum([m]), m)
    assert repr(none) == (
        "CellMoments(classes=0, environments=0, cells=0 of 0, features=2, smallest_cell=0)"
    )


@pytest.mark.parametrize("bad", [0, 2.0, True, None, 2**31])
def test_no_rows_need_a_number_of_features(bad):
    with says(f"n_features={bad!r} must be a whole number from 1 to 2147483647."):
        CellMoments.empty(bad)
    assert CellMoments.empty(1).n_features == 1


def test_what_cannot_be_added():
    with says("cannot add moments of 2 and of 3 features: all rows must have the same columns."):
        small() + CellMoments.empty(3)
    with says(
        "one of the moments has no scatters: give both the same second_order. A saved estimator "
        "leaves out scatters that are large: fit it again on all rows."
    ):
        small() + small(second_order=False)
    with pytest.raises(TypeError):
        1 + small()


# --- what is read from them


def test_covariances_and_variances_of_small_spread():
    m = small()
    np.testing.assert_array_equal(m.covariances(), [np.zeros((2, 2))] * 2 + [[[1, 0], [0, 0]]])
    np.testing.assert_array_equal(m.covariances(np.array([2])), [[[1, 0], [0, 0]]])
    np.testing.assert_array_equal(m.variances(), [[0, 0], [0, 0], [1, 0]])
    with says("these moments hold means only: build them with second_order=True for covariances."):
        small(second_order=False).variances()


@pytest.mark.parametrize("second_order", [True, False])
def test_some_cells_are_the_moments_of_their_rows(second_order):
    taken = small(second_order=second_order).take(np.array([False, True, True]))
    rows = X[[0, 1, 3]], ["b"] * 3, ["lab", "lab", "field"]
    expected = CellMoments.from_rows(*rows, second_order=second_order)
    expected.largest = np.abs(X).max(axis=0)  # of all rows: what rounding is measured by
    assert_same(taken, expected)


def test_cells_are_taken_by_a_mask_alone():
    with says("kept=array([0, 1, 1]) must be a mask of 3 cells."):
        small().take(np.array([0, 1, 1]))
    with says("kept=array([ True, False]) must be a mask of 3 cells."):
        small().take([True, False])
    assert small().take([True, False, True]).counts.tolist() == [1, 2]


def test_a_variance_is_never_negative():
    """A sum of squares that cancellation left below zero."""
    m = small()
    m.scatters[0, 0, 0] = -1e-20
    assert m.variances().min() == 0


def test_a_notebook_shows_the_rows_of_each_cell():
    page = ElementTree.fromstring(small()._repr_html_())
    assert page.findtext("caption") == "Rows by class and environment, 2 features"
    assert [[cell.text for cell in row] for row in page.iter("tr")] == [
        ["class", "field", "lab"],
        ["a", "0", "1"],
        ["b", "1", "2"],
    ]


# --- rows that were not looked through


def unlooked(rows, environments=PLACES):
    return check_rows(rows, CLASSES, environments, look_for_nan=False)


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("environments", [PLACES, [None] * 4])
def test_what_is_not_finite_is_found_by_its_sums(second_order, value, environments):
    rows = X.copy()
    rows[1, 1] = value
    with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
        CellMoments.from_checked(unlooked(rows, environments), second_order=second_order)


def test_finite_sums_save_a_second_look(monkeypatch):
    def second_look(rows):
        raise RuntimeError("looked again")

    monkeypatch.setattr(_cells, "refuse_not_finite", second_look)
    assert_same(CellMoments.from_checked(unlooked(X)), small())
    looked_at = check_rows(X, CLASSES, [None] * 4)
    assert len(CellMoments.from_checked(looked_at).counts) == 0
    with pytest.raises(RuntimeError, match="looked again"):  # no sums, so nothing is known
        CellMoments.from_checked(unlooked(X, [None] * 4))


def test_rows_of_unknown_environment_leave_no_cell():
    m = CellMoments.from_rows(X, CLASSES, [None] * 4, second_order=False)
    assert m.classes.tolist() == ["a", "b"]
    assert m.means.shape == (0, 2)
    assert m.environments.shape == (0,)


@pytest.mark.parametrize("n_cells", [FEW_CELLS - 1, FEW_CELLS, FEW_CELLS + 1])
def test_means_of_few_and_of_many_cells(random, n_cells):
    rows = random.normal(size=(3 * n_cells, 2))
    cell = np.arange(3 * n_cells) % n_cells
    m = CellMoments.from_rows(rows, np.zeros(len(rows)), cell, second_order=False)
    np.testing.assert_allclose(m.means, rows.reshape(3, n_cells, 2).mean(axis=0))
    np.testing.assert_array_equal(m.largest, np.abs(rows).max(axis=0))


# --- rows that are too large


def lonely(*values):
    """Each value alone in its cell, so that it is its own mean."""
    return np.array(values)[:, None], np.zeros(len(values)), np.arange(len(values))


def test_what_can_be_squared_is_taken():
    m = CellMoments.from_rows(*lonely(1e150, -1e150), second_order=False)
    np.testing.assert_array_equal(m.means, [[1e150], [-1e150]])


@pytest.mark.parametrize("second_order", [True, False])
def test_means_that_cannot_be_squared_are_refused(second_order):
    with says(
        "X is so large (up to 2e+151, above 1e+150) that squares of it overflow: scale the "
        "features first, for example with StandardScaler."
    ):
        CellMoments.from_rows(*lonely(1.0, -2e151), second_order=second_order)


def test_squares_that_overflow_are_refused_whatever_their_mean():
    rows = np.array([[1e160], [-1e160]])
    with pytest.raises(ValueError, match=r"so large \(up to 1e\+160, above 1e\+150\) that"):
        CellMoments.from_rows(rows, [0, 0], [0, 0])
    assert CellMoments.from_rows(rows, [0, 0], [0, 0], second_order=False).means[0, 0] == 0


def test_weights_that_overflow_are_refused_with_their_sum():
    """Each value by its own is taken, and each weight is."""
    rows, y = np.array([[1e140], [-1e140], [1.0]]), [0, 0, 0]
    with says(
        "X (up to 1e+140) and the weights of its rows (up to 5e+30 in a cell) are so large that "
        "sums of squares overflow: scale sample_weight, or the features."
    ):
        CellMoments.from_rows(rows, y, [0, 0, 1], np.array([3e30, 2e30, 1.0]))


# --- all rows, also those of unknown environment


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("unknown", [True, False])
def test_all_moments_are_those_of_cells_and_by_class_of_other_rows(random, second_order, unknown):
    rows, y, e = draw_rows(random.integers(2**31))
    known, weights = np.arange(len(rows)) % 3 > 0, random.uniform(0.5, 2, len(rows))
    e = np.where(known, e, None) if unknown else e
    known = known if unknown else np.ones(len(rows), dtype=bool)
    checked, how = check_rows(rows, y, e, weights), {"second_order": second_order}
    cells = CellMoments.from_rows(rows[known], y[known], e[known], weights[known], **how)
    others = CellMoments.empty(5, **how)
    if not second_order:  # one pass over all rows looks at all of them
        cells.largest = np.abs(rows).max(axis=0)
    if unknown:
        one = np.zeros(np.sum(~known), dtype=int)
        others = CellMoments.from_rows(rows[~known], y[~known], one, weights[~known], **how)
    whole = AddMoments(second_order)(checked)
    half, rest = (AddMoments(second_order)(checked.take(slice(i, None, 2))) for i in (0, 1))
    added = half + rest
    half += rest
    for found in (whole, added, half):
        assert found.n_rows == len(rows)
        assert_same(found.known, cells)
        assert_same(found.others, others)
        assert found.others.environments.dtype == np.intp
        for part in (found.known, found.others):
            assert part.class_index.dtype == part.classes.dtype == np.intp
