"""Selection by named rules: by hand, against scikit-learn, and what settings share."""

import numpy as np
import pytest
import sklearn
from conftest import draw_rows
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, PredefinedSplit

from isrlearn import ISR, ISRClassifier, ISRMean, select
from isrlearn.baselines import LEACE, LinearProbe
from isrlearn.metrics import GroupScorer, group_scores
from isrlearn.moments import CellMoments
from isrlearn.selection._grid import predictions_of, settings_of
from isrlearn.selection._rules import RULES, scorer, stratified_part
from isrlearn.selection._select import isr_grid

WORST, AVERAGE, LEAVE_OUT = RULES
STRENGTHS = [0.001, 0.1, 10.0]


def draw(random, **options):
    return draw_rows(int(random.integers(2**31)), **options)


def halves(random, **options):
    """Return training rows and validation rows of the same groups."""
    X, y, e = draw(random, per_cell=40, **options)
    apart = stratified_part(y, e, 0.5, random)
    rest = np.setdiff1d(np.arange(len(y)), apart)
    return (X[rest], y[rest], e[rest]), (X[apart], y[apart], e[apart])


def plain(C, X, y):
    return LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(X, y)


PLAIN = {
    "estimator": ISRClassifier(
        ISR(0), LogisticRegression(tol=1e-8, max_iter=10_000), group_weight=None
    ),
    "grid": {"head__C": STRENGTHS},
}


@pytest.mark.parametrize("k", [2, 3])
def test_worst_group_and_average_by_hand(random, k):
    (X, y, e), held_out = halves(random, n_classes=k)
    by_hand = [
        group_scores(held_out[1], plain(C, X, y).predict(held_out[0]), environments=held_out[2])
        for C in STRENGTHS
    ]
    for rule, wanted in (
        (WORST, [s.worst for s in by_hand]),
        (AVERAGE, [s.average for s in by_hand]),
    ):
        found = select(X, y, environments=e, rule=rule, validation=held_out, **PLAIN)
        np.testing.assert_allclose(found.scores[:, 0], wanted, rtol=1e-12)
        assert found.score == found.scores[STRENGTHS.index(found.setting["head__C"]), 0]


def test_leaving_out_environments_by_hand(random):
    X, y, e = draw(random, n_environments=4)
    found = select(X, y, environments=e, rule=LEAVE_OUT, **PLAIN)
    for place, C in enumerate(STRENGTHS):
        wanted = [
            np.mean(plain(C, X[e != v], y[e != v]).predict(X[e == v]) == y[e == v])
            for v in np.unique(e)
        ]
        np.testing.assert_allclose(found.scores[place], wanted, rtol=1e-12)
    assert found.score == pytest.approx(
        found.scores.mean(axis=1)[found.settings.index(found.setting)]
    )


GRID = {"isr__n_spurious": [1, 0, 2], "head__C": STRENGTHS, "group_weight": ["balanced", None]}


def by_setting(found, values):
    """Return scores by setting, so that they can be compared in any order."""
    return {tuple(sorted(s.items(), key=str)): v for s, v in zip(found, values, strict=True)}


def test_parity_with_a_grid_search_over_a_predefined_split(random):
    training, held_out = halves(random)
    X, y, e = (np.concatenate(parts) for parts in zip(training, held_out, strict=True))
    folds = PredefinedSplit([-1] * len(training[1]) + [0] * len(held_out[1]))
    model = ISRClassifier(ISRMean())
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, GRID, scoring=GroupScorer(), cv=folds, refit=False)
        search.fit(X, y, environments=e)
    X, y, e = training
    found = select(X, y, environments=e, estimator=model, grid=GRID, validation=held_out)
    theirs = by_setting(search.cv_results_["params"], search.cv_results_["mean_test_score"])
    ours = by_setting(found.settings, found.scores[:, 0])
    assert ours == pytest.approx(theirs, abs=1e-12)
    sizes = group_scores(held_out[1], held_out[1], environments=held_out[2]).sizes
    assert search.best_score_ - 1 / sizes.min() - 1e-12 <= found.score <= search.best_score_


def test_parity_with_leave_one_group_out(random):
    X, y, e = draw(random, n_environments=4)
    model = ISRClassifier(ISRMean())
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, GRID, scoring="accuracy", cv=LeaveOneGroupOut(), refit=False)
        search.fit(X, y, environments=e, groups=e)
    found = select(X, y, environments=e, estimator=model, grid=GRID, rule=LEAVE_OUT)
    for fold in range(4):
        theirs = search.cv_results_[f"split{fold}_test_score"]
        assert by_setting(found.settings, found.scores[:, fold]) == pytest.approx(
            by_setting(search.cv_results_["params"], theirs), abs=1e-12
        )


def fitted_alone(estimator, setting, rows):
    X, y, e = rows
    fresh = {name: clone(v) if hasattr(v, "get_params") else v for name, v in setting.items()}
    return clone(estimator).set_params(**fresh).fit(X, y, environments=e)


@pytest.mark.parametrize("k", [2, 3])
def test_sharing_changes_no_prediction_of_few_features(random, k):
    rows, (X_new, *_) = halves(random, n_classes=k)
    settings = settings_of(isr_grid(rows[1], X_new.shape[1]))
    found = dict(predictions_of(ISRClassifier(), settings, rows, X_new))
    assert sorted(found) == list(range(len(settings)))
    for place, setting in enumerate(settings):
        alone = fitted_alone(ISRClassifier(), setting, rows).predict(X_new)
        np.testing.assert_array_equal(found[place], alone, str(setting))


def test_sharing_changes_hardly_a_prediction_of_many_features(random):
    rows, held_out = halves(random, n_features=24)
    rows, held_out = ((X / X.std(), y, e) for X, y, e in (rows, held_out))
    settings = settings_of(isr_grid(rows[1], 24))
    found = dict(predictions_of(ISRClassifier(), settings, rows, held_out[0]))
    agree = [
        np.mean(found[place] == fitted_alone(ISRClassifier(), setting, rows).predict(held_out[0]))
        for place, setting in enumerate(settings)
    ]
    assert np.mean(agree) >= 0.995
    chosen = select(*rows[:2], environments=rows[2], validation=held_out)
    alone = fitted_alone(ISRClassifier(), chosen.setting, rows)
    np.testing.assert_array_equal(chosen.estimator.coef_, alone.coef_)
    np.testing.assert_array_equal(chosen.estimator.intercept_, alone.intercept_)


@pytest.mark.parametrize("rival", [LinearProbe(), LinearProbe(weight="group"), LEACE()])
def test_a_rival_that_begins_where_the_last_ended_ends_where_it_would(random, rival):
    rows, (X_new, *_) = halves(random, n_classes=int(random.integers(2, 4)))
    settings = settings_of({"C": [10.0, 0.001, 0.1]})
    found = dict(predictions_of(rival, settings, rows, X_new))
    alone = [fitted_alone(rival, setting, rows).predict(X_new) for setting in settings]
    agree = [np.mean(found[place] == predicted) for place, predicted in enumerate(alone)]
    assert min(agree) >= 0.99
    chosen = select(*rows[:2], environments=rows[2], estimator=rival, grid={"C": [10.0, 0.1]})
    cold = clone(chosen.estimator).fit(*rows[:2], environments=rows[2])
    np.testing.assert_array_equal(chosen.estimator.coef_, cold.coef_)


def test_moments_are_added_up_once_for_all_settings(random, monkeypatch):
    rows, (X_new, *_) = halves(random)
    calls = []
    original = CellMoments.from_checked

    def count(rows, **options):
        if len(rows.environments) > 1:  # those of a head look at no environment
            calls.append(rows)
        return original(rows, **options)

    monkeypatch.setattr(CellMoments, "from_checked", count)
    grid = {"isr": [ISRMean(1), ISRMean(2), ISR(1), ISR(0)], "head__C": STRENGTHS}
    assert len(list(predictions_of(ISRClassifier(), settings_of(grid), rows, X_new))) == 12
    assert len(calls) == 1
    fitted_alone(ISRClassifier(), {"isr": ISRMean(1)}, rows)
    assert len(calls) == 2


def test_the_grid_is_left_as_it_was(random):
    X, y, e = draw(random)
    removals, head = [ISRMean(1), ISR(0)], LogisticRegression()
    grid = {"isr": removals, "head": [head], "head__C": [0.1, 3.0]}
    found = select(X, y, environments=e, grid=grid)
    assert not any(hasattr(part, "n_features_in_") for part in (*removals, head))
    assert head.C == 1.0
    assert found.estimator.isr is not found.setting["isr"]


class Wrong(ClassifierMixin, BaseEstimator):
    """Knows the labels of two classes from the first feature; wrong where the second is small."""

    def __init__(self, n_wrong=0):
        self.n_wrong = n_wrong

    def fit(self, X, y, *, environments):
        if self.n_wrong < 0:
            raise ValueError(f"n_wrong={self.n_wrong} is negative.")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(X[:, 1] < self.n_wrong, 1 - X[:, 0], X[:, 0]).astype(int)


def numbered(random, n_groups=4, size=25):
    """Rows whose second feature counts them within their (class, environment) group."""
    group, place = np.repeat(np.arange(n_groups), size), np.tile(np.arange(size), n_groups)
    y, e = group % 2, group // 2
    rows = random.permutation(len(y))
    return np.column_stack([y, place])[rows].astype(float), y[rows], e[rows]


@pytest.mark.parametrize("rule", [WORST, AVERAGE, LEAVE_OUT])
def test_the_first_setting_within_one_row_of_the_best_is_taken(random, rule):
    rows = numbered(random, n_groups=6, size=25)
    if rule != WORST:  # one setting more is wrong in one row, not in one of each group
        rows[0][:, 1] = np.where((rows[1] == 0) & (rows[2] == 0), rows[0][:, 1], 99)
    n_wrong = [7, 3, 2, 5, 2, 9, 3]
    for _ in range(5):
        random.shuffle(n_wrong)
        X, y, e = rows
        found = select(
            X, y, environments=e, estimator=Wrong(), grid={"n_wrong": list(n_wrong)}, rule=rule,
            validation=rows,
        )  # fmt: skip
        assert found.setting["n_wrong"] == next(m for m in n_wrong if m in (2, 3))
        right = 1 - np.array(n_wrong) / {WORST: 25, AVERAGE: 150, LEAVE_OUT: 150}[rule]
        np.testing.assert_allclose(found.scores.mean(axis=1), right)


def test_one_row_of_a_tiny_group_is_no_tie(random):
    X, y, e = rows = numbered(random, size=5)
    grid = {"n_wrong": [3, 2]}
    found = select(X, y, environments=e, estimator=Wrong(), grid=grid, validation=rows)
    assert found.setting["n_wrong"] == 2


def test_a_setting_that_the_rows_do_not_allow_is_left_out_with_its_reason(random):
    X, y, e = draw(random, n_environments=2, n_features=8)
    found = select(X, y, environments=e, grid={"isr": [ISRMean(5), ISRMean(1)]})
    assert found.setting["isr"].n_spurious == 1
    assert list(found.reasons) == [0]
    with pytest.raises(ValueError) as error:
        ISRClassifier(ISRMean(5)).fit(X, y, environments=e)
    assert found.reasons[0] == str(error.value)
    assert np.isnan(found.scores[0]).all()
    assert np.isfinite(found.scores[1]).all()
    with pytest.raises(ValueError, match=r"no setting can be fitted on these rows: .*5"):
        select(X, y, environments=e, grid={"isr": [ISRMean(5), ISRMean(6)]})


def test_a_setting_of_any_estimator_may_be_refused(random):
    X, y, e = numbered(random)
    found = select(X, y, environments=e, estimator=Wrong(), grid={"n_wrong": [-1, 0]})
    assert found.reasons == {0: "n_wrong=-1 is negative."}
    assert found.score == 1.0


def judged(sizes, n_right, rule=WORST):
    """Score groups of given sizes and numbers of right rows, one environment each."""
    e = np.repeat(np.arange(len(sizes)), sizes)
    right = np.concatenate([np.arange(n) < r for n, r in zip(sizes, n_right, strict=True)])
    y = np.arange(len(e)) % 2
    y[:] = 0
    return scorer(rule)(y, np.where(right, 0, 1), e)


def test_groups_of_fewer_than_ten_rows_are_not_counted():
    assert judged([9, 10, 40], [0, 8, 30]) == (0.75, 1 / 40)
    assert judged([10, 10, 40], [0, 8, 30]) == (0.0, 1 / 10)
    assert judged([9, 10, 40], [0, 8, 30], AVERAGE) == (pytest.approx(38 / 59), 1 / 59)


def test_where_all_groups_are_small_all_are_counted():
    assert judged([9, 8, 7], [9, 4, 0]) == (0.0, pytest.approx(1 / 7))


def test_errors_say_what_is_allowed(random):
    X, y, e = draw(random, n_environments=2)
    with pytest.raises(ValueError, match=r"rule='best' must be one of worst-group, average"):
        select(X, y, environments=e, rule="best")
    with pytest.raises(ValueError, match=r"leaves out one of 2 training environment.*needs three"):
        select(X, y, environments=e, rule=LEAVE_OUT)
    for nothing in (None, [None] * len(y), np.full(len(y), np.nan)):
        with pytest.raises(ValueError, match="needs environments of the validation rows"):
            select(X, y, environments=e, validation=(X, y, nothing), **PLAIN)
    with pytest.raises(ValueError, match="validation rows have 4 features, training rows 5"):
        select(X, y, environments=e, validation=(X[:, 1:], y, e))
    with pytest.raises(ValueError, match=r"grid\['head__C'\]=\[\] must be a list"):
        select(X, y, environments=e, grid={"head__C": []})
    with pytest.raises(ValueError, match="must be a list"):
        select(X, y, environments=e, grid={"group_weight": "balanced"})
    with pytest.raises(TypeError, match="give a dict of lists"):
        select(X, y, environments=e, grid=["head__C"])
    with pytest.raises(ValueError, match="share"):
        select(X, y, environments=e, share=1.5)


def test_an_empty_list_of_grids_is_refused(random):
    X, y, e = draw(random)
    with pytest.raises(ValueError, match="grid"):
        select(X, y, environments=e, grid=[])


SMALL = {"isr": [ISRMean(1), ISR(0)], "head__C": [0.01, 1.0]}


def test_without_validation_rows_a_share_of_every_group_is_set_apart(random):
    X, y, e = draw(random, per_cell=50)
    seen = []

    class Watching(Wrong):
        def fit(self, X, y, *, environments):
            seen.append((X, y, environments))
            return super().fit(X, y, environments=environments)

    X[:, 0] = y
    select(X, y, environments=e, estimator=Watching(), grid={"n_wrong": [0]}, share=0.3)
    (_, first_y, first_e), (last_X, last_y, last_e) = seen
    every = group_scores(y, y, environments=e).sizes
    fitted = group_scores(first_y, first_y, environments=first_e).sizes
    np.testing.assert_array_equal(every - fitted, np.round(0.3 * every))
    for given, used in ((X, last_X), (y, last_y), (e, last_e)):
        np.testing.assert_array_equal(given, used)


def test_the_chosen_setting_is_fitted_on_all_rows_and_repeats(random):
    X, y, e = draw(random)
    first, again = (select(X, y, environments=e, grid=SMALL, random_state=7) for _ in range(2))
    assert first.setting == again.setting
    np.testing.assert_array_equal(first.scores, again.scores)
    np.testing.assert_array_equal(first.estimator.coef_, again.estimator.coef_)
    alone = fitted_alone(ISRClassifier(), first.setting, (X, y, e))
    np.testing.assert_array_equal(first.estimator.coef_, alone.coef_)


def test_random_states_set_apart_other_rows(random):
    X, y, e = numbered(random)
    grid = {"n_wrong": [12]}
    scores = {
        select(X, y, environments=e, estimator=Wrong(), grid=grid, random_state=s).scores[0, 0]
        for s in range(20)
    }
    assert len(scores) > 1


@pytest.mark.parametrize("rule", [WORST, AVERAGE, LEAVE_OUT])
def test_names_of_classes_and_environments_do_not_matter(random, rule):
    X, y, e = draw(random)
    numbers = select(X, y, environments=e, grid=SMALL, rule=rule)
    names, places = np.array(["no", "yes"])[y], np.array(["here", "over", "there"])[e]
    words = select(X, names, environments=places.tolist(), grid=SMALL, rule=rule)
    np.testing.assert_array_equal(numbers.scores, words.scores)
    assert numbers.settings.index(numbers.setting) == words.settings.index(words.setting)
    assert set(words.estimator.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize("rule", [WORST, AVERAGE, LEAVE_OUT])
def test_rows_of_unknown_environment_are_fitted_and_judged_as_the_rule_says(random, rule):
    (X, y, e), (X_new, y_new, e_new) = halves(random)
    some, few = e.astype(object), e_new.astype(object)
    some[random.permutation(len(y))[:12]] = None
    few[random.permutation(len(y_new))[:6]] = None
    held_out = X_new, y_new, few
    found = select(X, y, environments=some, rule=rule, validation=held_out, **PLAIN)
    for place, C in enumerate(STRENGTHS):
        predicted = plain(C, X, y).predict(X_new)
        if rule == LEAVE_OUT:
            parts = [np.array([v != left for v in some]) for left in range(3)]
            fits = [plain(C, X[rest], y[rest]) for rest in parts]
            wanted = [fit.score(X[~rest], y[~rest]) for fit, rest in zip(fits, parts, strict=True)]
        elif rule == AVERAGE:
            wanted = [np.mean(predicted == y_new)]
        else:
            wanted = [group_scores(y_new, predicted, environments=few).worst]
        np.testing.assert_allclose(found.scores[place], wanted, rtol=1e-12)


def test_the_watcher_counts_every_setting_of_every_fold(random):
    X, y, e = draw(random)
    seen = []
    select(X, y, environments=e, grid=SMALL, rule=LEAVE_OUT, watch=lambda *n: seen.append(n))
    assert seen == [(done, 12) for done in range(1, 13)]


def test_odd_arguments_are_answered_in_words(random):
    X, y, e = draw(random)
    generated = {"isr": (g for g in [ISRMean(1), ISR(0)])}
    assert len(select(X, y, environments=e, grid=generated).settings) == 2
    with pytest.raises(TypeError, match="labels of the same type"):
        select(X, y, environments=e, validation=(X, y.astype(str), e))
    with pytest.raises(ValueError, match="missing labels"):
        select(X, [None] * len(y), environments=e)
    with pytest.raises(ValueError, match="must be one of worst-group"):
        select(X, y, environments=e, rule=["average"])
    with pytest.raises(ValueError, match="single row"):
        select(X[:4], [0, 1, 0, 1], environments=[0, 1, 2, 3])
