"""A fit that was stopped goes on where it was, and ends where it would have ended."""

from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest
from chunk_support import cut, draw_chunkable
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from isrlearn import ISR, CellMoments, ChunkedRows, ISRClassifier, ISRCov, ISRMean
from isrlearn._resume import RESULTS, _load, _save, digest
from isrlearn.heads._loss import AddLoss, TakeSample
from isrlearn.heads._row_weights import GroupFactors
from isrlearn.io import Resumed, open_rows
from isrlearn.moments._cells import AddMoments
from isrlearn.moments._evidence import CellTable, comparable
from isrlearn.moments._parts import AddUnits
from isrlearn.rows._source import Chunk, InMemory
from isrlearn.rows._validation import check_rows

ESTIMATORS = [
    ISRMean(1),
    ISRCov(1),
    ISR(1),
    ISR(random_state=0),
    ISRClassifier(ISRMean(1)),
    ISRClassifier(ISR(random_state=0), LogisticRegression(max_iter=1000)),
    ISRClassifier(ISRMean(1), RidgeClassifier()),
]


@dataclass
class Source:
    """Chunks that are counted as they are read, and that end in an interrupt."""

    parts: list
    n_read: int = 0
    n_left: float = np.inf

    def rows(self, **options):
        return ChunkedRows(self._chunks, self.parts[0][0].shape[1], **options)

    def _chunks(self):
        for part in self.parts:
            if self.n_left == 0:
                raise KeyboardInterrupt
            self.n_left -= 1
            self.n_read += 1
            yield Chunk(*part)


def draw_source(random, **options):
    X, y, e = draw_chunkable(random, unknown=0.2, names=True, **options)
    return Source(cut(random, X, y, e, random.uniform(0.5, 2, len(X)), n_cuts=5))


def results_of(estimator):
    """All numbers of a fit, for comparisons to the last bit."""
    arrays = {f"subspace {k}": v for k, v in estimator.subspace_.to_arrays().items()}
    if isinstance(estimator, ISRClassifier):
        arrays |= {"coef": estimator.coef_, "intercept": estimator.intercept_}
        estimator = estimator.isr_
    return arrays | estimator.moments_.to_arrays()


def assert_bit_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)
        assert np.asarray(found[name]).dtype == np.asarray(value).dtype, name


# --- done once, not done again


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_a_second_fit_reads_no_chunk(random, tmp_path, estimator):
    source = draw_source(random)
    expected = results_of(estimator.fit(source.rows()))
    n_read, source.n_read = source.n_read, 0
    assert_bit_equal(results_of(estimator.fit(Resumed(source.rows(), tmp_path))), expected)
    assert source.n_read == n_read
    source.n_read = 0
    assert_bit_equal(results_of(estimator.fit(Resumed(source.rows(), tmp_path))), expected)
    assert source.n_read == 0


def test_the_folder_is_made_and_holds_finished_sums_only(random, tmp_path):
    folder = tmp_path / "there" / "it is"
    estimator = ISRClassifier(ISR(random_state=0))
    estimator.fit(Resumed(draw_source(random).rows(), folder))
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) > 3


def test_what_is_known_of_the_rows_is_passed_on(random, tmp_path):
    rows = draw_source(random).rows(n_rows=7, feature_names=tuple("abcdef"))
    resumed = Resumed(rows, tmp_path)
    assert (resumed.n_rows, resumed.n_features) == (7, 6)
    assert ISRMean(1).fit(resumed).feature_names_in_.tolist() == list("abcdef")


def test_rows_of_any_kind_can_be_kept(random, tmp_path):
    X, y, e = draw_chunkable(random)
    rows = InMemory(check_rows(X, y, e))
    first = Resumed(rows, tmp_path).total(AddMoments(True))
    expected = AddMoments(True)(rows.rows)
    again = Resumed(InMemory(check_rows(0 * X, y, e)), tmp_path).total(AddMoments(True))
    for found in (first, again):
        assert_bit_equal(found.known.to_arrays(), expected.known.to_arrays())


# --- stopped and gone on with


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_finished_passes_are_not_done_again(random, tmp_path, estimator):
    source = draw_source(random)
    expected = results_of(estimator.fit(source.rows()))
    n_all, n_parts = source.n_read, len(source.parts)
    stop = int(random.integers(n_all))
    source.n_read, source.n_left = 0, stop
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(Resumed(source.rows(), tmp_path))
    source.n_left = np.inf
    assert_bit_equal(results_of(estimator.fit(Resumed(source.rows(), tmp_path))), expected)
    assert source.n_read == n_all + stop % n_parts


@pytest.mark.parametrize(
    ("kind", "at_the_end"),
    [
        ("arrays", False),
        ("arrays", True),
        ("npz", False),
        ("npz", True),
    ],
)
def test_a_fit_that_is_stopped_by_who_watches_goes_on(
    random, tmp_path, monkeypatch, kind, at_the_end
):
    monkeypatch.setattr("isrlearn.rows._source.CHUNK_BYTES", 2000)
    X, y, e = draw_chunkable(random)
    np.savez(tmp_path / "rows.npz", features=X, labels=y, environments=e)
    calls = []

    def watch(*progress):
        calls.append(progress)
        if len(calls) == n_calls:
            raise KeyboardInterrupt

    def rows():
        if kind == "npz":
            return open_rows(tmp_path / "rows.npz", watch=watch)
        return ChunkedRows.from_arrays(X, y, environments=e, watch=watch)

    n_calls, estimator = None, ISRClassifier(ISRMean(1))
    expected = results_of(estimator.fit(rows()))
    assert {what for what, _, _ in calls} == {"Moments", "Sample", "Head"}
    n_passes = sum(n_done == len(X) for _, n_done, _ in calls)
    n_chunks = len(calls) // n_passes
    n_calls = n_chunks * int(random.integers(1, n_passes + 1))
    if not at_the_end:  # of a pass
        n_calls -= int(random.integers(1, n_chunks))
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(Resumed(rows(), tmp_path / "sums"))
    n_calls = None
    assert_bit_equal(results_of(estimator.fit(Resumed(rows(), tmp_path / "sums"))), expected)


# --- sums of something else


def test_other_rows_get_sums_of_their_own(random, tmp_path):
    one, other = draw_source(random), draw_source(random)
    for source, made_of in ((one, "one"), (other, "other"), (one, "one")):
        expected = results_of(ISRClassifier(ISRMean(1)).fit(source.rows()))
        found = ISRClassifier(ISRMean(1)).fit(Resumed(source.rows(), tmp_path, made_of))
        assert_bit_equal(results_of(found), expected)


def test_rows_of_other_shape_get_sums_of_their_own(random, tmp_path):
    sources = [draw_source(random, n_features=d) for d in (5, 6)]
    for source in sources:
        expected = results_of(ISRMean(1).fit(source.rows()))
        assert_bit_equal(results_of(ISRMean(1).fit(Resumed(source.rows(), tmp_path))), expected)


def test_other_settings_get_their_own_results(random, tmp_path):
    source = draw_source(random)
    for estimator in (
        *ESTIMATORS,
        ISRMean(2),
        ISR(2),
        ISRClassifier(ISRMean(1), LogisticRegression(C=0.1)),
        ISRClassifier(ISRMean(1), LogisticRegression(C=0.1), group_weight=None),
        ISRClassifier(ISRMean(2), LogisticRegression(C=0.1)),
        ISRClassifier(ISRMean(1, scale=0.5), LogisticRegression(C=0.1)),
    ):
        expected = results_of(estimator.fit(source.rows()))
        assert_bit_equal(results_of(estimator.fit(Resumed(source.rows(), tmp_path))), expected)


def test_a_setting_that_changes_no_sum_reads_no_row_again(random, tmp_path):
    source = draw_source(random)
    ISRCov(1).fit(Resumed(source.rows(), tmp_path))
    source.n_read = 0
    found = ISRCov(2, scale=0.5).fit(Resumed(source.rows(), tmp_path))
    assert source.n_read == 0
    expected = ISRCov(2, scale=0.5).fit(source.rows())
    assert_bit_equal(results_of(found), results_of(expected))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        (1, 1.5),
        ((1, 2), (2, 1)),
        ((1, (2, 3)), (1, 2, 3)),
        (np.zeros(3), np.zeros(3, dtype=np.int64)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array(["a", None], object), np.array(["a", "b"], object)),
        (AddMoments(True), AddMoments(False)),
        (None, ""),
    ],
    ids=str,
)
def test_different_values_have_different_names(one, other):
    assert digest(one) == digest(one)
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"), [((1, 23), (12, 3)), (("", 2, 5600), ("", 25, 600))], ids=str
)
def test_numbers_that_read_the_same_have_different_names(one, other):
    assert digest(one) != digest(other)


def test_names_depend_on_every_number_of_a_pass(random):
    factors = GroupFactors(np.array(["a", "b"]), np.array([0, 1]), random.uniform(1, 2, (2, 3)))
    coef, bias = random.normal(size=(1, 4)), random.normal(size=1)
    name = digest(AddLoss(factors, coef, bias))
    assert name == digest(AddLoss(factors, coef.copy(), bias.copy()))
    tables = factors.table.copy()
    tables[1, 2] = np.nextafter(tables[1, 2], 9)
    for other in (
        AddLoss(factors, np.nextafter(coef, 9), bias),
        AddLoss(factors, coef, -bias),
        AddLoss(GroupFactors(factors.classes, factors.environments, tables), coef, bias),
        AddLoss(GroupFactors(factors.classes, factors.environments, None), coef, bias),
    ):
        assert digest(other) != name


# --- files


def passes_over(random):
    """Rows with names as labels, and every kind of pass over them."""
    X, y, e = draw_chunkable(random, n_classes=3, unknown=0.2, names=True)
    rows = check_rows(X, y, e, random.uniform(0.5, 2, len(X)))
    cells = comparable(CellMoments.from_checked(rows))
    factors = GroupFactors(rows.classes, rows.environments, random.uniform(1, 2, (3, 4)))
    leading = random.normal(size=(6, 2))
    passes = [
        AddMoments(True),
        AddMoments(False),
        AddUnits(CellTable.of(cells), leading),
        AddLoss(factors, random.normal(size=(3, 6)), random.normal(size=3)),
        TakeSample(factors, 3),
    ]
    return rows, passes


def leaves(value, name=""):
    """Every number of a result by its path."""
    if not is_dataclass(value):
        return {name: value}
    found = {name: type(value).__name__}
    for field in fields(value):
        found |= leaves(getattr(value, field.name), f"{name}.{field.name}")
    return found


def test_every_result_comes_back_from_its_file(random, tmp_path):
    rows, passes = passes_over(random)
    results = [function(rows) for function in passes]
    results.append(results[0].known)
    kinds = set()
    for result in results:
        _save(tmp_path / "a.npz", result)
        found = _load(tmp_path / "a.npz")
        assert leaves(found).keys() == leaves(result).keys()
        for name, value in leaves(result).items():
            back = leaves(found)[name]
            if isinstance(value, np.ndarray):
                assert back.dtype == value.dtype
                np.testing.assert_array_equal(back, value)
            else:
                assert back == value
                assert type(back) is type(value)
        kinds.add(type(result).__name__)
    assert kinds == set(RESULTS)


def test_what_comes_back_can_be_added_to(random, tmp_path):
    rows, passes = passes_over(random)
    for function in passes:
        result, expected = function(rows), function(rows)
        expected += function(rows)
        _save(tmp_path / "a.npz", result)
        found = _load(tmp_path / "a.npz")
        found += function(rows)
        for name, value in leaves(expected).items():
            np.testing.assert_array_equal(leaves(found)[name], value)


def test_moments_of_no_rows_come_back(tmp_path):
    for second_order in (True, False):
        empty = CellMoments.empty(3, second_order=second_order)
        _save(tmp_path / "a.npz", empty)
        found = _load(tmp_path / "a.npz")
        assert_bit_equal(found.to_arrays(), empty.to_arrays())


class Bomb:
    """Something that goes off when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a file was unpickled",)


def test_nothing_is_unpickled(random, tmp_path):
    source = draw_source(random)
    expected = results_of(ISRClassifier(ISR(random_state=0)).fit(Resumed(source.rows(), tmp_path)))
    files = list(tmp_path.iterdir())
    assert {path.suffix for path in files} == {".npz"}
    for path in files:
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)
        bomb = np.array([Bomb()], dtype=object)
        np.savez(path, **{"result.type": bomb})
    again = ISRClassifier(ISR(random_state=0)).fit(Resumed(source.rows(), tmp_path))
    assert_bit_equal(results_of(again), expected)


def test_a_damaged_file_is_made_anew(random, tmp_path):
    source = draw_source(random)
    expected = results_of(ISRClassifier(ISRMean(1)).fit(Resumed(source.rows(), tmp_path)))
    for path in tmp_path.iterdir():
        content = bytearray(path.read_bytes())
        place = int(random.integers(len(content)))
        if random.random() < 0.5:
            content[place] ^= int(random.integers(1, 256))
        else:
            del content[place:]
        path.write_bytes(content)
    again = ISRClassifier(ISRMean(1)).fit(Resumed(source.rows(), tmp_path))
    assert_bit_equal(results_of(again), expected)


def test_a_result_of_a_kind_that_is_not_known_is_not_kept(random, tmp_path):
    source = draw_source(random)

    def count(rows):
        return len(rows.X)

    n_rows = sum(len(part[0]) for part in source.parts)
    for _ in range(2):
        assert Resumed(source.rows(), tmp_path).total(count) == n_rows
    assert source.n_read == 2 * len(source.parts)


def test_sums_under_the_name_of_another_pass_are_taken_again(random, tmp_path):
    estimator = ISRClassifier(ISRMean(1), RidgeClassifier())
    source = draw_source(random)
    expected = results_of(estimator.fit(Resumed(source.rows(), tmp_path)))
    for path in sorted(tmp_path.iterdir()):
        _save(tmp_path / "other.npz", _load(path))
        (tmp_path / "other.npz").replace(path)
        assert _load(path) is None
    n_read = source.n_read
    assert_bit_equal(results_of(estimator.fit(Resumed(source.rows(), tmp_path))), expected)
    assert source.n_read > n_read
