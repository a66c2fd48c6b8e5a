"""The paper's theorems on exact population moments: no noise, so no tolerance but rounding."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from isrlearn import ISRClassifier, ISRCov, ISRMean
from isrlearn.datasets import make_linear_gaussian
from isrlearn.subspace._recovery import subspace_from_covariances, subspace_from_means

SHAPES = [(1, 1), (2, 3), (5, 5), (3, 7), (10, 3), (5, 1)]


def model_of(random, d_c, d_s, E, **given):
    d = d_c + d_s
    R = random.normal(size=(d, d))  # full rank with probability one, not orthogonal
    return make_linear_gaussian(
        E, d_c, d_s, eta=random.uniform(0.2, 0.8), R=R, random_state=random.integers(2**31), **given
    )


def assert_recovers(subspace, model, n_nonzero):
    """Zeros and non-zeros split, and what is kept is orthogonal to span(B)."""
    values = np.abs(subspace.spectrum)
    assert values[n_nonzero:].max() < 1e-12
    assert values[n_nonzero - 1] > 1e3 * values[n_nonzero:].max()
    B = model.B / np.linalg.norm(model.B, axis=0)
    assert np.abs(subspace.kept @ B).max() < 1e-10


def head_on_kept(subspace, model):
    """Population logistic regression on the kept coordinates: Gaussian classes of equal spread."""
    P = subspace.kept
    mean = P @ model.A @ model.mu_c
    covariance = model.sigma_c**2 * (P @ model.A) @ (P @ model.A).T
    return np.linalg.solve(covariance, 2 * mean) @ P


def assert_optimal_invariant(weight, model):
    best, _ = model.optimal_invariant_predictor()
    cosine = weight @ best / np.linalg.norm(weight) / np.linalg.norm(best)
    assert cosine == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("condition_on", [None, 1, -1, [1, -1]])
@pytest.mark.parametrize(("d_c", "d_s"), SHAPES)
def test_theorem_isr_mean(random, d_c, d_s, condition_on):
    for E in (d_s + 1, d_s + 4):
        model = model_of(random, d_c, d_s, E, sigma_e=0.7)  # equal sigma_e: means are enough
        subspace = subspace_from_means(
            model.population_moments(), d_s, condition_on=condition_on
        ).subspace
        assert_recovers(subspace, model, d_s)
        assert_optimal_invariant(head_on_kept(subspace, model), model)


@pytest.mark.parametrize("condition_on", [None, 1, -1])
@pytest.mark.parametrize("E", [2, 3, 5])
@pytest.mark.parametrize(("d_c", "d_s"), SHAPES)
def test_theorem_isr_cov(random, d_c, d_s, E, condition_on):
    model = model_of(random, d_c, d_s, E, mu_e=random.normal(size=d_s))  # equal mu_e
    moments = model.population_moments(n_per_environment=10**12)  # so that all pairs are distinct
    for pairs in ("all", "distinct", (0, 1)):
        subspace = subspace_from_covariances(
            moments, d_s, condition_on=condition_on, pairs=pairs
        ).subspace
        assert_recovers(subspace, model, d_s)
        assert_optimal_invariant(head_on_kept(subspace, model), model)


@pytest.mark.parametrize(("d_c", "d_s"), [(d_c, d_s) for d_c, d_s in SHAPES if d_s > 1])
@pytest.mark.parametrize("condition_on", [None, 1])
def test_isr_mean_needs_one_environment_more_than_directions(random, d_c, d_s, condition_on):
    model = model_of(random, d_c, d_s, d_s)
    moments = model.population_moments()
    with pytest.raises(ValueError, match=f"n_spurious={d_s} .* at most {d_s - 1},"):
        subspace_from_means(moments, d_s, condition_on=condition_on)
    # What is identified is right, but it is not all of span(B).
    subspace = subspace_from_means(moments, d_s - 1, condition_on=condition_on).subspace
    assert np.abs(null_space(model.B.T).T @ subspace.directions.T).max() < 1e-9
    assert np.abs(subspace.kept @ model.B).max() > 1e-3


def test_isr_cov_says_that_equal_variances_identify_nothing(random):
    model = model_of(random, 3, 2, 4, sigma_e=0.7)
    with pytest.raises(ValueError, match="the covariances of 4 environments do not differ"):
        subspace_from_covariances(model.population_moments(), 2)


def test_isr_mean_says_that_equal_means_identify_nothing(random):
    model = model_of(random, 3, 2, 4, mu_e=random.normal(size=2))
    with pytest.raises(ValueError, match="the means of 4 environments do not differ"):
        subspace_from_means(model.population_moments(), 1)


def test_pairs_with_equal_variances_do_not_spoil_the_flag_mean(random):
    """Assumption 2 asks for one pair that differs; the others must not add noise."""
    model = model_of(random, 4, 3, 5, sigma_e=[1, 1, 1, 1, 1.5])
    for pairs in ("all", "distinct"):
        subspace = subspace_from_covariances(model.population_moments(), 3, pairs=pairs).subspace
        assert_recovers(subspace, model, 3)


def rows_with_exact_moments(model, random, n_negative, n_positive):
    """Rows whose cells have the population's means and covariances to rounding error."""
    exact = model.population_moments()
    X, y, e = [], [], []
    for i in range(len(exact.means)):
        label, n = ((-1, n_negative), (1, n_positive))[exact.class_index[i]]
        noise = random.normal(size=(n, exact.n_features))
        noise -= noise.mean(axis=0)
        white = noise @ np.linalg.inv(np.linalg.cholesky(np.cov(noise.T, ddof=0))).T
        X.append(white @ np.linalg.cholesky(exact.covariances()[i]).T + exact.means[i])
        y += [label] * n
        e += [exact.environment_index[i]] * n
    return np.concatenate(X), np.array(y), np.array(e)


@pytest.mark.parametrize("condition_on", [None, 1, [-1]])
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("kind", [ISRMean, ISRCov])
@pytest.mark.parametrize(("d_c", "d_s"), [(1, 1), (3, 2), (2, 4)])
def test_the_fitted_classifier_is_h_star(random, d_c, d_s, kind, reduced, condition_on):
    """Proposition 1 through the estimator itself: weight and bias, not only the direction.

    Linear discriminant analysis depends on the rows through means and covariances only, so on rows
    with exact moments it is the population's classifier.
    """
    n_negative, n_positive = 30, 50
    given = {"sigma_e": 0.7} if kind is ISRMean else {"mu_e": random.normal(size=d_s)}
    if kind is ISRCov:
        given["sigma_e"] = [0.5, 1.5]
    E = d_s + 1 if kind is ISRMean else 2
    model = make_linear_gaussian(
        E,
        d_c,
        d_s,
        eta=n_positive / (n_negative + n_positive),
        random_state=random.integers(2**31),
        **given,
    )
    X, y, e = rows_with_exact_moments(model, random, n_negative, n_positive)
    isr = kind(d_s, reduced=reduced, condition_on=condition_on)
    head = LinearDiscriminantAnalysis(solver="lsqr")
    clf = ISRClassifier(isr, head, group_weight=None).fit(X, y, environments=e)
    weight, bias = model.optimal_invariant_predictor()
    np.testing.assert_allclose(clf.coef_[0], weight, atol=1e-7 * np.linalg.norm(weight))
    np.testing.assert_allclose(clf.intercept_[0], bias, atol=1e-6)


@pytest.mark.parametrize(
    "isr", [ISRMean(3), ISRCov(3), ISRMean(3, condition_on=1), ISRCov(3, reduced=True)]
)
def test_the_fitted_classifier_approaches_the_optimal_invariant_predictor(random, isr):
    """From samples: the error against h* falls about tenfold with a hundred times the rows."""
    ratios = []
    for _ in range(7):
        model = make_linear_gaussian(
            5, 3, 3, sigma_e=[0.4, 0.7, 1.0, 1.5, 2.0], random_state=random.integers(2**31)
        )
        best, _ = model.optimal_invariant_predictor()
        errors = []
        for n in (300, 30_000):
            X, y, e = model.sample(n, random_state=random.integers(2**31))
            clf = ISRClassifier(isr, LogisticRegression(C=100)).fit(X, y, environments=e)
            errors.append(np.linalg.norm(clf.coef_[0] - best) / np.linalg.norm(best))
        ratios.append(errors[1] / errors[0])
    assert np.median(ratios) < 0.5


def test_proposition_1_minimises_the_risk_over_invariant_predictors(random):
    """h* against direct minimisation of the logistic risk on the invariant features."""
    model = model_of(random, 2, 2, 3)
    X, y, _ = model.sample(100_000, random_state=random.integers(2**31))
    z = np.linalg.solve(model.R, X.T)[:2]

    def risk(beta):
        return np.mean(np.logaddexp(0, -y * (beta[:2] @ z + beta[2])))

    found = minimize(risk, np.zeros(3)).x
    weight, bias = model.optimal_invariant_predictor()
    expected = np.append((weight @ model.R)[:2], bias)
    # Fisher information of logistic regression bounds the spread of `found`.
    p = 1 / (1 + np.exp(-(expected[:2] @ z + expected[2])))
    design = np.vstack([z, np.ones(len(y))])
    information = (design * p * (1 - p)) @ design.T
    distance = (found - expected) @ information @ (found - expected)
    assert distance < 30  # chi-square with 3 degrees of freedom
