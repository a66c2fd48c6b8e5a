"""Each mistake gets a message that names it and the way out."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from bad_inputs.estimators import BAD_PAIRS, BAD_PARAMETERS
from bad_inputs.rows import BAD_ROWS, BAD_WEIGHTS
from conftest import draw_rows
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import isrlearn
from isrlearn import ISR, CellMoments, ISRClassifier, ISRCov, ISRMean, ISRRegressor
from isrlearn.exceptions import EmptyCellWarning, SingleEnvironmentWarning, TinyCellWarning

ESTIMATORS = [
    ISRMean(),
    ISRCov(),
    ISR(1),
    ISRClassifier(ISR(1), LogisticRegression(max_iter=5000)),
    ISRClassifier(ISRCov(), RidgeClassifier(), group_weight="balanced"),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


@pytest.fixture
def rows(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3)
    return X / X.std(axis=0), y, e


@every_estimator
@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows(estimator, name, rows):
    spoil, message = BAD_ROWS[name]
    X, y, e = spoil(*rows)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        clone(estimator).fit(X, y, environments=e)


@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_more_directions_than_the_data_identify(isr, rows):
    X, y, e = rows
    for estimator in (
        clone(isr).set_params(n_spurious=9),
        ISRClassifier(clone(isr).set_params(n_spurious=9)),
    ):
        with pytest.raises(ValueError, match="n_spurious=9 would leave nothing of 5 .*at most 4"):
            estimator.fit(X, y, environments=e)
    with pytest.raises(ValueError, match="n_spurious=5 would leave nothing"):
        clone(isr).set_params(n_spurious=5).fit(X, y, environments=e)
    assert clone(isr).set_params(n_spurious=4).fit(X, y, environments=e).n_spurious_ == 4


def test_isr_mean_counts_what_each_class_identifies(rows):
    X, y, e = rows
    with pytest.raises(ValueError, match="n_spurious=3 is more .* at most 2, .*3 environments"):
        ISRMean(3, condition_on=1).fit(X, y, environments=e)
    assert ISRMean(3, condition_on=[0, 1]).fit(X, y, environments=e).n_spurious_ == 3


@every_estimator
def test_an_empty_cell_beside_good_ones_is_a_warning(estimator, rows):
    X, y, e = rows
    kept = (y != 2) | (e != 1)
    with pytest.warns(EmptyCellWarning, match="class 2 in environment 1"):
        fitted = clone(estimator).fit(X[kept], y[kept], environments=e[kept])
    assert fitted.n_spurious_ == 1


@every_estimator
def test_a_class_seen_in_one_environment_is_left_out(estimator, rows):
    X, y, e = rows
    kept = (y != 2) | (e == 1)
    with pytest.warns(EmptyCellWarning, match="left out"):
        fitted = clone(estimator).fit(X[kept], y[kept], environments=e[kept])
    two = kept & (y != 2)
    expected = clone(estimator).fit(X[two], y[two], environments=e[two])
    assert fitted.subspace_.angles_to(expected.subspace_).max() < 1e-6


def test_a_class_of_unknown_environment_only_is_a_warning(rows):
    X, y, e = rows
    environments = np.where(y == 2, None, e.astype(object))
    with pytest.warns(EmptyCellWarning, match="class 2 in environment 0"):
        clf = ISRClassifier().fit(X, y, environments=environments)
    assert clf.classes_.tolist() == [0, 1, 2]


def test_tiny_cells_are_a_warning_and_single_rows_have_no_covariance(rows):
    X, y, e = rows
    cell = np.flatnonzero((y == 1) & (e == 2))
    kept = np.setdiff1d(np.arange(len(X)), cell[1:])
    with pytest.warns(TinyCellWarning, match="class 1 in environment 2 has 1"):
        ISRMean().fit(X[kept], y[kept], environments=e[kept])
    with pytest.warns(
        EmptyCellWarning, match="^single or identical rows in class 1 in environment 2"
    ):
        with_one = ISRCov(2).fit(X[kept], y[kept], environments=e[kept])
    without = np.setdiff1d(np.arange(len(X)), cell)
    with pytest.warns(EmptyCellWarning):
        expected = ISRCov(2).fit(X[without], y[without], environments=e[without])
    assert with_one.subspace_.angles_to(expected.subspace_).max() < 1e-6


@every_estimator
def test_no_environments_at_all_is_a_warning(estimator, rows):
    X, y, _ = rows
    with pytest.warns(SingleEnvironmentWarning, match="nothing is removed"):
        fitted = clone(estimator).fit(X, y)
    assert fitted.n_spurious_ == 0


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=str)
@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_bad_parameters(isr, parameters, message, rows):
    X, y, e = rows
    with pytest.raises(ValueError, match=message):
        clone(isr).set_params(**parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("pairs", BAD_PAIRS)
def test_bad_pairs(pairs, rows):
    X, y, e = rows
    with pytest.raises(ValueError, match=r"must be 'all', 'distinct', or two .*\[0, 1, 2\]"):
        ISRCov(pairs=pairs).fit(X, y, environments=e)


def test_a_pair_without_a_common_class(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=2, n_environments=4)
    kept = ((y == 0) & (e < 2)) | ((y == 1) & (e >= 2))
    with pytest.warns(EmptyCellWarning), pytest.raises(ValueError, match="no class in common"):
        ISRCov(pairs=(0, 2)).fit(X[kept], y[kept], environments=e[kept])


@every_estimator
@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights(estimator, name, rows):
    weights, message = BAD_WEIGHTS[name]
    X, y, e = rows
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(X, y, environments=e, sample_weight=weights(len(X)))


def test_a_stream_may_begin_with_one_environment_and_unknown_rows(rows):
    """Chunks need not be complete; only asking too early is an error."""
    X, y, e = rows
    isr = ISRMean().partial_fit(X[e == 0], y[e == 0], environments=e[e == 0])
    with pytest.raises(ValueError, match="at least 2"):
        isr.transform(X)
    isr.partial_fit(X[:5], y[:5], environments=[None] * 5).partial_fit(X[:5], y[:5])
    isr.partial_fit(X[e > 0], y[e > 0], environments=e[e > 0])
    expected = ISRMean().fit(X, y, environments=e)
    np.testing.assert_allclose(isr.transform(X), expected.transform(X), atol=1e-8)


def test_refitting_forgets_the_rows_before(rows):
    X, y, e = rows
    isr = ISRMean().fit(100 * X, y, environments=e).fit(X, y, environments=e)
    expected = ISRMean().fit(X, y, environments=e)
    np.testing.assert_array_equal(isr.spectrum_, expected.spectrum_)


def test_moments_refuse_bad_rows_too(rows):
    X, y, e = rows
    with pytest.raises(ValueError, match="sparse"):
        CellMoments.from_rows(csr_array(X), y, e)
    with pytest.raises(ValueError, match="environments has"):
        CellMoments.empty(5).update(X, y, e[:-1])


def test_good_rows_give_no_warning(rows):
    X, y, e = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ISRMean(2).fit(X, y, environments=e)
        ISRCov(2).fit(X, y, environments=e)


def test_features_too_large_to_square(rows):
    X, y, e = rows
    for estimator in (ISRCov(), ISRMean()):
        with pytest.raises(ValueError, match="so large .* overflow: scale the features"):
            estimator.fit(X * 1e160, y, environments=e)


def test_large_values_in_single_precision_are_no_problem(rows):
    X, y, e = rows
    huge = ISRCov().fit((X * 1e30).astype(np.float32), y, environments=e)
    usual = ISRCov().fit(X.astype(np.float32), y, environments=e)
    assert huge.subspace_.angles_to(usual.subspace_).max() < 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_rows_on_a_plane_identify_no_more_than_its_directions(isr, dtype, random):
    """Rounding must not pass for a direction, in either precision."""
    X, y, e = draw_rows(random.integers(2**31), n_classes=2, n_environments=5, n_features=2)
    embedded = (X @ random.normal(size=(2, 6)) + random.normal(size=6)).astype(dtype)
    assert clone(isr).set_params(n_spurious=2).fit(embedded, y, environments=e).n_spurious_ == 2
    with pytest.raises(ValueError, match="n_spurious=3 is more .* at most 2, "):
        clone(isr).set_params(n_spurious=3).fit(embedded, y, environments=e)


def test_a_few_rows_identify_few_covariance_directions(random):
    X, y, e = draw_rows(random.integers(2**31), n_environments=2, n_features=20, per_cell=5)
    small = np.concatenate(
        [np.flatnonzero((y == c) & (e == i))[:5] for c in (0, 1) for i in (0, 1)]
    )
    for dtype in (np.float32, np.float64):
        with pytest.raises(ValueError, match="n_spurious=19 .* at most 16,"):
            ISRCov(19).fit(X[small].astype(dtype), y[small], environments=e[small])


def test_rows_that_are_the_same_in_each_environment_identify_nothing(random):
    """Also when they come in another order, so that sums differ in their last bits."""
    rows, labels = 1e3 + random.normal(size=(60, 4)), np.arange(60) % 2
    order = random.permutation(60)
    X, y = np.concatenate([rows, rows[order]]), np.concatenate([labels, labels[order]])
    e = np.repeat([0, 1], 60)
    for isr in (ISRMean(), ISRCov()):
        with pytest.raises(ValueError, match="no direction is identified"):
            isr.fit(X, y, environments=e)


def test_rows_of_weight_zero_are_absent(rows):
    X, y, e = rows
    extra = np.vstack([X, 50 + X[:9]])
    environments = [*e.tolist(), *[99] * 9]
    weights = np.append(np.ones(len(X)), np.zeros(9))
    for isr in (ISRMean(2), ISRCov(2)):
        with_extra = clone(isr).fit(
            extra, np.append(y, [7] * 9), environments=environments, sample_weight=weights
        )
        assert with_extra.environments_.tolist() == [0, 1, 2]
        assert with_extra.classes_.tolist() == [0, 1, 2]
        expected = clone(isr).fit(X, y, environments=e)
        np.testing.assert_allclose(with_extra.transform(X), expected.transform(X), atol=1e-8)


def test_a_class_named_in_condition_on_needs_known_environments(rows):
    X, y, e = rows
    environments = np.where(y == 2, None, e.astype(object))
    with pytest.raises(
        ValueError, match=r"no class out of \[2\] .*no row of these has a known environment"
    ):
        ISRMean(condition_on=2).fit(X, y, environments=environments)


@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_a_fit_that_fails_leaves_no_fit(isr, rows):
    X, y, e = rows
    isr = clone(isr).fit(X, y, environments=e)
    for bad in ([None] * len(X), np.zeros(len(X))):
        with pytest.raises(ValueError, match="no known value|at least 2"):
            isr.fit(X[:, :3], y, environments=bad)
        with pytest.raises(NotFittedError):
            isr.transform(X)
    clf = ISRClassifier(isr, RidgeClassifier()).fit(X, y, environments=e)
    with pytest.raises(ValueError, match="alpha"):
        clf.set_params(head__alpha=-1).fit(X, y, environments=e)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_a_stream_with_one_environment_so_far_can_be_looked_at(rows):
    X, y, e = rows
    isr = ISRMean().partial_fit(X[e == 0], y[e == 0], environments=e[e == 0])
    assert not hasattr(isr, "subspace_")
    assert "ISRMean" in isr._repr_html_()


def test_warnings_point_at_the_line_of_the_user(rows):
    X, y, e = rows
    kept = (y != 2) | (e != 1)
    calls = {
        SingleEnvironmentWarning: lambda est: est.fit(X, y),
        EmptyCellWarning: lambda est: est.fit(X[kept], y[kept], environments=e[kept]),
    }
    for estimator in ESTIMATORS:
        for category, call in calls.items():
            with pytest.warns(category) as caught:
                call(clone(estimator))
            assert [w.filename for w in caught] == [__file__]


def test_labels_of_other_kinds_are_environments(rows):
    """Dates, bytes-free NumPy strings, booleans: whatever can be sorted."""
    X, y, e = rows
    expected = ISRMean().fit(X, y, environments=e).transform(X)
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")[e]
    unknown = np.append(days, np.datetime64("NaT", "D"))
    isr = ISRMean().fit(np.vstack([X, X[:1]]), np.append(y, y[0]), environments=unknown)
    np.testing.assert_allclose(isr.transform(X), expected, atol=1e-9)
    if hasattr(np.dtypes, "StringDType"):
        names = np.array(["a", "b", "c"])[e].astype(np.dtypes.StringDType())
        np.testing.assert_allclose(ISRMean().fit(X, y, environments=names).transform(X), expected)


@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_a_large_constant_column_does_not_hide_the_others(isr, random):
    """Rounding is counted per column: an identifier or a time stamp decides nothing."""
    X, y, e = draw_rows(random.integers(2**31), n_environments=2, n_features=4, per_cell=200)
    wide = np.c_[np.full(len(X), 1e7), X].astype(np.float32)
    found = clone(isr).fit(wide, y, environments=e).spurious_components_[0]
    expected = clone(isr).fit(X, y, environments=e).spurious_components_[0]
    assert abs(found[1:] @ expected) > 0.999


@pytest.mark.parametrize("isr", [ISRMean(), ISRCov()])
def test_float32_far_from_zero_still_averages(isr, random):
    """Values are off by more than half of their spread, their moments are not."""
    y, e = np.arange(8000) % 2, np.arange(8000) // 2 % 2
    X = 0.1 * random.normal(size=(8000, 3))
    X[:, 0] = X[:, 0] * np.where(e == 1, 3, 1) + 0.2 * e
    found = clone(isr).fit((1e6 + X).astype(np.float32), y, environments=e)
    assert abs(found.spurious_components_[0, 0]) > 0.95


def test_the_weight_of_an_environment_does_not_hide_it(random):
    X, y, e = draw_rows(random.integers(2**31), n_environments=2)
    weights = np.where(e == 0, 1e-9, 1.0)
    for dtype in (np.float32, np.float64):
        light = ISRMean(condition_on=[0, 1]).fit(
            (X + 1e3).astype(dtype), y, environments=e, sample_weight=weights
        )
        assert light.n_spurious_ == 1


def test_columns_of_very_different_sizes(random):
    X, y, e = draw_rows(random.integers(2**31), per_cell=100)
    scaled = X * 10.0 ** np.array([-5, -2, 0, 3, 5])
    assert ISRMean(2).fit(scaled, y, environments=e).n_spurious_ == 2
    assert ISRCov(2).fit(scaled, y, environments=e).n_spurious_ == 2


def test_more_features_than_rows(random):
    X, y, e = draw_rows(random.integers(2**31), n_features=200, per_cell=8)
    assert ISRMean(4).fit(X, y, environments=e).transform(X).shape == X.shape
    assert ISRCov(5).fit(X, y, environments=e).transform(X).shape == X.shape
    with pytest.raises(ValueError, match="'distinct' cannot tell .* needs 800"):
        ISRCov(5, pairs="distinct").fit(X, y, environments=e)


def test_masked_environments_are_unknown(rows):
    X, y, e = rows
    hidden = np.arange(len(X)) % 4 == 0
    masked = np.ma.array(np.where(hidden, 9, e), mask=hidden)
    isr = ISRMean(2).fit(X, y, environments=masked)
    assert isr.environments_.tolist() == [0, 1, 2]
    expected = ISRMean(2).fit(X[~hidden], y[~hidden], environments=e[~hidden])
    np.testing.assert_allclose(isr.transform(X), expected.transform(X))
    with pytest.raises(ValueError, match="masked"):
        ISRMean().fit(X, y, environments=e, sample_weight=np.ma.array(np.ones(len(X)), mask=hidden))


def test_lists_of_numpy_booleans_are_labels(rows):
    X, y, e = rows
    isr = ISRMean().fit(X, y, environments=list(e == 1))
    assert isr.environments_.tolist() == [False, True]


def test_labels_with_na_are_named(rows):
    X, y, e = rows
    labels = pd.Series(y).astype("Int64").mask(np.arange(len(y)) == 3)
    for missing in (labels, pd.Series(y.astype(str)).where(np.arange(len(y)) != 3, pd.NA)):
        with pytest.raises(ValueError, match="missing labels|contains NaN"):
            ISRMean().fit(X, missing, environments=e)


def test_an_environment_without_spread_is_named(rows):
    X, y, e = rows
    flat = np.where((e == 0)[:, None], 1.0, X)
    two = e < 2
    with pytest.raises(ValueError, match="single or identical rows in class 0 in environment 0"):
        ISRCov().fit(flat[two], y[two], environments=e[two])


@pytest.mark.parametrize("isr", [ISRMean(0), ISRCov(0, pairs="distinct")])
def test_nothing_to_remove_compares_nothing(isr, rows):
    X, y, _ = rows
    for environments in (y, np.zeros(len(y))):
        found = clone(isr).fit(X, y, environments=environments)
        np.testing.assert_array_equal(found.transform(X), X)


def test_a_chunk_of_weight_zero_is_no_rows(rows):
    X, y, e = rows
    isr = ISRMean(2).partial_fit(X + 9, y, environments=e, sample_weight=np.zeros(len(X)))
    isr.partial_fit(X, y, environments=e)
    isr.partial_fit(X - 9, y, environments=e, sample_weight=np.zeros(len(X)))
    expected = ISRMean(2).fit(X, y, environments=e)
    np.testing.assert_allclose(isr.transform(X), expected.transform(X), atol=1e-9)


def test_a_stream_of_unknown_environments_is_an_error_as_in_fit(rows):
    X, y, _ = rows
    isr = ISRMean().partial_fit(X, y, environments=[None] * len(X))
    with pytest.raises(ValueError, match="no known value"):
        isr.transform(X)


@pytest.mark.parametrize("factor", [1e-200, 1e140])
def test_weights_of_any_size(factor, rows):
    X, y, e = rows
    for isr in (ISRMean(2), ISRCov(2)):
        scaled = clone(isr).fit(X, y, environments=e, sample_weight=np.full(len(X), factor))
        expected = clone(isr).fit(X, y, environments=e)
        np.testing.assert_allclose(scaled.transform(X), expected.transform(X), atol=1e-8)


def test_a_cell_is_tiny_below_five_rows(rows):
    X, y, e = rows
    cell = np.flatnonzero((y == 1) & (e == 2))
    for n, is_tiny in ((4, True), (5, False)):
        kept = np.setdiff1d(np.arange(len(X)), cell[n:])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ISRMean().fit(X[kept], y[kept], environments=e[kept])
        assert [w.category for w in caught] == [TinyCellWarning] * is_tiny


def test_text_in_a_table_is_named_by_column(rows):
    X, y, e = rows
    table = pd.DataFrame(X).rename(columns=str).assign(hospital=np.array(["A", "B", "C"])[e])
    for estimator, target in ((ISR(1), y), (ISRRegressor(), X[:, 0])):
        with pytest.raises(ValueError, match=r"text in column\(s\) \['hospital'\]"):
            estimator.fit(table, target, environments=e)


@pytest.mark.parametrize(
    ("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")], ids=["NaN", "infinity"]
)
@pytest.mark.parametrize("as_table", [False, True])
def test_values_that_are_not_finite_are_named_by_column(rows, value, what, as_table):
    X, y, e = rows
    bad = X.copy()
    bad[3, 1] = bad[5, 1] = bad[5, 2] = value
    names, fitted = [1, 2], ISR(1).fit(X, y, environments=e)
    if as_table:
        columns = [f"age {j}" for j in range(X.shape[1])]
        X, bad = pd.DataFrame(X, columns=columns), pd.DataFrame(bad, columns=columns)
        names, fitted = columns[1:3], ISR(1).fit(X, y, environments=e)
    text = re.escape(f"X contains {what} in column(s) {names}, in 2 of {len(X)} rows: drop")
    for estimator, target in ((ISR(1), y), (ISRRegressor(), e + 0.5 * y)):
        with pytest.raises(ValueError, match=text):
            estimator.fit(bad, target, environments=e)
    with pytest.raises(ValueError, match=text):
        fitted.transform(bad)


def test_missing_labels_among_text_are_named(rows):
    X, y, e = rows
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[3] = None
    with pytest.raises(ValueError, match="y has missing labels"):
        ISR(1).fit(X, labels, environments=e)


def test_messages_of_a_regression_speak_of_environments_only(rows):
    X, _, e = rows
    y = X[:, 0] + X[:, 1] ** 2  # no column itself, which would leave rounding errors of it
    with pytest.raises(ValueError, match=r"^nothing can be compared .* rows in environment '0', "):
        ISRRegressor().fit(X, y, environments=np.arange(len(X)).astype(str))
    with pytest.warns(TinyCellWarning, match="rows: environment 7 has 3"):
        ISRRegressor(ISR(1)).fit(X, y, environments=np.where(np.arange(len(X)) < 3, 7, e))


@pytest.mark.parametrize("date", [np.datetime64("2020-01-01"), datetime.date(2020, 1, 1)])
def test_dates_among_objects_are_not_counted_in_days(rows, date):
    X, y, e = rows
    X = X.astype(object)
    X[3, 1] = date
    with pytest.raises(ValueError, match="X holds dates or times"):
        ISRMean().fit(X, y, environments=e)


def test_none_in_the_target_of_a_regression_is_missing(rows):
    X, _, e = rows
    with pytest.raises(ValueError, match="y has missing values"):
        ISRRegressor(ISR(1)).fit(X, [None, *X[1:, 0]], environments=e)


def test_a_tensor_leaves_its_gradients_behind(rows):
    torch = pytest.importorskip("torch")
    X, y, e = rows
    tensor = torch.tensor(X, requires_grad=True)
    found = ISRMean(1).fit(tensor, y, environments=e)
    wanted = ISRMean(1).fit(X, y, environments=e)
    np.testing.assert_array_equal(found.spurious_components_, wanted.spurious_components_)
    np.testing.assert_array_equal(found.transform(tensor), wanted.transform(X))
    for other in (tensor.bfloat16(), tensor.detach().to_sparse()):
        with pytest.raises(TypeError, match=r"X is a tensor of the type .*: pass X\.float\(\)"):
            ISRMean(1).fit(other, y, environments=e)


def test_identifiers_of_64_bits_are_labels(rows):
    X, y, e = rows
    ids = np.unique(e, return_inverse=True)[1].astype(np.uint64) + np.uint64(2**63)
    expected = ISRMean(1).fit(X, y, environments=e).spurious_components_
    found = ISRMean(1).fit(X, y, environments=ids)
    np.testing.assert_array_equal(found.spurious_components_, expected)
    assert found.environments_.dtype == np.uint64


# --- environments that are measured


def drawn(random, values):
    """Rows of two classes, one for each value of the environments."""
    return random.normal(size=(len(values), 3)), np.arange(len(values)) % 2


@pytest.mark.parametrize("estimator", [ISRMean(1), ISRClassifier(ISRMean(1)), ISRRegressor()])
def test_numbers_of_many_values_are_no_environments(estimator, random):
    measured = {
        "62 different numbers": np.repeat(np.arange(18, 80), 2)[:123],
        "21 different numbers": np.repeat(np.arange(21) + 0.5, 50),
        "90 different dates": np.datetime64("2020-01-01") + np.arange(90),
        "25 different numbers": np.append(np.repeat(np.arange(25.0), 2), [np.nan] * 50),
    }
    measured[
        "62 different numbers: bin them first.*cut.*hospital.*write them as text, such as site7"
    ] = measured["62 different numbers"].astype(float)
    for says, values in measured.items():
        X, y = drawn(random, values)
        with pytest.raises(ValueError, match=f"environments has {says}"):
            clone(estimator).fit(X, y, environments=values)
    if isinstance(estimator, ISRMean):
        X, y = drawn(random, values := measured["21 different numbers"])
        with pytest.raises(ValueError, match="21 different"):
            clone(estimator).partial_fit(X, y, environments=values)


@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.TinyCellWarning")
@pytest.mark.filterwarnings("ignore::isrlearn.exceptions.EmptyCellWarning")
def test_codes_of_many_groups_are_environments(random):
    codes = {
        "hospitals": np.repeat(np.arange(100), 4),
        "the fewest rows of many": np.repeat(np.arange(21), 3),
        "few values of few rows": np.repeat(np.arange(20), 2),
        "few fractions": np.repeat(np.arange(20) + 0.5, 2),
        "text": np.repeat(np.arange(60), 2).astype(str),
        "some are unknown": np.append(np.repeat(np.arange(21.0), 3), [np.nan] * 9),
    }
    for name, values in codes.items():
        X, y = drawn(random, values)
        isr = ISRMean(1).fit(X, y, environments=values)
        assert len(isr.environments_) == len(set(values[values == values])), name
    X, y = drawn(random, ids := np.arange(50))
    stream = ISRMean(1).partial_fit(X, y, environments=ids)  # more rows of each may come
    assert len(stream.partial_fit(X, 1 - y, environments=ids).environments_) == 50


def test_compare_and_select_refuse_measured_environments(random):
    X, y = drawn(random, ages := np.repeat(np.arange(18, 90), 2))
    with pytest.raises(ValueError, match="72 different numbers: bin them first"):
        isrlearn.select(X, y, environments=ages)
    ages = np.repeat(ages, 2)  # of which two rows each are there to train on
    X, y = random.normal(size=(len(ages), 3)), ages % 2
    with pytest.raises(ValueError, match="72 different numbers: bin them first"):
        isrlearn.compare(X, y, environments=ages, methods=["isr"])
