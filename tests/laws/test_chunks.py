"""Fits on rows that come in chunks are those on all rows at once."""

import numpy as np
import pytest
from chunk_support import chunked, cut, draw_chunkable
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from isrlearn import (
    ISR,
    CellMoments,
    ChunkedRows,
    ISRClassifier,
    ISRCov,
    ISRMean,
    LogisticHead,
)
from isrlearn.baselines import GroupDRO
from isrlearn.exceptions import SingleEnvironmentWarning
from isrlearn.heads._loss import TakeSample
from isrlearn.heads._row_weights import GroupFactors
from isrlearn.moments._cells import AddMoments
from isrlearn.moments._evidence import CellTable, comparable
from isrlearn.moments._parts import AddUnits
from isrlearn.rows import _source
from isrlearn.rows._source import InMemory, chunk_rows
from isrlearn.rows._validation import check_rows

TRANSFORMERS = [ISRMean(1), ISRMean(2), ISRCov(1), ISR(1), ISR(2, scale=0.3)]


@pytest.fixture(autouse=True)
def one_thread():
    """Products are small: threads would do nothing but wait for each other."""
    with threadpool_limits(1):
        yield


def assert_same_moments(found, expected, rtol=1e-10):
    np.testing.assert_array_equal(found.classes, expected.classes)
    np.testing.assert_array_equal(found.environments, expected.environments)
    np.testing.assert_array_equal(found.counts_table(), expected.counts_table())
    np.testing.assert_array_equal(found.largest, expected.largest)
    assert found.precision == expected.precision
    np.testing.assert_allclose(found.weights, expected.weights, rtol=rtol)
    assert_close(found.means, expected.means, rtol)
    assert (found.scatters is None) == (expected.scatters is None)
    if expected.scatters is not None:
        assert_close(found.scatters, expected.scatters, rtol)


def assert_close(found, expected, rtol):
    """Equal but for so much of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


def assert_same_removal(found, expected, atol=1e-7):
    assert found.rank == expected.rank
    np.testing.assert_allclose(found.matrix(), expected.matrix(), atol=atol)
    np.testing.assert_allclose(found.centre, expected.centre, atol=atol)
    assert_close(found.spectrum, expected.spectrum, 1e-6)


def by_class(X, y, e, *others):
    """The rows sorted by class: a chunk lacks some, and so it does environments."""
    order = np.lexsort((np.array([str(name) for name in e]), y))
    return tuple(column[order] for column in (X, y, e, *others))


# --- equal to the fit on arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("isr", [ISRMean(1), ISRCov(1)], ids=["means", "scatters"])
def test_moments_of_chunks_are_those_of_all_rows(random, dtype, n_features, isr):
    X, y, e = draw_chunkable(random, n_features=n_features, unknown=0.2, names=True)
    X, weights = (X + 20).astype(dtype), random.uniform(0.1, 2, len(X))
    for columns in ((X, y, e, weights), by_class(X, y, e, weights)):
        found = isr.fit(chunked(random, *columns, n_cuts=7)).moments_
        whole = isr.fit(X, y, environments=e, sample_weight=weights).moments_
        assert_same_moments(found, whole)
        exact = CellMoments.from_rows(
            X.astype(np.float64), y, e, weights, second_order=whole.scatters is not None
        )
        assert_close(found.means, exact.means, 1e-10)
        if exact.scatters is not None:
            assert_close(found.scatters, exact.scatters, 1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_of_256_features_do_not_depend_on_the_cuts(random, dtype):
    X, y, e = draw_chunkable(random, n_features=256, per_cell=10)
    X = X.astype(dtype)
    found = chunked(random, X, y, e).total(AddMoments(True)).known
    assert_same_moments(found, CellMoments.from_rows(X, y, e))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("isr", TRANSFORMERS, ids=str)
def test_what_is_removed_does_not_depend_on_the_cuts(random, isr, n_classes):
    X, y, e = draw_chunkable(random, n_classes=n_classes, unknown=0.2)
    weights = random.uniform(0.1, 2, len(X))
    whole = isr.fit(X, y, environments=e, sample_weight=weights).subspace_
    for columns in ((X, y, e, weights), by_class(X, y, e, weights)):
        found = isr.fit(chunked(random, *columns))
        assert_same_removal(found.subspace_, whole)
        assert found.n_features_in_ == X.shape[1]


def two_of_three(random):
    """Two of three directions differ, and no test can find more: the rank is 2 for any seed."""
    X, y, e = draw_chunkable(random, n_environments=4, n_features=3, per_cell=40)
    mixing = random.normal(size=(2, 3)) @ np.linalg.qr(random.normal(size=(3, 3)))[0]
    mixing /= np.linalg.norm(mixing, axis=1, keepdims=True)
    mixing[1] -= (mixing[1] @ mixing[0]) * mixing[0]
    mixing[1] /= np.linalg.norm(mixing[1])
    return X + 20 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[e] @ mixing, y, e


@pytest.mark.parametrize("rank_test", ["permutation", "moments"])
def test_the_rank_that_chunks_find_is_that_of_all_rows(random, rank_test):
    X, y, e = two_of_three(random)
    isr = ISR(rank_test=rank_test, random_state=int(random.integers(2**31)))
    whole = isr.fit(X, y, environments=e).subspace_
    assert whole.rank == 2
    for columns in ((X, y, e), by_class(X, y, e)):
        assert_same_removal(isr.fit(chunked(random, *columns)).subspace_, whole)
        assert isr.rank_choice_ is not None
    first, again = (isr.fit(ChunkedRows.from_chunks([(X, y, e)])) for _ in range(2))
    assert first.rank_choice_ == again.rank_choice_


def test_rows_without_differences_keep_all_directions(random):
    """Both environments have the same rows: no seed finds a difference by chance."""
    X, y, e = draw_chunkable(random, n_features=3)
    same = np.concatenate([X, X]), np.concatenate([y, y]), np.repeat(["one", "two"], len(X))
    assert ISR(random_state=0).fit(chunked(random, *same)).n_spurious_ == 0


def test_parts_of_cells_add_up_to_the_cells(random):
    X, y, e = draw_chunkable(random, unknown=0.2)
    weights = random.uniform(0.1, 2, len(X))
    known = np.array([name is not None for name in e])
    cells = comparable(CellMoments.from_rows(X, y, e, weights))
    leading = random.normal(size=(X.shape[1], 2))
    add = AddUnits(CellTable.of(cells), leading)
    units = chunked(random, X, y, e, weights, n_cuts=9).total(add).units()
    for cell, (c, environment) in enumerate(
        zip(cells.class_index, cells.environment_index, strict=True)
    ):
        own = units.owners == cell
        assert own.sum() > 1
        shares = units.weights[own]
        assert shares.sum() == pytest.approx(cells.weights[cell])
        np.testing.assert_allclose(
            np.average(units.means[own], axis=0, weights=shares), cells.means[cell], atol=1e-10
        )
        away = (units.means[own] - cells.means[cell]) @ leading
        total = np.tensordot(shares, units.covariances[own], 1) + (away.T * shares) @ away
        rows = known & (y == cells.classes[c]) & (e == cells.environments[environment])
        expected = np.cov((X[rows] @ leading).T, aweights=weights[rows], ddof=0)
        np.testing.assert_allclose(total / shares.sum(), expected, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "head",
    [
        LogisticHead(tol=1e-8, max_iter=5000),
        LogisticHead(tol=1e-8, max_iter=5000, fit_intercept=False, C=0.1),
        LogisticRegression(tol=1e-8, max_iter=5000, C=0.5),
        LogisticRegression(tol=1e-8, max_iter=5000, fit_intercept=False),
        RidgeClassifier(2.0),
    ],
    ids=str,
)
def test_a_classifier_of_chunks_is_that_of_all_rows(random, head, n_classes):
    X, y, e = draw_chunkable(random, n_classes=n_classes, unknown=0.2, names=True)
    weights = random.uniform(0.2, 2, len(X))
    columns = X, y, e, weights
    for rows, isr, group_weight in (
        (columns, ISR(1), "balanced"),
        (by_class(*columns), ISR(1, scale=0.3), None),
    ):
        whole, found = (ISRClassifier(isr, head, group_weight=group_weight) for _ in range(2))
        whole.fit(X, y, environments=e, sample_weight=weights)
        found.fit(chunked(random, *rows, n_cuts=3))
        np.testing.assert_array_equal(found.classes_, whole.classes_)
        np.testing.assert_array_equal(found.environments_, whole.environments_)
        assert_same_removal(found.subspace_, whole.subspace_)
        # scikit-learn gives two classes of a ridge one dimension, or two.
        np.testing.assert_allclose(found.coef_, np.atleast_2d(whole.coef_), atol=1e-4)
        np.testing.assert_allclose(found.intercept_, whole.intercept_, atol=1e-4)
        scores = whole.decision_function(X)
        np.testing.assert_allclose(found.decision_function(X), scores, atol=2e-3)


def test_the_default_classifier_takes_chunks_of_single_precision(random):
    X, y, e = draw_chunkable(random, n_features=24, per_cell=60)
    X = X.astype(np.float32)
    found = ISRClassifier().fit(chunked(random, X, y, e))
    whole = ISRClassifier().fit(X.astype(np.float64), y, environments=e)
    assert found.n_spurious_ == 1
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-3)
    np.testing.assert_allclose(found.intercept_, whole.intercept_, atol=1e-3)


def test_rows_of_weight_zero_are_no_rows(random):
    X, y, e = draw_chunkable(random, unknown=0.2, per_cell=60)
    weights = random.uniform(0.2, 2, len(X)) * (random.random(len(X)) > 0.3)
    weights[::7] = 1
    columns = X, y, e, weights
    parts = [tuple(column[i : i + 21] for column in columns) for i in range(0, len(X), 21)]
    kept = np.flatnonzero(weights)
    head = RidgeClassifier()
    found = ISRClassifier(ISRMean(1), head).fit(ChunkedRows.from_chunks(parts))
    rest = ChunkedRows.from_chunks([(X[kept], y[kept], e[kept], weights[kept])])
    expected = ISRClassifier(ISRMean(1), head).fit(rest)
    assert_same_moments(found.isr_.moments_, expected.isr_.moments_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)


def test_rows_without_environments_train_the_head_alone(random):
    X, y, _ = draw_chunkable(random)
    with pytest.warns(SingleEnvironmentWarning):
        found = ISRClassifier(ISRMean(1)).fit(chunked(random, X, y))
    with pytest.warns(SingleEnvironmentWarning):
        whole = ISRClassifier(ISRMean(1)).fit(X, y)
    assert found.n_spurious_ == 0
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-4)


def test_a_sample_of_the_rows_is_made_of_rows_with_their_labels(random):
    X, y, e = draw_chunkable(random, n_classes=3, names=True)
    weights = random.uniform(0.2, 2, len(X))
    every = int(random.integers(2, 9))
    table = random.uniform(1, 2, (3, 4))
    factors = GroupFactors(np.unique(y), np.unique(e), table)
    sample = chunked(random, X, y, e, weights).total(TakeSample(factors, every))
    assert len(X) // every - 5 <= len(sample.X) <= len(X) // every + 10
    places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in sample.X]
    assert places == sorted(set(places))
    np.testing.assert_array_equal(factors.classes[sample.codes], y[places])
    columns = np.searchsorted(factors.environments, e[places])
    np.testing.assert_allclose(sample.weights, weights[places] * table[sample.codes, columns])
    all_rows = chunked(random, X, y, e).total(TakeSample(factors, 1))
    np.testing.assert_array_equal(all_rows.X, X)


# --- ways in


class Sliced:
    """What a file of arrays is: a shape, a type and slices, nothing else."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        if not isinstance(rows, slice):
            raise TypeError("slices only")
        return self.array[rows]


def as_mapped(mode):
    def convert(array, folder):
        np.save(folder / "rows.npy", array)
        return np.load(folder / "rows.npy", mmap_mode=mode)

    return convert


def as_tensor(array, folder):
    return pytest.importorskip("torch").from_numpy(array)


def as_frame(array, folder):
    frame = pytest.importorskip("pandas").DataFrame(array)
    return frame.set_index(np.arange(len(array))[::-1])


ARRAYS = {
    "array": lambda array, folder: array,
    "slices": lambda array, folder: Sliced(array),
    "map r": as_mapped("r"),
    "map r+": as_mapped("r+"),
    "map c": as_mapped("c"),
    "tensor": as_tensor,
    "frame": as_frame,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", ARRAYS)
def test_arrays_are_read_slice_by_slice(random, monkeypatch, tmp_path, way, dtype):
    X, y, e = draw_chunkable(random, unknown=0.2)
    X = X.astype(dtype)
    weights = random.uniform(0.1, 2, len(X))
    rows_each = int(random.integers(7, 50))
    monkeypatch.setattr(_source, "CHUNK_BYTES", X[0].nbytes * rows_each)
    rows = ChunkedRows.from_arrays(
        ARRAYS[way](X, tmp_path), y.tolist(), environments=e, sample_weight=weights
    )
    assert (rows.n_rows, rows.n_features) == X.shape
    if way != "frame":  # without a type of its own: that of the widest
        lengths = [len(chunk.X) for chunk in rows.chunks()]
        assert lengths[:-1] == [rows_each] * (len(X) // rows_each - (len(X) % rows_each == 0))
    first, again = (rows.total(AddMoments(True)).known for _ in range(2))
    whole = CellMoments.from_rows(X, y, e, weights)
    assert_same_moments(first, whole)
    np.testing.assert_array_equal(first.scatters, again.scatters)


def test_a_tensor_keeps_its_precision(random):
    torch = pytest.importorskip("torch")
    X, y, e = draw_chunkable(random)
    rows = ChunkedRows.from_arrays(torch.from_numpy(X.astype(np.float32)), y, environments=e)
    assert rows.total(AddMoments(False)).known.precision == np.finfo(np.float32).eps


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_was_changed_in_a_map_stays_changed(random, monkeypatch, tmp_path, mode):
    """Pages are given back after each chunk; with "c" the changes are nowhere else."""
    n_rows = 5000  # several pages
    X = random.normal(size=(n_rows, 4))
    y, e = np.arange(n_rows) % 2, np.arange(n_rows) // 2 % 2
    mapped = as_mapped(mode)(X, tmp_path)
    X[:, 1] += e
    mapped[:] = X
    monkeypatch.setattr(_source, "CHUNK_BYTES", X.nbytes // 7)
    found = ISRMean(1).fit(ChunkedRows.from_arrays(mapped, y, environments=e))
    np.testing.assert_array_equal(mapped, X)
    assert_same_moments(found.moments_, ISRMean(1).fit(X, y, environments=e).moments_)


@pytest.mark.parametrize("way", ["list", "function", "tensors"])
def test_chunks_may_come_from_a_list_or_a_function(random, way):
    X, y, e = draw_chunkable(random)
    parts = cut(random, X, y, e)
    if way == "tensors":
        torch = pytest.importorskip("torch")
        tensors = [tuple(torch.from_numpy(column) for column in part) for part in parts]
    source = {"list": parts, "function": lambda: iter(parts), "tensors": lambda: tensors}[way]
    rows = ChunkedRows.from_chunks(source)
    assert rows.n_rows is None
    assert rows.n_features == X.shape[1]
    found = ISRClassifier(ISRMean(1)).fit(rows)
    whole = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-4)


def test_a_torch_loader_is_a_list_of_chunks(random):
    data = pytest.importorskip("torch.utils.data")
    torch = pytest.importorskip("torch")
    X, y, e = draw_chunkable(random)
    tensors = data.TensorDataset(*(torch.from_numpy(column) for column in (X, y, e)))
    loader = data.DataLoader(tensors, batch_size=int(random.integers(20, 90)), shuffle=True)
    found = ISRClassifier(ISRMean(1)).fit(ChunkedRows.from_chunks(loader))
    whole = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-4)


def test_an_iterator_is_enough_for_one_pass_and_not_for_two(random):
    X, y, e = draw_chunkable(random)
    parts = cut(random, X, y, e)
    found = ISRMean(1).fit(ChunkedRows.from_chunks(iter(parts)))
    assert_same_moments(found.moments_, ISRMean(1).fit(X, y, environments=e).moments_)
    generator = (part for part in parts)
    with pytest.raises(ValueError, match="a list, or a function that returns a new iterator"):
        ISRClassifier(ISRMean(1)).fit(ChunkedRows.from_chunks(generator))
    rows = ChunkedRows.from_chunks(part for part in parts[:1])
    rows.total(AddMoments(False))
    with pytest.raises(ValueError, match="gone through once"):
        rows.total(AddMoments(False))


def test_rows_in_memory_are_one_chunk(random):
    X, y, e = draw_chunkable(random)
    rows = InMemory(check_rows(X, y, e))
    assert (rows.n_rows, rows.n_features) == X.shape
    assert_same_moments(
        rows.total(AddMoments(True)).known, ISRCov(1).fit(X, y, environments=e).moments_
    )


@pytest.mark.parametrize("n_features", [1, 100, 256, 257, 5000])
def test_chunks_of_many_features_are_large_enough_for_their_products(n_features):
    n_rows = chunk_rows(n_features, 4)
    if n_features <= 256:
        assert _source.CHUNK_BYTES - 4 * n_features < 4 * n_features * n_rows <= _source.CHUNK_BYTES
    else:
        assert n_rows >= n_features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_memory_maps_are_read_in_chunks(random, monkeypatch, tmp_path, dtype):
    X, y, e = draw_chunkable(random, unknown=0.2)
    mapped, weights = as_mapped("r")(X.astype(dtype), tmp_path), random.uniform(1, 2, len(X))
    how = {"environments": e, "sample_weight": weights}
    passes, total = [], ChunkedRows.total

    def counted(rows, function, **others):
        passes.append(function)
        return total(rows, function, **others)

    monkeypatch.setattr(ChunkedRows, "total", counted)
    small = ISRCov(1).fit(mapped, y, **how)
    head = LogisticHead(tol=1e-8, max_iter=5000)
    classifier = ISRClassifier(ISRMean(1), head).fit(np.array(mapped, np.float64), y, **how)
    assert not passes
    monkeypatch.setattr(_source, "LARGE_MAP", 0)
    monkeypatch.setattr(_source, "CHUNK_BYTES", mapped.nbytes // 5)
    assert_same_moments(ISRCov(1).fit(mapped, y, **how).moments_, small.moments_)
    assert len(passes) == 1
    found = ISRClassifier(ISRMean(1), head).fit(mapped, y, **how)
    assert len(passes) > 2
    atol = 1e-4 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found.coef_, classifier.coef_, atol=atol)


def test_who_watches_sees_every_pass_to_its_end(random, monkeypatch):
    X, y, e = draw_chunkable(random)
    seen = []
    monkeypatch.setattr(_source, "CHUNK_BYTES", X.nbytes // 5)
    rows = ChunkedRows.from_arrays(
        X, y, environments=e, watch=lambda *progress: seen.append(progress)
    )
    ISRClassifier(ISR(random_state=0)).fit(rows)
    assert {what for what, _, _ in seen} == {"Moments", "Rank test", "Sample", "Head"}
    assert {n_rows for _, _, n_rows in seen} == {len(X)}
    done = np.array([n for _, n, _ in seen]).reshape(-1, -(-len(X) // chunk_rows(6, 8)))
    assert np.all(np.diff(done, axis=1) > 0)
    assert np.all(done[:, -1] == len(X))
    seen.clear()
    ISRMean(1).fit(chunked(random, X, y, e, watch=lambda *progress: seen.append(progress)))
    assert seen[-1] == ("Moments", len(X), None)


# --- what cannot be


def test_chunks_of_other_columns_are_refused(random):
    X, y, e = draw_chunkable(random)
    with pytest.raises(ValueError, match=r"chunk 2 has 5 features, the first has 6: all chunks"):
        ISRMean(1).fit(ChunkedRows.from_chunks([(X, y, e), (X[:, 1:], y, e)]))
    with pytest.raises(ValueError, match=r"shape \(6,\), expected \(rows, features\)"):
        ChunkedRows.from_chunks([(X[0], y, e)])
    with pytest.raises(ValueError, match=r"expected \(rows, features\)"):
        ChunkedRows.from_arrays(X[0], y)


@pytest.mark.parametrize(
    ("estimator", "bad"),
    [
        (ISRMean(1), np.nan),
        (ISRCov(1), np.nan),
        (ISRClassifier(ISRMean(1)), np.nan),
        (ISRMean(1), np.inf),
        (ISRCov(1), np.inf),
        (ISRClassifier(ISRMean(1)), -np.inf),
    ],
    ids=str,
)
@pytest.mark.parametrize("environment", [0, None])
def test_what_is_not_finite_is_found_in_its_column(random, estimator, bad, environment):
    X, y, e = draw_chunkable(random, unknown=0.2)
    row, column = random.integers(len(X)), random.integers(X.shape[1])
    X[row, column], e[row] = bad, environment
    with pytest.raises(ValueError, match=rf"X contains \w+ in column\(s\) \[{column}\]"):
        estimator.fit(chunked(random, X, y, e))


def test_what_is_not_finite_is_found_in_its_chunk(random):
    X, y, e = draw_chunkable(random)
    parts = cut(random, X, y, e)
    number = int(random.integers(len(parts)))
    parts[number][0][0, 3] = np.nan
    with pytest.raises(ValueError, match=rf"chunk {number + 1}: .*column\(s\) \[3\]"):
        ISRMean(1).fit(ChunkedRows.from_chunks(parts))


def test_a_chunk_that_is_refused_is_named(random):
    X, y, e = draw_chunkable(random)
    for other, what in [
        ((X, y[1:], e), "y has"),
        ((X, y, e[1:]), "environments has"),
        ((X, y, e, -np.ones(len(X))), "negative"),
        ((X, X[:, 0], e), "continuous"),
        ((X, np.where(y == 0, None, "a"), e), "missing labels"),
    ]:
        with pytest.raises(ValueError, match=f"chunk 3: .*{what}"):
            ISRMean(1).fit(ChunkedRows.from_chunks([(X, y, e), (X, y, e), other]))
    with pytest.raises(TypeError, match="only strings or only numbers"):
        ISRMean(1).fit(ChunkedRows.from_chunks([(X, y, e), (X, y.astype(str), e)]))


@pytest.mark.parametrize(
    "empty",
    [
        [(np.zeros((0, 3)), [], [])],
        [(np.zeros((0, 3)), [])] * 2,
        [],
        iter([]),
    ],
)
def test_no_rows_at_all_are_refused(empty):
    with pytest.raises(ValueError, match="no rows: give at least one chunk"):
        ISRMean(1).fit(ChunkedRows.from_chunks(empty))


def test_arrays_without_rows_are_refused():
    rows = ChunkedRows.from_arrays(np.zeros((0, 3)), np.zeros(0), environments=np.zeros(0))
    with pytest.raises(ValueError, match="no rows"):
        ISRMean(1).fit(rows)


@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.SingleEnvironmentWarning")
def test_numbers_that_are_no_classes_are_refused(random):
    X, y, _ = draw_chunkable(random)
    classifier = ISRClassifier(ISRMean(0), LinearDiscriminantAnalysis())
    for rows in ([(X, X[:, 0])], [(X, y), (X, X[:, 0])]):
        with pytest.raises(ValueError, match="continuous"):
            classifier.fit(ChunkedRows.from_chunks(rows))


@pytest.mark.parametrize("name", ["y", "environments", "sample_weight"])
def test_arrays_of_other_lengths_are_refused(random, name):
    X, y, e = draw_chunkable(random)
    columns = {"y": y, "environments": e, "sample_weight": np.ones(len(X))}
    columns[name] = columns[name][1:]
    with pytest.raises(ValueError, match=f"{name} has {len(X) - 1} values but X has {len(X)} rows"):
        ChunkedRows.from_arrays(X, columns.pop("y"), **columns)


def test_labels_beside_chunks_are_refused(random):
    X, y, e = draw_chunkable(random)
    rows = ChunkedRows.from_chunks([(X, y, e)])
    for estimator in (ISRMean(1), ISRClassifier(ISRMean(1))):
        with pytest.raises(ValueError, match="y cannot be given beside ChunkedRows: labels"):
            estimator.fit(rows, y)
        with pytest.raises(ValueError, match="environments, sample_weight cannot be given"):
            estimator.fit(rows, environments=e, sample_weight=y)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (KNeighborsClassifier(), "heads that add up are LogisticHead"),
        (GroupDRO(), "needs all rows at once"),
        (LogisticRegression(solver="saga"), "'lbfgs' does not"),
        (LogisticHead(solver="newton-cg"), "'lbfgs' does not"),
        (LogisticRegression(l1_ratio=0.5), "not the ridge penalty"),
        (LogisticRegression(class_weight="balanced"), "class_weight"),
        (LogisticHead(warm_start=True), "warm_start"),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), "shrinkage"),
        (RidgeClassifier(class_weight="balanced"), "class_weight"),
        (RidgeClassifier(positive=True, solver="lbfgs"), "positive"),
    ],
    ids=str,
)
def test_heads_that_do_not_add_up_are_refused_before_a_row_is_read(head, why):
    def never():
        yield np.eye(3), [0, 1, 0], [0, 0, 1]
        raise AssertionError("rows were read")

    with pytest.raises(ValueError, match=f"cannot be fitted chunk by chunk: .*{why}"):
        ISRClassifier(ISRMean(1), head).fit(ChunkedRows.from_chunks(never))


def test_reduced_features_are_refused(random):
    X, y, e = draw_chunkable(random)
    with pytest.raises(ValueError, match="reduced=True is not there for chunks: leave it out"):
        ISRClassifier(ISRMean(1, reduced=True)).fit(chunked(random, X, y, e))


def test_a_fit_that_fails_is_not_a_fit(random):
    X, y, e = draw_chunkable(random)
    estimator = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    with pytest.raises(ValueError, match="one class"):
        estimator.fit(chunked(random, X, np.zeros(len(X)), e))
    assert not hasattr(estimator, "coef_")


def test_an_error_of_the_source_comes_through(random, monkeypatch):
    X, y, e = draw_chunkable(random)

    class Torn(Sliced):
        def __getitem__(self, rows):
            if rows.start > len(X) // 2:
                raise OSError("the disk is gone")
            return super().__getitem__(rows)

    monkeypatch.setattr(_source, "CHUNK_BYTES", X.nbytes // 7)
    with pytest.raises(OSError, match="the disk is gone"):
        ISRMean(1).fit(ChunkedRows.from_arrays(Torn(X), y, environments=e))


# --- chunks with little in them


@pytest.mark.parametrize(
    "estimator", [ISRMean(1), ISRCov(1), ISR(random_state=0), ISRClassifier(ISRMean(1))], ids=str
)
def test_chunks_without_rows_change_nothing(random, estimator):
    X, y, e = two_of_three(random)
    parts = cut(random, X, y, e)
    whole = estimator.fit(ChunkedRows.from_chunks(parts)).subspace_
    none = X[:0], y[:0], e[:0]
    for at in (0, 2, len(parts)):
        found = estimator.fit(ChunkedRows.from_chunks([*parts[:at], none, *parts[at:]]))
        np.testing.assert_array_equal(found.subspace_.directions, whole.directions)


@pytest.mark.parametrize(
    "estimator", [ISRMean(1), ISRCov(1), ISR(random_state=0), ISRClassifier(ISRMean(1))], ids=str
)
def test_chunks_of_unknown_environment_change_only_the_head(random, estimator):
    X, y, e = two_of_three(random)
    e = np.array(["a", "bc", "def", "g"])[e]
    whole = estimator.fit(chunked(random, X, y, e)).subspace_
    unknown = (X + 5, y, np.full(len(X), None))
    for parts in ([unknown, (X, y, e)], [(X, y, e), unknown]):
        assert_same_removal(estimator.fit(ChunkedRows.from_chunks(parts)).subspace_, whole)


@pytest.mark.parametrize(
    "estimator", [ISRMean(1), ISRCov(1), ISR(random_state=0), ISRClassifier(ISRMean(1))], ids=str
)
def test_chunks_of_weight_zero_change_nothing(random, estimator):
    X, y, e = two_of_three(random)
    ones = np.ones(len(X))
    whole = estimator.fit(ChunkedRows.from_chunks([(X, y, e, ones)])).subspace_
    for parts in ([(X, y, e, 0 * ones), (X, y, e, ones)], [(X, y, e, ones), (X, y, e, 0 * ones)]):
        assert_same_removal(estimator.fit(ChunkedRows.from_chunks(parts)).subspace_, whole)


def test_a_map_that_a_head_cannot_be_fitted_on_is_named(random, tmp_path, monkeypatch):
    monkeypatch.setattr("isrlearn.rows._source.LARGE_MAP", 0)
    X, y, e = draw_chunkable(random)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    clf = ISRClassifier(ISRMean(1), LogisticRegression(solver="newton-cg"))
    with pytest.raises(ValueError, match=r"X is a large memory map; np.array\(X\) has all rows"):
        clf.fit(mapped, y, environments=e)
    clf.fit(np.array(mapped), y, environments=e)
    with pytest.raises(ValueError, match=r"'lbfgs' does not.$"):
        clf.fit(ChunkedRows.from_arrays(X, y, environments=e))
