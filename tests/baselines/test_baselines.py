"""The rivals: their objectives, their descent, the published trials, and what fitting may ask."""

import numpy as np
import pytest
from conftest import draw_rows
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from isrlearn.baselines import (
    ERM,
    IGA,
    AdamERM,
    ANDMask,
    IRMv1,
    Oracle,
    Trial,
    VREx,
    fit_trials,
    published_trials,
)
from isrlearn.baselines._risk import EnvironmentRisk, and_mask_gradient
from isrlearn.baselines._trials import RECIPES, adam, starting_weights
from isrlearn.exceptions import SingleEnvironmentWarning
from isrlearn.heads._logistic import SOLVED

RIVALS = {"erm": AdamERM, "irmv1": IRMv1, "iga": IGA, "and-mask": ANDMask, "vrex": VREx}
every_method = pytest.mark.parametrize("method", RIVALS)


def draw(random, sizes=(40, 60, 90), n_features=5):
    """Rows in random order, with labels that no plane separates; X, positive, codes."""
    codes = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = random.normal(size=(len(codes), n_features))
    X += random.normal(size=(len(sizes), n_features))[codes]
    likely = random.uniform(size=len(X)) < expit(X @ random.normal(size=n_features))
    return X, likely ^ (random.uniform(size=len(X)) < 0.1), codes


def draw_models(random, n_models=4, n_features=5):
    return random.normal(size=(n_models, n_features + 1)), random.uniform(0, 1, n_models)


def assert_close(actual, expected, tolerance=1e-9):
    largest = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * largest)


# --- the objectives and the descent


def torch_objective(torch, method, X, y, codes, weights, penalty):
    def risk(rows, scale=1.0, shift=0.0):
        values = scale * (X[rows] @ weights[:-1] + weights[-1]) + shift
        return torch.nn.functional.binary_cross_entropy_with_logits(values, y[rows])

    def slope(value, *variables):
        found = torch.autograd.grad(value, variables, create_graph=True)
        return torch.cat([part.reshape(-1) for part in found])

    if method == "erm":
        return risk(slice(None))
    environments = [torch.as_tensor(codes == e) for e in np.unique(codes)]
    risks = torch.stack([risk(rows) for rows in environments])
    if method == "vrex":
        return risks.mean() + penalty * risks.var(correction=0)
    if method == "iga":
        slopes = torch.stack([slope(value, weights) for value in risks])
        return risks.mean() + penalty * ((slopes - slopes.mean(dim=0)) ** 2).sum()
    dummies = [torch.tensor(v, dtype=X.dtype, requires_grad=True) for v in (1.0, 0.0)]
    lengths = [(slope(risk(rows, *dummies), *dummies) ** 2).sum() for rows in environments]
    return (1 - penalty) * risks.mean() + penalty * sum(lengths)


@pytest.mark.parametrize("method", ["erm", "irmv1", "iga", "vrex"])
def test_gradients_are_those_of_automatic_differentiation(random, method):
    torch = pytest.importorskip("torch")
    X, positive, codes = draw(random, (7, 20, 33, 12))
    weights, penalty = draw_models(random)
    penalty *= {"iga": 1000, "vrex": 100}.get(method, 1)
    found = RECIPES[method].gradient(EnvironmentRisk(X, positive, codes), weights, penalty)
    rows, labels = torch.tensor(X), torch.tensor(positive, dtype=torch.float64)
    for t in range(4):
        model = torch.tensor(weights[t], requires_grad=True)
        torch_objective(torch, method, rows, labels, codes, model, penalty[t]).backward()
        assert_close(found[t], model.grad.numpy())


def gradients_by_hand(X, positive, codes, weights):
    ones = np.column_stack([X, np.ones(len(X))])
    errors = expit(ones @ weights) - positive
    return [errors[codes == e] @ ones[codes == e] / (codes == e).sum() for e in np.unique(codes)]


def test_and_mask_is_a_slow_loop(random):
    X, positive, codes = draw(random, (7, 20, 33, 12, 9))
    weights, agreement = draw_models(random, n_models=20)
    found = and_mask_gradient(EnvironmentRisk(X, positive, codes), weights, agreement)
    for t in range(20):
        slopes = gradients_by_hand(X, positive, codes, weights[t])
        for slope in slopes:
            slope[:-1] /= np.sqrt(sum(slope[:-1] ** 2))
        for j in range(6):
            up = sum(slope[j] > 0 for slope in slopes)
            kept = abs(up - (5 - up)) > agreement[t] * 5
            expected = sum(slope[j] for slope in slopes) / 5 if kept else 0.0
            assert found[t, j] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_and_mask_asks_for_more_than_the_agreement(random):
    X, positive, codes = draw(random)
    weights, _ = draw_models(random)
    risk = EnvironmentRisk(X, positive, codes)
    assert (and_mask_gradient(risk, weights, np.ones(4)) == 0).all()
    assert (and_mask_gradient(risk, weights, np.zeros(4)) != 0).all()


def test_without_a_penalty_the_mean_of_the_risks_is_left(random):
    X, positive, codes = draw(random)
    weights, _ = draw_models(random)
    risk = EnvironmentRisk(X, positive, codes)
    expected = [np.mean(gradients_by_hand(X, positive, codes, w), axis=0) for w in weights]
    for method in ("vrex", "iga", "irmv1"):
        assert_close(RECIPES[method].gradient(risk, weights, np.zeros(4)), np.array(expected))


def test_without_a_penalty_and_with_equal_environments_all_are_erm(random):
    X, positive, codes = draw(random, (50, 50, 50))
    options = {"learning_rate": 0.01, "n_steps": 200, "random_state": int(random.integers(2**31))}
    expected = AdamERM(**options).fit(X, positive, environments=codes)
    for rival in (VREx, IGA, IRMv1):
        model = rival(0, **options).fit(X, positive, environments=codes)
        assert_close(model.coef_, expected.coef_, 1e-8)
        assert_close(model.intercept_, expected.intercept_, 1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_decision_values_cost_what_they_should(random, dtype):
    X, positive, codes = draw(random)
    X = X.astype(dtype)
    weights = (1e4 * random.normal(size=(3, 6))).astype(dtype)
    risk = EnvironmentRisk(X, positive, codes)
    gradients, losses = risk.gradients(weights), risk.losses(weights)
    values = X.astype(float) @ weights[:, :-1].T.astype(float) + weights[:, -1]
    costs = np.logaddexp(0, values) - positive[:, None] * values
    for e in range(3):
        np.testing.assert_allclose(losses[e], costs[codes == e].mean(axis=0), rtol=1e-3, atol=1)
    for t in range(3):
        expected = gradients_by_hand(X, positive, codes, weights[t].astype(float))
        np.testing.assert_allclose(gradients[:, t], expected, atol=0.01)


@every_method
def test_huge_decision_values_leave_single_precision_finite(random, method):
    X, positive, codes = draw(random)
    X = X.astype(np.float32)
    weights = (1e4 * random.normal(size=(3, 6))).astype(np.float32)
    penalty = np.full(3, RECIPES[method].default_penalty, np.float32)
    risk = EnvironmentRisk(X, positive, codes)
    assert np.isfinite(RECIPES[method].gradient(risk, weights, penalty)).all()
    trials = published_trials(method, 3)
    assert np.isfinite(fit_trials(method, 1000 * X, positive, codes, trials, 50)).all()


def test_adam_is_that_of_torch(random):
    torch = pytest.importorskip("torch")
    root = random.normal(size=(6, 6))
    start, goal = random.normal(size=(2, 4, 6))
    rate, decay = 10.0 ** random.uniform(-4, -1, 4), 10.0 ** random.uniform(-3, 0, 4)

    def gradient(weights):
        return (weights - goal) @ root @ root.T + np.tanh(weights)

    models = [torch.tensor(row, requires_grad=True) for row in start]
    names = ("params", "lr", "weight_decay")
    groups = [dict(zip(names, g, strict=True)) for g in zip(models, rate, decay, strict=True)]
    optimiser = torch.optim.Adam(groups)
    for _ in range(200):
        slopes = gradient(np.array([model.detach().numpy() for model in models]))
        for model, slope in zip(models, slopes, strict=True):
            model.grad = torch.tensor(slope)
        optimiser.step()
    found = adam(gradient, start, rate, decay, 200)
    expected = np.array([model.detach().numpy() for model in models])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_and_mask_takes_plain_steps(random):
    X, positive, codes = draw(random)
    trials = published_trials("and-mask", 4)
    found = fit_trials("and-mask", X, positive, codes, trials, 2)
    risk = EnvironmentRisk(X, positive, codes)
    for t, trial in enumerate(trials):
        w = starting_weights(np.random.RandomState(trial.seed), 5)[None]
        for _ in range(2):
            slope = and_mask_gradient(risk, w, np.array([trial.penalty])) + trial.weight_decay * w
            w = w - trial.learning_rate * slope
        np.testing.assert_allclose(found[t], w[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_features", [1, 2, 10, 17, 50])
def test_starting_weights_are_those_of_torch(n_features):
    torch = pytest.importorskip("torch")
    for t in (0, 1, 7, 19):
        torch.manual_seed(1000 + t)
        layer = torch.nn.Linear(n_features, 1)
        expected = [*layer.weight.detach().numpy()[0], layer.bias.item()]
        found = starting_weights(np.random.RandomState(1000 + t), n_features)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


# --- the trials


@pytest.mark.parametrize(
    ("method", "t", "rate", "decay", "penalty"),
    [
        ("erm", 1, 0.003920143237423, 1.715951192969981e-06, 0),
        ("irmv1", 1, 0.003920143237423, 1.715951192969981e-06, 0.8871121011464641),
        ("iga", 13, 0.006472244610211, 0.0011543191548620, 5661.09542918485),
        ("and-mask", 1, 0.15367523001914501, 1.9639533319625942e-05, 0.9520479547948181),
    ],
)
def test_draws_are_the_published_ones(method, t, rate, decay, penalty):
    trial = published_trials(method)[t]
    expected = {"learning_rate": rate, "weight_decay": decay, "penalty": penalty, "seed": 1000 + t}
    assert trial.as_dict() == pytest.approx(expected, rel=1e-9)


@every_method
def test_trials_begin_with_the_default_and_have_seeds_of_their_own(method):
    trials = published_trials(method)
    default = {"erm": 0, "irmv1": 0.9, "iga": 1000, "and-mask": 0.9, "vrex": 10}[method]
    assert trials[0] == Trial(1e-3, 0.0, default, 1000)
    assert [trial.seed for trial in trials] == list(range(1000, 1020))
    assert published_trials(method, 5) == trials[:5]


@every_method
def test_a_trial_is_the_same_in_a_batch_alone_and_as_an_estimator(random, method):
    X, positive, codes = draw(random)
    trials = published_trials(method, 5)
    together = fit_trials(method, X, positive, codes, trials, 100)
    for t, trial in enumerate(trials):
        alone = fit_trials(method, X, positive, codes, [trial], 100)[0]
        options = {"learning_rate": trial.learning_rate, "weight_decay": trial.weight_decay}
        strength = () if method == "erm" else (trial.penalty,)
        model = RIVALS[method](*strength, n_steps=100, random_state=1000 + t, **options)
        model.fit(X, positive, environments=codes)
        np.testing.assert_allclose(alone, together[t], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), alone, atol=1e-9)


@every_method
def test_order_names_and_copies_of_rows_change_nothing(random, method):
    X, positive, codes = draw(random)
    trials = published_trials(method, 4)
    expected = fit_trials(method, X, positive, codes, trials, 100)
    order = random.permutation(len(X))
    for found in (
        fit_trials(method, X[order], positive[order], codes[order], trials, 100),
        fit_trials(method, X, positive, (codes + 1) % 3, trials, 100),
        fit_trials(method, *(np.concatenate([v, v]) for v in (X, positive, codes)), trials, 100),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


# --- fitting


@pytest.mark.parametrize("rival", RIVALS.values())
def test_single_precision_stays_single(random, rival):
    X, y, e = draw(random)
    model = rival(n_steps=5, random_state=0)
    single = model.fit(X.astype(np.float32), y, environments=e)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert clone(model).fit(X, y, environments=e).coef_.dtype == np.float64


@pytest.mark.parametrize("model", [ERM(), Oracle(), *(r(n_steps=50) for r in RIVALS.values())])
def test_predictions_agree_with_each_other(random, model):
    X, y, e = draw(random)
    labels = np.array(["no", "yes"])[y.astype(int)]
    model = clone(model).fit(X, labels, environments=np.array(["a", "b", "c"])[e])
    assert model.classes_.tolist() == ["no", "yes"]
    values, shares, names = model.decision_function(X), model.predict_proba(X), model.predict(X)
    np.testing.assert_array_equal(names, model.classes_[(values > 0).astype(int)])
    np.testing.assert_array_equal(names, model.classes_[shares.argmax(axis=1)])
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.log(shares[:, 1] / shares[:, 0]), values, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(values, X @ model.coef_[0] + model.intercept_, rtol=1e-9, atol=1e-9)


@every_method
def test_one_class_among_rows_of_known_environment_is_refused(random, method):
    X, y, codes = draw(random)
    environments = np.where(y, np.nan, codes)
    if RIVALS[method].needs_environments:
        with pytest.raises(ValueError, match=f"{y.sum()} rows of unknown .* all of one class"):
            RIVALS[method]().fit(X, y, environments=environments)


def test_trials_refuse_labels_and_environments_that_do_not_fit(random):
    X, y, codes = draw(random)
    trials = published_trials("erm", 1)
    with pytest.raises(ValueError, match="positive must be True or False"):
        fit_trials("erm", X, np.where(y, 1, -1), codes, trials, 1)
    with pytest.raises(ValueError, match="190 rows, positive 190 and codes 189"):
        fit_trials("erm", X, y, codes[1:], trials, 1)


@pytest.mark.parametrize("unknown", [None, np.nan])
def test_rows_of_unknown_environment_are_used_only_where_none_is_needed(random, unknown):
    X, y, e = draw(random)
    known = random.uniform(size=len(X)) < 0.7
    gaps = [name if k else unknown for name, k in zip(e.tolist(), known, strict=True)]
    for rival in RIVALS.values():
        model = rival(n_steps=50, learning_rate=0.01, random_state=0)
        used = known | (rival is AdamERM)
        expected = clone(model).fit(X[used], y[used], environments=e[used])
        model.fit(X, y, environments=gaps)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-9)
        assert model.environments_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rival", [IRMv1, IGA, VREx, ANDMask])
def test_comparing_needs_environments_that_differ(random, rival):
    X, y, e = draw(random)
    model = rival(n_steps=5, random_state=0)
    with pytest.warns(SingleEnvironmentWarning, match=rival.__name__):
        model.fit(X, y)
    for environments in (np.zeros(len(X)), [None] * len(X)):
        with pytest.raises(ValueError, match="distinct value"):
            model.fit(X, y, environments=environments)


@pytest.mark.parametrize("model", [AdamERM(n_steps=5, random_state=0), ERM(), Oracle()])
def test_environments_change_nothing_where_they_are_not_used(random, model):
    X, y, e = draw(random)
    expected = clone(model).fit(X, y).coef_
    for environments in (e, np.zeros(len(X))):
        found = clone(model).fit(X, y, environments=environments).coef_
        np.testing.assert_array_equal(found, expected)


def test_only_the_exact_rivals_take_three_classes(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3)
    for model in (ERM(), ERM("standardised"), ERM("whitened"), Oracle(np.eye(5)[:1])):
        shares = model.fit(X, y, environments=e).predict_proba(X)
        assert model.coef_.shape == (3, 5)
        np.testing.assert_array_equal(model.predict(X), shares.argmax(axis=1))
    for rival in RIVALS.values():
        with pytest.raises(ValueError, match=r"Only binary.*3 class"):
            rival(n_steps=5).fit(X, y, environments=e)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        *((rival(learning_rate=-1), "learning_rate=-1") for rival in RIVALS.values()),
        (AdamERM(learning_rate=np.inf), "learning_rate=inf"),
        (AdamERM(weight_decay=-0.1), "weight_decay=-0.1"),
        *((AdamERM(n_steps=n), f"n_steps={n}") for n in (0, 1.5)),
        (IRMv1(2), "penalty=2"),
        (IRMv1("x"), "penalty='x'"),
        (IGA(np.nan), "penalty=nan"),
        (VREx(-1), "penalty=-1"),
        (ANDMask(-0.1), "agreement=-0.1"),
        (ANDMask(1.1), "agreement=1.1"),
        (ERM("foo"), "scaling='foo'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(random, model, named):
    X, y, e = draw(random)
    with pytest.raises(ValueError, match=named):
        model.fit(X, y, environments=e)


# --- the exact rivals


def test_plain_erm_is_logistic_regression(random):
    X, y, _ = draw(random)
    expected = LogisticRegression(C=0.1, tol=SOLVED).fit(X, y)
    np.testing.assert_allclose(ERM(C=0.1).fit(X, y).coef_, expected.coef_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scaling", [None, "standardised", "whitened"])
@pytest.mark.parametrize("n_features", [5, 30])
def test_erm_is_solved_to_its_optimum(random, scaling, n_features):
    # Far apart environments leave the loss flat: where a loose tolerance stops much too early.
    X, y, codes = draw(random, (400, 500, 600), n_features)
    X += 5 * random.normal(size=(3, n_features))[codes]
    model = ERM(scaling, C=0.5).fit(X, y)
    units = {None: np.eye(n_features), "standardised": np.diag(X.var(axis=0))}
    penalty = units.get(scaling, np.cov(X, rowvar=False)) @ model.coef_[0] / (0.5 * len(X))
    wrong = expit(model.decision_function(X)) - y
    # Each entry of the gradient, in the units in which the penalty falls on the weights.
    slope = X.T @ wrong / len(X) + penalty
    assert np.abs(slope).max() < 2e-5 * np.abs(X).max()
    assert abs(wrong.mean()) < 2e-5


@pytest.mark.parametrize("scaling", ["standardised", "whitened"])
def test_scaled_erm_is_blind_to_what_does_not_vary(random, scaling):
    X, y, _ = draw(random)
    more = np.column_stack([X, np.full(len(X), 3.0), X[:, 0] - 2 * X[:, 1]])
    model = ERM(scaling).fit(more, y)
    assert model.coef_[0, 5] == pytest.approx(0, abs=1e-8)
    assert np.abs(model.coef_).max() < 1e3
    assert (ERM(scaling).fit(np.ones((6, 2)), np.arange(6) % 2).coef_ == 0).all()


@pytest.mark.parametrize("scaling", ["standardised", "whitened"])
def test_scaled_erm_does_not_depend_on_units_or_mixing(random, scaling):
    X, y, _ = draw(random)
    changed = X * 10.0 ** random.uniform(-2, 2, 5) + random.normal(size=5)
    if scaling == "whitened":
        turn = np.linalg.qr(random.normal(size=(2, 5, 5)))[0]
        changed = X @ turn[0] * 10.0 ** random.uniform(-1, 1, 5) @ turn[1]
    here, there = (ERM(scaling, C=0.01).fit(rows, y) for rows in (X, changed))
    shares = here.predict_proba(X)
    np.testing.assert_allclose(there.predict_proba(changed), shares, atol=2e-4)
    clear = np.abs(shares[:, 0] - 0.5) > 2e-4
    np.testing.assert_array_equal(there.predict(changed)[clear], here.predict(X)[clear])


def test_oracle_is_blind_to_the_span_it_is_told(random):
    X, y, _ = draw(random)
    spurious = random.normal(size=(2, 5))
    model = Oracle(spurious).fit(X, y)
    assert np.abs(model.coef_ @ spurious.T).max() < 1e-10 * np.abs(model.coef_).max()
    other = Oracle(np.linalg.qr(random.normal(size=(3, 3)))[0][:, :2] @ spurious).fit(X, y)
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=2e-4)


@pytest.mark.parametrize("shape", [(2, 4), (2, 6), (5, 2), (4,), (1, 2, 5), (6, 5)])
def test_oracle_refuses_other_shapes_and_all_features(random, shape):
    X, y, _ = draw(random)
    message = "spans every feature" if shape == (6, 5) else r"has shape .* 5 features"
    with pytest.raises(ValueError, match=f"spurious_components {message}"):
        Oracle(random.normal(size=shape)).fit(X, y)
