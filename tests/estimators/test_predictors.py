"""The classifier: which rows its parts see, and with what weights."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import draw_rows
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, LogisticHead
from isrlearn.baselines import GroupDRO
from isrlearn.datasets import load_colored_digits
from isrlearn.exceptions import SingleEnvironmentWarning
from isrlearn.heads._logistic import SOLVED
from isrlearn.heads._row_weights import scheme_weights
from isrlearn.metrics import group_scores
from isrlearn.rows._validation import check_rows


class Recorder(ClassifierMixin, BaseEstimator):
    """A head that remembers what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weights_, self.classes_ = X, y, sample_weight, np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def rows(random):
    X, y, e = draw_rows(random.integers(2**31), n_classes=3, n_environments=3, per_cell=120)
    return X / X.std(axis=0), np.array(["x", "y", "z"])[y], np.array(["lab", "field", "sea"])[e]


@pytest.mark.parametrize("isr", [ISRMean(2), ISRCov(2)])
@pytest.mark.parametrize("group_weight", [None, "balanced"])
def test_with_most_environments_missing_the_head_sees_every_row(rows, random, isr, group_weight):
    X, y, e = rows
    partial = np.where(random.uniform(size=len(X)) < 0.7, None, e.astype(object))
    clf = ISRClassifier(isr, Recorder(), group_weight=group_weight)
    clf.fit(X, y, environments=partial)
    assert clf.head_.X_.shape == X.shape
    np.testing.assert_array_equal(clf.head_.y_, y)
    np.testing.assert_allclose(clf.head_.X_, clf.subspace_.project(X))
    assert clf.isr_.moments_.counts.sum() == sum(v is not None for v in partial)
    real = ISRClassifier(isr, group_weight=group_weight).fit(X, y, environments=partial)
    assert real.coef_.shape == (3, 5)
    assert set(real.predict(X)) <= {"x", "y", "z"}


@pytest.mark.parametrize(
    "isr", [ISRMean(2), ISRMean(2, reduced=True), ISRMean(2, scale=0.5), ISRCov(1)]
)
@pytest.mark.parametrize(
    "head",
    [
        LogisticRegression(max_iter=5000),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["logistic", "ridge", "pipeline"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_are_in_the_original_coordinates(rows, isr, head, n_classes):
    X, y, e = rows
    kept = np.isin(y, ["x", "y", "z"][:n_classes])
    X, y, e = X[kept] + 10, y[kept], e[kept]
    clf = ISRClassifier(isr, head, group_weight="balanced").fit(X, y, environments=e)
    by_hand = X @ clf.coef_.T + clf.intercept_
    expected = clf.decision_function(X)
    np.testing.assert_allclose(by_hand.reshape(expected.shape), expected, atol=1e-8)


def test_removed_directions_get_no_weight(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(3)).fit(X, y, environments=e)
    np.testing.assert_allclose(clf.coef_ @ clf.spurious_components_.T, 0, atol=1e-10)


def test_reduced_and_projected_give_the_same_predictor(rows):
    """An L2 penalty sees no difference: removed directions receive no gradient."""
    X, y, e = rows
    head = LogisticRegression(tol=1e-9, max_iter=10_000)
    a, b = (
        ISRClassifier(ISRMean(2, reduced=reduced), head).fit(X, y, environments=e)
        for reduced in (False, True)
    )
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)


def test_balanced_groups_count_the_same(rows, random):
    X, y, e = rows
    own = random.uniform(0.5, 2, size=len(X))
    weights = scheme_weights(check_rows(X, y, e, own), "balanced")
    sums = [weights[(y == c) & (e == v)].sum() for c in np.unique(y) for v in np.unique(e)]
    np.testing.assert_allclose(sums, own.sum() / 9)


def test_rows_of_unknown_environment_get_the_mean_weight_of_their_class():
    y = np.array(["a"] * 6 + ["b"] * 4)
    e = ["s", "s", "s", "t", None, None, "s", "t", None, None]
    weights = scheme_weights(check_rows(np.eye(10), y, e), "balanced")
    # Ten rows, five for each class: a has (s, t, unknown) of 3, 1, 2 rows, b of 1, 1, 2.
    np.testing.assert_allclose(weights[:4] * 6 / 5, [4 / 6, 4 / 6, 4 / 6, 2])
    np.testing.assert_allclose(weights[4:6], 5 / 6)
    np.testing.assert_allclose(weights[6:], 5 / 4)


def test_a_class_with_a_missing_group_is_not_halved():
    y, e = np.array([0] * 6 + [1] * 4), ["s", "s", "s", "s", "t", "t", "t", "t", "t", "t"]
    weights = scheme_weights(check_rows(np.eye(10), y, e), "balanced")
    np.testing.assert_allclose(np.bincount(y, weights), [5, 5])
    assert weights[:4].sum() == pytest.approx(weights[4:6].sum())
    groups = scheme_weights(check_rows(np.eye(10), y, e), "group")
    np.testing.assert_allclose(np.bincount(y, groups), [20 / 3, 10 / 3])


def test_a_class_without_known_environment_gets_weight_one():
    y = np.array(["a", "a", "b", "b"])
    weights = scheme_weights(check_rows(np.eye(4), y, ["s", "t", None, None]), "balanced")
    np.testing.assert_allclose(weights, 1)


def test_without_environments_balanced_means_balanced_classes():
    weights = scheme_weights(check_rows(np.eye(4), [0, 0, 0, 1]), "balanced")
    np.testing.assert_allclose(weights, [2 / 3, 2 / 3, 2 / 3, 2])


def test_without_environments_it_is_the_plain_head(rows):
    X, y, _ = rows
    with pytest.warns(SingleEnvironmentWarning, match="nothing is removed"):
        clf = ISRClassifier(group_weight=None).fit(X, y)
    assert clf.n_spurious_ == 0
    plain = LogisticHead(C="scale", tol=SOLVED, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_)


def test_a_head_that_is_not_linear_has_no_coefficients(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(), head=KNeighborsClassifier(), group_weight=None)
    clf.fit(X, y, environments=e)
    assert not hasattr(clf, "coef_")
    assert not hasattr(clf, "decision_function")
    assert clf.predict_proba(X).shape == (len(X), 3)
    with pytest.raises(ValueError, match="KNeighborsClassifier.fit takes no sample_weight"):
        ISRClassifier(ISRMean(), head=KNeighborsClassifier(), group_weight="balanced").fit(
            X, y, environments=e
        )


def test_weights_reach_a_pipeline_head_with_routing_on(rows):
    X, y, e = rows
    with sklearn.config_context(enable_metadata_routing=True):
        logistic = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        head = make_pipeline(scaler, logistic)
        on = ISRClassifier(ISRMean(), head=head, group_weight="balanced").fit(X, y, environments=e)
    head = make_pipeline(StandardScaler(), LogisticRegression())
    off = ISRClassifier(ISRMean(), head=head, group_weight="balanced").fit(X, y, environments=e)
    np.testing.assert_allclose(on.coef_, off.coef_)


def test_a_wrong_group_weight_is_named(rows):
    X, y, e = rows
    with pytest.raises(ValueError, match="group_weight='equal' must be 'balanced', "):
        ISRClassifier(group_weight="equal").fit(X, y, environments=e)


def test_coloured_digits_get_a_better_worst_group(random):
    train, test = load_colored_digits(random_state=int(random.integers(2**31)))
    head = LogisticRegression(max_iter=2000)
    worst = []
    for n_spurious in (0, 2):
        clf = ISRClassifier(ISRMean(n_spurious), head, group_weight=None)
        clf.fit(train.X, train.y, environments=train.environments)
        worst.append(
            group_scores(test.y, clf.predict(test.X), environments=test.environments).worst
        )
    assert worst[1] > worst[0] + 0.1


def test_parameters_of_the_default_parts_can_be_set(rows):
    X, y, e = rows
    clf = ISRClassifier().set_params(isr__n_spurious=2, head__C=0.5)
    assert clf.fit(X, y, environments=e).n_spurious_ == 2
    assert clf.head_.C == 0.5
    search = GridSearchCV(
        ISRClassifier(), {"isr__n_spurious": [0, 2]}, cv=StratifiedKFold(2, shuffle=True)
    )
    search.fit(X, y, environments=e)
    assert search.best_estimator_.n_spurious_ in (0, 2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        ISRClassifier().set_params(isr__no_such=1)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"head": Ridge()}, r"head=Ridge\(\) is not a classifier"),
        ({"head": LogisticRegression}, "is not a classifier: give one such as LogisticRegression"),
        (
            {"isr": LogisticRegression(), "head": ISRMean()},
            r"isr=LogisticRegression\(\) is not an ISR",
        ),
        ({"isr": make_pipeline(StandardScaler(), ISRMean())}, "put other steps before"),
    ],
)
def test_wrong_parts_are_named(rows, parts, message):
    X, y, e = rows
    with pytest.raises(TypeError, match=message):
        ISRClassifier(**parts).fit(X, y, environments=e)


def test_nothing_to_remove_needs_nothing_to_compare(rows):
    """The baseline of a search over n_spurious fits wherever a plain head fits."""
    X, y, e = rows
    clf = ISRClassifier(ISRMean(0), group_weight=None)
    clf.fit(X, y, environments=np.full(len(X), "a"))
    plain = LogisticHead(C="scale", tol=SOLVED, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_)


def test_weights_reach_heads_of_every_kind_or_are_refused(rows):
    X, y, e = rows
    plain = LogisticRegression(max_iter=5000)
    expected = ISRClassifier(ISRMean(), head=plain, group_weight="balanced").fit(
        X, y, environments=e
    )
    search = GridSearchCV(plain, {"C": [1.0]}, cv=StratifiedKFold(2))
    found = ISRClassifier(ISRMean(), head=search, group_weight="balanced").fit(X, y, environments=e)
    np.testing.assert_allclose(found.coef_, expected.coef_)
    deaf = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.raises(ValueError, match="KNeighborsClassifier.fit takes no sample_weight"):
        ISRClassifier(ISRMean(), head=deaf, group_weight="balanced").fit(X, y, environments=e)


def test_output_configuration_of_pandas_does_not_reach_the_head(rows):
    X, y, e = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    with sklearn.config_context(transform_output="pandas"):
        clf = ISRClassifier().fit(frame, y, environments=e)
    np.testing.assert_array_equal(
        clf.predict(frame), ISRClassifier().fit(X, y, environments=e).predict(X)
    )
    assert clf.isr_.get_feature_names_out().tolist() == list("abcde")
    clf.isr_.transform(frame)


def test_voting_heads_have_no_coefficients_of_their_decisions(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(), head=SVC(kernel="linear")).fit(X, y, environments=e)
    assert not hasattr(clf, "coef_")
    two = y != "z"
    binary = ISRClassifier(ISRMean(), head=SVC(kernel="linear")).fit(
        X[two], y[two], environments=e[two]
    )
    by_hand = X[two] @ binary.coef_[0] + binary.intercept_
    np.testing.assert_allclose(by_hand, binary.decision_function(X[two]), atol=1e-8)


def test_a_default_part_may_be_named_and_tuned_at_once():
    clf = ISRClassifier(ISRCov()).set_params(isr=None, isr__n_spurious=2)
    assert isinstance(clf.isr, ISR)
    assert clf.isr.n_spurious == 2
    clf = ISRClassifier()
    with pytest.raises(ValueError, match="Invalid parameter"):
        clf.set_params(isr__foo=1)


def test_weights_reach_nested_heads_whatever_the_routing(rows):
    X, y, e = rows
    plain = LogisticRegression(max_iter=5000)
    heads = [
        make_pipeline(StandardScaler(), plain),
        GridSearchCV(
            make_pipeline(StandardScaler(), plain), {"logisticregression__C": [1.0]}, cv=2
        ),
    ]
    for head in heads:
        found = []
        for routing in (False, True):
            with sklearn.config_context(enable_metadata_routing=routing):
                clf = ISRClassifier(ISRMean(), head=head, group_weight="balanced").fit(
                    X, y, environments=e
                )
            found.append(clf.coef_)
        np.testing.assert_allclose(*found)


def test_a_sparse_head_folds_too(rows):
    X, y, e = rows
    clf = ISRClassifier(ISRMean(), head=LogisticRegression(max_iter=5000)).fit(X, y, environments=e)
    dense = clf.coef_
    clf.head_.sparsify()
    np.testing.assert_allclose(clf.coef_, dense)


def test_the_default_tests_few_features_and_removes_one_direction_of_many(random):
    X, y, e = draw_rows(int(random.integers(2**31)), n_features=20, per_cell=60)
    few = ISRClassifier().fit(X, y, environments=e)
    assert isinstance(few.isr_, ISR)
    assert few.rank_choice_ is not None
    many = ISRClassifier().fit(np.column_stack([X, random.normal(size=len(X))]), y, environments=e)
    assert isinstance(many.isr_, ISRMean)
    assert many.n_spurious_ == 1


def test_the_default_head_weighs_groups_alike(rows):
    X, y, e = rows
    default = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    balanced = ISRClassifier(ISRMean(1), group_weight="balanced").fit(X, y, environments=e)
    np.testing.assert_array_equal(default.coef_, balanced.coef_)


def test_a_head_that_takes_environments_gets_them(rows, random):
    X, y, e = rows
    partial = e.astype(object)
    partial[random.random(len(e)) < 0.3] = None
    isr = ISRMean(1).fit(X, y, environments=partial)
    alone = GroupDRO(C=0.1).fit(isr.transform(X), y, environments=partial)
    for weight in ("balanced", None):
        clf = ISRClassifier(ISRMean(1), GroupDRO(C=0.1), group_weight=weight)
        clf.fit(X, y, environments=partial)
        np.testing.assert_allclose(clf.head_.coef_, alone.coef_, atol=1e-8)
        np.testing.assert_array_equal(clf.predict(X), alone.predict(isr.transform(X)))


def test_a_head_may_return_nothing_from_fit(rows):
    class Silent(LogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)

    X, y, e = rows
    silent, usual = (
        ISRClassifier(ISRMean(1), head, group_weight=None).fit(X, y, environments=e)
        for head in (Silent(), LogisticRegression())
    )
    np.testing.assert_array_equal(silent.coef_, usual.coef_)
