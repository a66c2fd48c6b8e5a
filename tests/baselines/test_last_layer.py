"""The rivals on frozen features: what each minimises or removes, and which rows it sees."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from isrlearn.baselines import (
    CORAL,
    DFR,
    INLP,
    LEACE,
    GroupDRO,
    GroupSubsampling,
    LastLayerIRM,
    LastLayerVREx,
    LinearProbe,
    _invariant_risk,
    _probes,
    _worst_group,
)
from isrlearn.baselines._alignment import RIDGE, aligned
from isrlearn.baselines._erasure import iterative_erasure, least_squares_erasure
from isrlearn.baselines._probes import equal_groups
from isrlearn.baselines._worst_group import GroupLosses, best_worst_group
from isrlearn.exceptions import SingleEnvironmentWarning

ALL = [LinearProbe, GroupSubsampling, GroupDRO, DFR, LEACE, INLP, LastLayerVREx, LastLayerIRM]
ALL = [*ALL, CORAL]
COMPARING = [rival for rival in ALL if rival is not LinearProbe]
LEAVING_OUT = [GroupSubsampling, GroupDRO, DFR, LastLayerVREx, LastLayerIRM]
HEADS = [LinearProbe, LEACE, INLP, CORAL]
classes = pytest.mark.parametrize("k", [2, 4])


def draw(random, k=2, n_environments=3, n=400, d=5):
    """Rows that no plane separates, in groups of unequal size; X, y, environments."""
    y = random.integers(k, size=n)
    follows = random.uniform(size=n) < 0.5
    e = np.where(follows, y % n_environments, random.integers(n_environments, size=n))
    X = random.normal(size=(n, d)) @ random.normal(size=(d, d)) + 2
    X += random.normal(size=(k, d))[y] + random.normal(size=(n_environments, d))[e]
    return X, y, e


def equal_environments(random, k, per=90):
    X, y, _ = draw(random, k, n=3 * per)
    return X, y, random.permutation(np.repeat(np.arange(3), per))


def logistic(X, y, C, weights=None):
    return LogisticRegression(C=C, tol=1e-8, max_iter=10000).fit(X, y, weights)


def assert_same_head(model, expected, tolerance=1e-4):
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=tolerance * scale)
    scale = max(scale, np.abs(expected.intercept_).max())
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=10 * tolerance * scale)


def row_losses(model, X, y):
    shares = np.atleast_2d(model.predict_proba(X))
    return -np.log(shares[np.arange(len(y)), y])


def groups_of(y, e):
    return np.unique(10 * y + e, return_inverse=True)[1]


def seed_of(random):
    return int(random.integers(2**31))


# --- what all share


@pytest.mark.parametrize("rival", ALL)
@classes
def test_shapes_types_and_labels(random, rival, k):
    X, y, e = draw(random, k)
    names = np.array(["w", "x", "y", "z"])[y]
    model = rival(0.1).fit(X.astype(np.float32), names, environments=np.array(["a", "b", "c"])[e])
    assert model.coef_.shape == ((1 if k == 2 else k), 5)
    assert model.coef_.dtype == model.intercept_.dtype == np.float64
    assert model.classes_.tolist() == ["w", "x", "y", "z"][:k]
    assert model.environments_.tolist() == ["a", "b", "c"]
    assert isinstance(rival.uses, str)
    shares = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])


@pytest.mark.parametrize("rival", ALL)
def test_bad_parameters_are_named(random, rival):
    X, y, e = draw(random)
    for C in (0, -1.0, np.inf, np.nan, "x", True, None):
        with pytest.raises(ValueError, match=f"C={C!r} must be a positive number"):
            rival(C).fit(X, y, environments=e)
    for name, value in {"n_refits": 0, "n_iterations": -1, "penalty": -1, "weight": "foo"}.items():
        if name in rival().get_params():
            with pytest.raises(ValueError, match=f"{name}={value!r} must be"):
                rival(**{name: value}).fit(X, y, environments=e)


@pytest.mark.parametrize("rival", COMPARING)
def test_comparing_needs_environments_that_differ(random, rival):
    X, y, _ = draw(random)
    with pytest.warns(SingleEnvironmentWarning, match=rival.__name__):
        rival(0.1).fit(X, y)
    for environments in (np.zeros(len(X)), [None] * len(X)):
        with pytest.raises(ValueError, match=f"distinct value.*{rival.__name__}"):
            rival(0.1).fit(X, y, environments=environments)


@pytest.mark.parametrize("rival", [LEACE, INLP, CORAL])
def test_one_environment_leaves_logistic_regression(random, rival):
    X, y, _ = draw(random, 3)
    with pytest.warns(SingleEnvironmentWarning):
        model = rival(0.1, weight="class").fit(X, y)
    assert_same_head(model, LinearProbe(0.1, weight="class").fit(X, y), 1e-3)


@pytest.mark.parametrize("rival", LEAVING_OUT)
@classes
def test_rows_of_unknown_environment_are_left_out(random, rival, k):
    X, y, e = draw(random, k)
    known = random.uniform(size=len(X)) < 0.7
    model = rival(0.1)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed_of(random))
    expected = clone(model).fit(X[known], y[known], environments=e[known])
    model.fit(X, y, environments=np.where(known, e, np.nan))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match=f"{rival.__name__}.*all rows of class.*label"):
        model.fit(X, y, environments=np.where(y == 1, np.nan, e))


@pytest.mark.parametrize("rival", HEADS)
def test_rows_of_unknown_environment_train_the_head(random, rival):
    X, y, e = draw(random)
    known = random.uniform(size=len(X)) < 0.5
    gaps = np.where(known, e, np.nan)
    # INLP may leave nothing of the rows: then there is the intercept alone, which counts labels.
    changed = np.where(known, y, 1)
    heads = [rival(0.1).fit(X, labels, environments=gaps) for labels in (y, changed)]
    first, second = (np.append(head.coef_, head.intercept_) for head in heads)
    assert np.abs(first - second).max() > 1e-3 * np.abs(first).max()


# --- probes


@classes
def test_a_probe_is_logistic_regression(random, k):
    X, y, e = draw(random, k)
    assert_same_head(LinearProbe(0.3).fit(X, y), logistic(X, y, 0.3))
    by_class = 1 / np.bincount(y)[y]
    by_group = 1 / np.bincount(groups_of(y, e))[groups_of(y, e)]
    for name, weights in {"class": by_class, "group": by_group}.items():
        model = LinearProbe(0.3, weight=name).fit(X, y, environments=e)
        assert_same_head(model, logistic(X, y, 0.3, weights / weights.mean()))


def test_weighing_groups_is_repeating_rows(random):
    n = 60
    X, y = random.normal(size=(4 * n, 3)), np.repeat([0, 0, 1, 1], n)
    e = np.tile(np.repeat([0, 1], n), 2)
    X += random.normal(size=(2, 3))[y] + random.normal(size=(2, 3))[e]
    small = (y == 1) & (e == 1)
    used = ~small | (np.cumsum(small) <= n // 3)
    times = np.where(small, 3, 1)[used]
    model = LinearProbe(0.2, weight="group").fit(X[used], y[used], environments=e[used])
    whole = [np.repeat(values[used], times, axis=0) for values in (X, y)]
    # Weights have mean one; repeated rows have weight one each, and are more.
    assert_same_head(model, logistic(*whole, C=0.2 * used.sum() / times.sum()))


def test_rows_of_unknown_environment_have_the_mean_weight_of_their_class(random):
    X, y, e = draw(random, 3)
    known = random.uniform(size=len(X)) < 0.6
    groups = groups_of(y, e)
    weights = np.zeros(len(X))
    weights[known] = 1 / np.bincount(groups[known])[groups[known]]
    for c in range(3):
        weights[(y == c) & ~known] = weights[(y == c) & known].mean()
    model = LinearProbe(0.3, weight="group").fit(X, y, environments=np.where(known, e, np.nan))
    assert_same_head(model, logistic(X, y, 0.3, weights / weights.mean()))


def test_a_subset_has_as_many_rows_of_every_group(random):
    groups = groups_of(*draw(random, 3)[1:])
    state = np.random.RandomState(seed_of(random))
    seen = set()
    for _ in range(100):
        used = equal_groups(groups, state)
        assert len(np.unique(used)) == len(used)
        assert (np.bincount(groups[used]) == np.bincount(groups).min()).all()
        seen |= set(used.tolist())
    assert len(seen) > 0.9 * len(groups)


def test_subsampling_is_logistic_regression_on_the_subset(random):
    X, y, e = draw(random, 3)
    seed = seed_of(random)
    used = equal_groups(groups_of(y, e), np.random.RandomState(seed))
    model = GroupSubsampling(0.3, random_state=seed).fit(X, y, environments=e)
    assert model.n_rows_used_ == len(used)
    assert_same_head(model, logistic(X[used], y[used], 0.3))


def test_empty_groups_are_not_there(random):
    X, y, e = draw(random)
    used = (y == 0) | (e != 2)
    X, y, e = X[used], y[used], e[used]
    smallest = np.bincount(groups_of(y, e)).min()
    assert GroupSubsampling().fit(X, y, environments=e).n_rows_used_ == 5 * smallest
    assert GroupDRO().fit(X, y, environments=e).group_weights_.shape == (5,)


# --- the worst group


def robust_objective(model, X, y, groups, C):
    means = np.bincount(groups, row_losses(model, X, y)) / np.bincount(groups)
    return len(X) * means, np.sum(model.coef_**2) / (2 * C)


def losses_by_hand(X, y, k, weights):
    if k == 2:
        z = X @ weights[0, :-1] + weights[0, -1]
        return np.logaddexp(0, z) - y * z
    return -log_softmax(X @ weights[:, :-1].T + weights[:, -1], axis=1)[np.arange(len(y)), y]


@pytest.mark.parametrize("k", [2, 3])
def test_group_dro_is_the_epigraph_solved_by_another_method(random, k):
    X, y, e = draw(random, k, 2, n=150, d=2)
    groups, C, shape = groups_of(y, e), 0.2, (1 if k == 2 else k, 3)
    sizes = np.bincount(groups)

    def slack(v):
        by_row = losses_by_hand(X, y, k, v[:-1].reshape(shape))
        return v[-1] - np.bincount(groups, by_row) / sizes

    def objective(v):
        return v[-1] + np.sum(v[:-1].reshape(shape)[:, :-1] ** 2) / (2 * C * len(X))

    start = np.append(np.zeros(shape), 2.0)
    constraint = {"type": "ineq", "fun": slack}
    options = {"ftol": 1e-12, "maxiter": 1000}
    found = minimize(objective, start, method="SLSQP", constraints=constraint, options=options)
    model = GroupDRO(C).fit(X, y, environments=e)
    means, ridge = robust_objective(model, X, y, groups, C)
    assert means.max() + ridge == pytest.approx(len(X) * found.fun, rel=1e-5)
    expected = found.x[:-1].reshape(shape)
    np.testing.assert_allclose(model.coef_, expected[:, :-1], atol=2e-2)


@classes
def test_group_weights_certify_the_worst_group(random, k):
    X, y, e = draw(random, k)
    groups, C = groups_of(y, e), float(10 ** random.uniform(-3, 1))
    model = GroupDRO(C).fit(X, y, environments=e)
    means, ridge = robust_objective(model, X, y, groups, C)
    q = model.group_weights_
    assert q.min() >= 0 and q.sum() == pytest.approx(1)
    # Logistic regression with these weights bounds what any weights can reach.
    weights = len(X) * (q / np.bincount(groups))[groups]
    other = logistic(X, y, C, weights)
    bound = weights @ row_losses(other, X, y) + np.sum(other.coef_**2) / (2 * C)
    gap = (means.max() + ridge - bound) / (means.max() + ridge)
    assert -1e-7 < gap <= model.gap_ + 1e-7
    assert model.gap_ <= 1e-4
    active = q > 1e-2
    np.testing.assert_allclose(means[active], means.max(), rtol=1e-3)


def test_one_group_is_the_worst_of_one(random):
    X, y, _ = draw(random)
    # Two classes of one environment are two groups; equal weights of both are class weights.
    with pytest.warns(SingleEnvironmentWarning):
        model = GroupDRO(0.1).fit(X, y)
    weights = len(X) * (model.group_weights_ / np.bincount(y))[y]
    assert_same_head(model, logistic(X, y, 0.1, weights), 1e-3)


@classes
def test_the_certificate_holds_at_any_point_for_any_weights(random, k):
    X, y, e = draw(random, k, 2, n=200, d=3)
    problem = GroupLosses(X, y, k, groups_of(y, e), 0.1)
    best = best_worst_group(problem)

    def objective(point):
        return problem.at(point)[0].max() + 0.05 * np.sum(point[:, :-1] ** 2)

    least = objective(best.point)
    for _ in range(20):
        near = best.point + random.uniform(0, 0.3) * random.normal(size=best.point.shape)
        q = random.dirichlet(np.ones(len(problem.sizes))) if random.uniform() < 0.5 else None
        found = problem.certified(near, best.group_weights if q is None else q)
        reached = objective(found.point)
        assert least >= reached * (1 - found.gap) - 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_unsolved_problem_is_said_to_be_so(random, monkeypatch):
    X, y, e = draw(random)
    monkeypatch.setattr(_worst_group, "MOST_DESCENT", 1)
    monkeypatch.setattr(_worst_group, "MOST_STAGES", 1)
    with pytest.warns(Warning, match="away from the optimum"):
        model = GroupDRO(10).fit(X, y, environments=e)
    assert model.gap_ > 1e-4


# --- last-layer retraining


def subsets_of(monkeypatch):
    seen = []

    def remember(groups, state):
        seen.append(equal_groups(groups, state))
        return seen[-1]

    monkeypatch.setattr(_probes, "equal_groups", remember)
    return seen


@classes
def test_retraining_is_the_average_of_its_refits(random, monkeypatch, k):
    X, y, e = draw(random, k)
    subsets = subsets_of(monkeypatch)
    model = DFR(0.3, n_refits=3, random_state=seed_of(random)).fit(X, y, environments=e)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    coefs, biases = [], []
    for used in subsets:
        for c in [1] if k == 2 else range(k):
            fit = _probes.sparse_logistic(0.3, 0).fit(Z[used], y[used] == c)
            coefs.append(fit.coef_[0])
            biases.append(fit.intercept_[0])
    coefs = np.reshape(coefs, (3, -1, 5)).mean(axis=0)
    biases = np.reshape(biases, (3, -1)).mean(axis=0)
    values = Z @ coefs.T + biases
    expected = values.ravel() if k == 2 else values
    np.testing.assert_allclose(model.decision_function(X), expected, atol=0.02)
    assert model.n_rows_used_ == len({i for used in subsets for i in used.tolist()})


def test_retraining_sees_the_smallest_group_whole_and_the_others_in_turn(random, monkeypatch):
    X, y, e = draw(random, n=120)
    groups, subsets = groups_of(y, e), subsets_of(monkeypatch)
    model = DFR(0.1, n_refits=150, random_state=seed_of(random)).fit(X, y, environments=e)
    smallest = np.flatnonzero(groups == np.bincount(groups).argmin())
    assert all(np.isin(smallest, used).all() for used in subsets)
    assert len(np.unique(np.concatenate(subsets))) == model.n_rows_used_ > 0.9 * len(X)


def test_the_penalty_of_retraining_is_on_absolute_weights(random):
    X, y, e = draw(random, d=8)
    model = DFR(0.003, n_refits=1, random_state=seed_of(random)).fit(X, y, environments=e)
    assert (model.coef_ == 0).any()
    # Where the penalty outweighs every slope nothing is left.
    assert (DFR(1e-6).fit(X, y, environments=e).coef_ == 0).all()


# --- erasure


def leace_by_hand(X, e, y=None):
    z = np.eye(e.max() + 1)[e]
    x_about, z_about = X - X.mean(axis=0), z - z.mean(axis=0)
    if y is not None:
        for c in np.unique(y):
            x_about[y == c] = X[y == c] - X[y == c].mean(axis=0)
            z_about[y == c] = z[y == c] - z[y == c].mean(axis=0)
    W = np.linalg.pinv(sqrtm(x_about.T @ x_about / len(X)).real)
    WS = W @ (x_about.T @ z_about) / len(X)
    P = WS @ np.linalg.pinv(WS, rcond=1e-8)
    return X - (X - X.mean(axis=0)) @ (np.linalg.pinv(W) @ P @ W).T


def erased_rows(X, e, y=None):
    subspace = least_squares_erasure(X, e, np.zeros_like(e) if y is None else y)
    return subspace.project(X), subspace


@pytest.mark.parametrize("given_class", [False, True])
@classes
def test_erasure_is_the_published_formula(random, given_class, k):
    X, y, e = draw(random, k)
    expected = leace_by_hand(X, e, y if given_class else None)
    found, subspace = erased_rows(X, e, y if given_class else None)
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(X).max())
    model = LEACE(0.2, given_class=given_class).fit(X, y, environments=e)
    assert model.n_erased_ == subspace.rank == 2
    values = logistic(expected, y, 0.2).decision_function(expected)
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-3 * np.abs(values).max())


def test_erasure_is_that_of_its_authors(random):
    authors = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    X, _, e = draw(random)
    eraser = authors.LeaceEraser.fit(torch.tensor(X), torch.tensor(np.eye(3)[e]))
    expected = eraser(torch.tensor(X)).numpy()
    np.testing.assert_allclose(erased_rows(X, e)[0], expected, atol=1e-6 * np.abs(X).max())


def test_nothing_linear_is_left_of_the_environment(random):
    X, y, e = draw(random)
    z = np.eye(3)[e]
    found, subspace = erased_rows(X, e)
    assert np.abs((found - found.mean(axis=0)).T @ z / len(X)).max() < 1e-12 * np.abs(X).max()
    np.testing.assert_allclose(subspace.project(found), found, atol=1e-9 * np.abs(X).max())
    # The best guess is the share of each environment, whatever the row.
    shares = logistic(found - found.mean(axis=0), e, 100).predict_proba(found - found.mean(axis=0))
    expected = np.broadcast_to(np.bincount(e) / len(e), shares.shape)
    np.testing.assert_allclose(shares, expected, atol=1e-4)
    found, _ = erased_rows(X, e, y)
    about = found.copy()
    for c in range(2):
        about[y == c] -= found[y == c].mean(axis=0)
    assert np.abs(about.T @ z / len(X)).max() < 1e-12 * np.abs(X).max()


def test_erasure_does_not_depend_on_units_or_on_copies_of_features(random):
    X, _, e = draw(random)
    expected, _ = erased_rows(X, e)
    units = 10.0 ** random.uniform(-3, 3, 5)
    np.testing.assert_allclose(erased_rows(X * units, e)[0] / units, expected, atol=1e-6)
    more = np.column_stack([X, X[:, 0] - X[:, 1], np.full(len(X), 7.0)])
    found, subspace = erased_rows(more, e)
    assert subspace.rank == 2
    np.testing.assert_allclose(found[:, :5], expected, atol=1e-7 * np.abs(X).max())


def test_null_space_projection_by_hand():
    # Symmetric about the second axis: the environment is the sign of the first feature, and what
    # is left of the rows tells nothing.
    corners = np.array([[a, b] for a in (-3.0, -1.0, 1.0, 3.0) for b in (-1.0, 1.0)])
    X = np.repeat(corners, 5, axis=0)
    e, y = (X[:, 0] > 0).astype(int), (X[:, 1] > 0).astype(int)
    erased = iterative_erasure(X, e, 10, 1.0)
    np.testing.assert_allclose(np.abs(erased.directions), [[1, 0]], atol=1e-6)
    model = INLP().fit(X, y, environments=e)
    assert model.n_erased_ == 1
    assert abs(model.coef_[0, 0]) < 1e-5 < model.coef_[0, 1]
    expected = logistic(X[:, 1:], y, 1.0)
    assert model.coef_[0, 1] == pytest.approx(expected.coef_[0, 0], rel=1e-4)
    assert INLP(n_iterations=0).fit(X, y, environments=e).n_erased_ == 0


def test_null_space_projection_is_a_slow_loop(random):
    X, _, e = draw(random, d=8)
    projection, bases = np.eye(8), []
    for _ in range(2):
        guess = logistic(X @ projection, e, 0.5)
        bases.append(np.linalg.svd(guess.coef_)[2][:2])
        stacked = np.concatenate(bases)
        projection = np.eye(8) - np.linalg.pinv(stacked) @ stacked
    erased = iterative_erasure(X, e, 2, 0.5)
    assert erased.rank == 4
    np.testing.assert_allclose(erased.project(X), X @ projection, atol=2e-3 * np.abs(X).max())


def test_null_space_projection_ends_where_no_classifier_beats_the_majority(random):
    X, y, e = draw(random)
    model = INLP(n_iterations=100).fit(X, y, environments=e)
    erased = iterative_erasure(X, e, 100, 1.0)
    left = erased.project(X - X.mean(axis=0))
    # A weak sign of a rare environment, which no classifier would name.
    rare = np.arange(len(X)) % 20 == 0
    assert (
        iterative_erasure(random.normal(size=X.shape) + 0.1 * rare[:, None], 1 * rare, 9, 0.01).rank
        == 0
    )
    assert model.n_erased_ == erased.rank
    share = np.bincount(e).max() / len(e)
    assert LogisticRegression(tol=1e-6).fit(left, e).score(left, e) <= share


# --- invariant risks


def torch_objective(torch, name, X, y, codes, point, penalty, ridge):
    scores = X @ point[:, :-1].T + point[:, -1]
    if scores.shape[1] == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
    risks, slopes = [], []
    for e in np.unique(codes):
        rows = torch.as_tensor(codes == e)
        scale = torch.ones((), dtype=X.dtype, requires_grad=True)
        risk = torch.nn.functional.cross_entropy(scale * scores[rows], y[rows])
        slopes.append(torch.autograd.grad(risk, scale, create_graph=True)[0])
        risks.append(risk)
    risks, slopes = torch.stack(risks), torch.stack(slopes)
    differ = risks.var(correction=0) if name == "extrapolated" else (slopes**2).mean()
    return risks.mean() + penalty * differ + ridge / 2 * (point[:, :-1] ** 2).sum()


@pytest.mark.parametrize("name", ["extrapolated", "invariant"])
@classes
def test_gradients_are_those_of_automatic_differentiation(random, name, k):
    torch = pytest.importorskip("torch")
    X, y, e = draw(random, k)
    penalty, ridge = float(random.uniform(0, 100)), 0.3
    risks = GroupLosses(X, y, k, e, ridge)
    point = random.normal(size=risks.shape)
    value, slope = getattr(_invariant_risk, name)(risks, point, penalty)
    rows, at = torch.tensor(risks.columns[:, :-1]), torch.tensor(point, requires_grad=True)
    expected = torch_objective(torch, name, rows, torch.tensor(y), e, at, penalty, ridge)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-9)
    largest = np.abs(slope).max()
    np.testing.assert_allclose(slope, at.grad.numpy(), atol=1e-9 * largest)


@pytest.mark.parametrize("rival", [LastLayerVREx, LastLayerIRM])
@classes
def test_without_a_penalty_it_is_logistic_regression(random, rival, k):
    X, y, e = equal_environments(random, k)
    model = rival(0.2, penalty=0).fit(X, y, environments=e)
    assert_same_head(model, logistic(X, y, 0.2))


@classes
def test_a_large_penalty_makes_risks_equal(random, k):
    X, y, e = draw(random, k)

    def spread(model):
        losses = row_losses(model, X, y)
        return np.std([losses[e == c].mean() for c in range(3)])

    plain, equal = (LastLayerVREx(1.0, penalty=p).fit(X, y, environments=e) for p in (0.0, 1e4))
    assert spread(equal) < 0.05 * spread(plain) + 1e-3


@classes
def test_a_large_penalty_leaves_no_wish_for_another_scale(random, k):
    X, y, e = draw(random, k)

    def wishes(model):
        values = model.decision_function(X)
        if k == 2:
            slopes = (expit(values) - y) * values
        else:
            slopes = np.sum((softmax(values, axis=1) - np.eye(k)[y]) * values, axis=1)
        return np.sqrt(np.mean([slopes[e == c].mean() ** 2 for c in range(3)]))

    plain, same = (LastLayerIRM(1.0, penalty=p).fit(X, y, environments=e) for p in (0.0, 1e4))
    assert wishes(same) < 0.2 * wishes(plain) + 1e-3


# --- alignment


def test_aligned_environments_have_one_mean_and_one_covariance(random):
    X, _, e = draw(random, n=600)
    e = np.where(random.uniform(size=len(e)) < 0.2, -1, e)
    found, known = aligned(X, e), e >= 0
    np.testing.assert_array_equal(found[~known], X[~known])
    mean, covariance = X[known].mean(axis=0), np.cov(X[known].T, bias=True)
    added = RIDGE * np.trace(covariance) / 5 * np.eye(5)
    for c in range(3):
        own = np.cov(X[e == c].T, bias=True)
        np.testing.assert_allclose(found[e == c].mean(axis=0), mean, atol=1e-9 * np.abs(X).max())
        forward = np.linalg.inv(sqrtm(own + added).real) @ sqrtm(covariance + added).real
        expected = (X[e == c] - X[e == c].mean(axis=0)) @ forward + mean
        np.testing.assert_allclose(found[e == c], expected, atol=1e-7 * np.abs(X).max())


def test_alignment_is_followed_by_logistic_regression(random):
    X, y, e = draw(random, 3)
    model = CORAL(0.2, weight="class").fit(X, y, environments=e)
    weights = 1 / np.bincount(y)[y]
    assert_same_head(model, logistic(aligned(X, e), y, 0.2, weights / weights.mean()))
