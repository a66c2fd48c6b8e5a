"""ISR given a continuous target."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from isrlearn import ISR, CellMoments, ISRMean, ISRRegressor
from isrlearn.exceptions import EmptyCellWarning, SingleEnvironmentWarning
from isrlearn.moments._evidence import given_response


def draw(seed, E=5, d_c=4, d_s=4, n=3000, shift=1.5):
    """Rows of E environments, span(B), and rows of one more environment."""
    random = np.random.default_rng(seed)
    d = d_c + d_s
    R = np.linalg.qr(random.normal(size=(d, d)))[0] * random.uniform(0.5, 2, d)
    invariant, level = random.normal(size=d_c), shift * random.normal(size=(E + 1, d_s))
    slope = shift * (1 + random.normal(size=(E + 1, d_s)))
    slope[E] = -slope[:E].mean(axis=0)  # in the new environment the cue is reversed
    parts = []
    for e in range(E + 1):
        y = random.normal(size=n) + 0.2 * e
        z_c = np.outer(y, invariant) + random.normal(size=(n, d_c))
        z_e = level[e] + np.outer(y, slope[e]) + random.normal(size=(n, d_s))
        parts.append((np.hstack([z_c, z_e]) @ R.T, y))
    X, y = (np.concatenate(a) for a in zip(*parts[:-1], strict=True))
    return X, y, np.repeat(np.arange(E), n), R[:, d_c:], parts[-1]


def seed_of(random):
    return int(random.integers(2**31))


def test_it_recovers_the_span_and_beats_the_plain_head_elsewhere(random):
    angles, gains = [], []
    for _ in range(5):
        X, y, e, B, (X_new, y_new) = draw(seed_of(random))
        ours = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e)
        assert ours.n_spurious_ >= 4
        angles.append(ours.subspace_.angles_to(B.T).max())
        plain = Ridge().fit(X, y)
        gains.append(ours.score(X_new, y_new) - plain.score(X_new, y_new))
    assert np.median(angles) < 0.1
    assert np.median(gains) > 0


def test_moments_of_x_and_y_give_the_regression_of_each_environment(random):
    X, y, e, _, _ = draw(seed_of(random), E=3, n=200)
    weights = random.integers(1, 4, size=len(y))
    cells = CellMoments.from_rows(np.column_stack([X, y]), np.zeros(len(y)), e, weights)
    cond = given_response(cells)
    for k in range(3):
        rows = np.repeat(np.flatnonzero(e == k), weights[e == k])
        model = LinearRegression().fit(y[rows, None], X[rows])
        np.testing.assert_allclose(cond.coefs[k, 0], model.intercept_, atol=1e-8)
        np.testing.assert_allclose(cond.coefs[k, 1], model.coef_[:, 0], atol=1e-8)
        residual = X[rows] - model.predict(y[rows, None])
        expected = residual.T @ residual / (len(rows) - 2)
        np.testing.assert_allclose(cond.scatters[k] / cond.freedom[k], expected, atol=1e-8)
        phi = np.column_stack([np.ones(len(rows)), y[rows]])
        np.testing.assert_allclose(cond.grams[k], phi.T @ phi, rtol=1e-9)


def test_an_affine_change_of_the_target_changes_nothing(random):
    X, y, e, _, _ = draw(seed_of(random), n=500)
    here = ISRRegressor(ISR(4)).fit(X, y, environments=e)
    there = ISRRegressor(ISR(4)).fit(X, 1000 - 7 * y, environments=e)
    assert here.subspace_.angles_to(there.subspace_).max() < 1e-6


def test_an_offset_of_the_target_changes_nothing_in_the_tests(random):
    X, y, e, _, _ = draw(seed_of(random), n=500)
    here, there = (
        ISRRegressor(ISR(random_state=0)).fit(X, target, environments=e)
        for target in (y, 1e6 + 1e-3 * y)
    )
    np.testing.assert_allclose(here.rank_choice_.p_values, there.rank_choice_.p_values, atol=0.02)


def test_an_environment_of_one_row_is_left_out(random):
    X, y, e, _, _ = draw(seed_of(random), n=300)
    e[0] = 99
    with pytest.warns(EmptyCellWarning, match="99"):
        reg = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e)
    assert reg.n_spurious_ >= 1


@pytest.mark.parametrize("value", [0.0, 0.3, 1e9])
@pytest.mark.parametrize("isr", [ISR(random_state=0), ISR(1)], ids=str)
def test_a_target_may_be_constant_in_an_environment(random, value, isr):
    X, y, e, _, _ = draw(seed_of(random), n=200)
    y = np.where(e == 1, value, y)
    reg = ISRRegressor(isr).fit(X, y, environments=e)
    assert np.isfinite(reg.coef_).all()
    assert np.isfinite(ISRRegressor(isr).fit(X, 0 * y + value, environments=e).coef_).all()


def test_rounding_errors_of_a_constant_target_have_no_slope(random):
    X, y, e, _, _ = draw(seed_of(random), n=200)
    y = np.where(e == 1, 0.3, y)
    plain = ISRRegressor(ISR(1)).fit(X, y, environments=e)
    y[e == 1] += np.spacing(0.3) * random.integers(-1, 2, np.sum(e == 1))
    rounded = ISRRegressor(ISR(1)).fit(X, y, environments=e)
    assert rounded.subspace_.angles_to(plain.subspace_).max() < 1e-6


def test_targets_that_do_not_overlap_cannot_be_tested(random):
    """Each stratum has one environment: all permutations are the data, but for rounding."""
    e = np.repeat([0, 1, 2, 3], 500)
    y = random.uniform(size=2000) + 2 * e
    X = random.normal(size=(2000, 3)) + y[:, None]
    reg = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=e)
    assert reg.n_spurious_ == 0
    assert reg.rank_choice_.p_values[0] == 1


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e160])
def test_a_unit_of_the_target_changes_nothing(random, unit):
    X, y, e, _, _ = draw(seed_of(random), n=200)
    found = [
        ISRRegressor(ISR(random_state=0)).fit(X, factor * y, environments=e).subspace_
        for factor in (1.0, unit)
    ]
    assert found[0].rank == found[1].rank
    assert found[0].rank == 0 or found[0].angles_to(found[1]).max() < 1e-6


def test_nothing_is_removed_where_nothing_differs(random):
    removed = 0
    for _ in range(20):
        y = random.normal(size=400) + random.integers(0, 2, 400)
        e = random.integers(0, 3, 400)
        y = y + 0.3 * e  # the target may differ; only its relation to X must not
        X = np.outer(y, [1.0, -1, 0]) + random.standard_t(4, size=(400, 3))
        isr = ISR(alpha=0.1, n_permutations=49, random_state=seed_of(random))
        removed += ISRRegressor(isr).fit(X, y, environments=e).n_spurious_ > 0
    assert removed <= 9


def test_coefficients_are_those_of_the_pipeline(random):
    X, y, e, _, (X_new, _) = draw(seed_of(random), n=300)
    reg = ISRRegressor(ISR(3, scale=0.2), Ridge(alpha=2.0)).fit(X, y, environments=e)
    np.testing.assert_allclose(X_new @ reg.coef_ + reg.intercept_, reg.predict(X_new), atol=1e-7)


def test_weights_are_repeated_rows_and_unknown_environments_train_the_head_only(random):
    X, y, e, _, _ = draw(seed_of(random), n=100)
    weights = random.integers(0, 3, size=len(y))
    a = ISRRegressor(ISR(2)).fit(X, y, environments=e, sample_weight=weights)
    b = ISRRegressor(ISR(2)).fit(
        *(np.repeat(v, weights, axis=0) for v in (X, y)), environments=np.repeat(e, weights)
    )
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    hidden = np.where(np.arange(len(e)) % 3 == 0, None, e.astype(object))
    partial = ISRRegressor(ISR(2)).fit(X, y, environments=hidden)
    known = np.arange(len(e)) % 3 != 0
    only = ISRRegressor(ISR(2)).fit(X[known], y[known], environments=e[known])
    assert partial.subspace_.angles_to(only.subspace_).max() < 1e-6
    assert not np.allclose(partial.coef_, only.coef_, atol=1e-12)


def test_without_environments_it_is_the_plain_head(random):
    X, y, _, _, _ = draw(seed_of(random), n=50)
    with pytest.warns(SingleEnvironmentWarning, match="nothing is removed"):
        reg = ISRRegressor().fit(X, y)
    np.testing.assert_allclose(reg.coef_, Ridge().fit(X, y).coef_)


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ((ISRMean(), None), TypeError, "the only one for a continuous y"),
        ((None, LogisticRegression()), TypeError, "is not a regressor"),
        ((ISR(condition_on=1), None), ValueError, "condition_on=1 names classes"),
        ((ISR(rank_test="moments"), None), ValueError, "rank_test='moments' is for classes"),
    ],
)
def test_wrong_parts_are_named(parts, error, message, random):
    X, y, e, _, _ = draw(seed_of(random), n=20)
    with pytest.raises(error, match=message):
        ISRRegressor(*parts).fit(X, y, environments=e)


@pytest.mark.parametrize("as_type", [np.array, list, lambda y: np.array(y, dtype=object)])
def test_a_target_of_text_is_named(random, as_type):
    X = random.normal(size=(4, 2))
    with pytest.raises(ValueError, match="such as 'high'.*ISRClassifier"):
        ISRRegressor().fit(X, as_type(["high", "low", "low", "high"]), environments=[0, 0, 1, 1])


def test_a_weight_of_zero_is_no_row(random):
    X, y, e, _, _ = draw(seed_of(random), n=100)
    kept = e != 0
    by_weight = ISRRegressor(ISR(1)).fit(X, y, environments=e, sample_weight=kept.astype(float))
    by_rows = ISRRegressor(ISR(1)).fit(X[kept], y[kept], environments=e[kept])
    np.testing.assert_allclose(by_weight.coef_, by_rows.coef_)
    np.testing.assert_array_equal(by_weight.environments_, by_rows.environments_)


def test_features_whose_squares_vanish_are_refused(random):
    X, e = random.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(ValueError, match=r"X is so small \(values up to .*: scale the features"):
        ISRRegressor(ISR(1)).fit(1e-300 * X, X[:, 0], environments=e)
