"""Mistakes in what functions are given: metrics, select, compare, report, repair_head, Subspace."""

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from bad_inputs.rows import E, N, X, Y
from bad_inputs.running import Case
from isrlearn import ISRClassifier, ISRMean, Subspace, compare, fold, repair_head, report, select
from isrlearn.baselines import fit_trials, published_trials
from isrlearn.datasets import load_colored_digits, make_linear_gaussian
from isrlearn.metrics import (
    GroupScorer,
    adjusted_average_accuracy,
    average_accuracy,
    group_scores,
    overlapping_group_scores,
)

FIRST = np.eye(5)[:1]


def calling(function, wrong, says, *values, **options):
    return Case(wrong, lambda folder: function(*values, **options), says)


def removal(**changes):
    parts = {"directions": FIRST, "functionals": FIRST, "centre": np.zeros(5)}
    return Subspace(**parts | {"spectrum": np.zeros(5)} | changes)


def subspace(wrong, says, **changes):
    return calling(removal, wrong, says, **changes)


def projecting(wrong, says, rows):
    return Case(wrong, lambda folder: removal().project(rows), says)


SUBSPACES = [
    subspace(
        "a centre of another width",
        r"centre has shape \(4,\).*must have \(5,\)",
        centre=np.zeros(4),
    ),
    subspace("directions that are not orthonormal", "orthonormal rows", directions=2 * FIRST),
    subspace(
        "one direction as a vector", "directions has shape .*one row for each", directions=FIRST[0]
    ),
    subspace("a centre of NaN", "centre has NaN or infinity: give", centre=np.full(5, np.nan)),
    subspace("a scale above one", "scale=1.5 is not a number in", scale=1.5),
    subspace("text as directions", "directions='x' is text", directions="x"),
    projecting("rows of another width", r"X has shape \(.*, 4\), but there are 5", X[:, :4]),
    projecting("a vector to project", "got 1D array", X[0]),
    projecting("complex rows", "X holds complex numbers", X + 1j),
    calling(Subspace.nothing, "a negative number of features", "n_features=-1 must be", -1),
    calling(removal().angles_to, "an angle to a number", r"other has shape \(1, 1\)", 3),
]


def repairing(wrong, says, **changes):
    given = {"weight": np.ones((3, 5)), "bias": np.zeros(3), "X": X, "y": Y, "environments": E}
    return calling(repair_head, wrong, says, **given | {"isr": ISRMean(1)} | changes)


REPAIRING = [
    repairing("weights of another width", r"weight has shape \(3, 4\).*5", weight=np.ones((3, 4))),
    repairing("weights of NaN", "weight has NaN or infinity", weight=np.full((3, 5), np.nan)),
    repairing("complex weights of a head", "weight holds complex", weight=np.ones((3, 5)) + 1j),
    repairing("text as weights of a head", "weight holds text", weight=np.full((3, 5), "1")),
    repairing("a bias too long", r"bias has shape \(4,\).*must have \(3,\)", bias=np.zeros(4)),
    repairing("a head without bias", "no bias.*centre=0", bias=None),
    repairing(
        "a centre too short", r"centre has shape \(3,\): give a number, or", centre=np.zeros(3)
    ),
    repairing("another kind of transformer", r"isr=PCA\(\) is not an ISR.*give ISR", isr=PCA()),
    calling(
        fold,
        "a tree, folded",
        "DecisionTreeClassifier is not a linear model.*End",
        DecisionTreeClassifier().fit(X, Y),
    ),
]


def scoring(wrong, says, *, y_true=Y, y_pred=Y, environments=E, **options):
    return calling(group_scores, wrong, says, y_true, y_pred, environments=environments, **options)


SCORING = [
    scoring("predictions of another length", "y_true has shape .* and y_pred", y_pred=Y[:-1]),
    scoring("probabilities of three classes", r"y_pred \(.*, 3\): give one", y_pred=X[:, :3]),
    scoring("probabilities for labels", "y_pred holds .*not probabilities", y_pred=X[:, 0]),
    scoring("a prediction that is missing", "y_pred has missing", y_pred=np.where(Y, np.nan, 0)),
    scoring("a true label that is missing", "y_true has missing", y_true=np.where(Y, np.nan, 0)),
    scoring("text and numbers", "one of y_true and y_pred .*same type", y_pred=Y.astype(str)),
    scoring("nothing to score", "y_true has no rows", y_true=[], y_pred=[], environments=[]),
    scoring("no environment known", "no row .*known environment", environments=[None] * N),
    scoring("environments of another length", "199 values for 200 rows", environments=E[:-1]),
    scoring("weights below zero in a score", "negative value", sample_weight=-2 * np.ones(N)),
    calling(average_accuracy, "complex labels", "y_true holds complex", Y + 1j, Y + 1j),
    calling(
        adjusted_average_accuracy,
        "a training group that is not scored",
        "training group .* has no scored rows.*or use",
        Y,
        Y,
        environments=E,
        y_train=Y,
        environments_train=E + 7,
    ),
    calling(
        overlapping_group_scores,
        "attributes without names",
        "environments=.* must be a mapping.*use group_scores",
        Y,
        Y,
        environments=E,
    ),
    calling(GroupScorer, "a score that is not known", "score='best' must be one of", "best"),
    calling(GroupScorer, "environments without an index", "needs a pandas Series", environments=E),
    Case(
        "a scorer that gets no environments",
        lambda folder: GroupScorer()(ISRClassifier().fit(X, Y, environments=E), X, Y),
        "GroupScorer has no environments.*Either turn on metadata routing",
    ),
]


DRAWING = [
    calling(
        make_linear_gaussian,
        "a billion environments",
        "n_environments=1000000000 must be a whole number from 1 to 1000000",
        10**9,
    ),
    calling(make_linear_gaussian, "half a dimension", "d_c=1.5 must be a whole number", 3, 1.5),
    calling(make_linear_gaussian, "a spread of NaN", "must be positive", sigma_c=np.nan),
    calling(make_linear_gaussian, "text for a matrix", "R='x' is text, but an array", R="x"),
    calling(make_linear_gaussian(random_state=0).sample, "rows below zero", "=-1 must be", -1),
    calling(
        load_colored_digits, "noise in words", "label_noise='some' must be", label_noise="some"
    ),
    calling(published_trials, "trials below zero", "n_trials=-1 must be", "irmv1", -1),
    calling(fit_trials, "no trials", "trials is an empty list: give", "irmv1", X, Y == 1, E, []),
]


def selecting(wrong, says, **changes):
    given = {"X": X, "y": Y, "environments": E, "grid": {"isr": [ISRMean(1)]}}
    return calling(select, wrong, says, **given | changes)


SELECTING = [
    selecting("a rule that is not known", "rule='best' must be one of worst-group", rule="best"),
    selecting("a share above one", "share=1.5 must be a number from 0.01 to 0.99", share=1.5),
    selecting("an empty grid", "grid is an empty list: give", grid=[]),
    selecting("a value in a grid, and no list", "must be a list", grid={"head__C": 1.0}),
    selecting("a grid of words", "grid has 'head__C': give a dict of lists", grid=["head__C"]),
    selecting("a parameter that is not there", "(?s)Invalid parameter 'nope'", grid={"nope": [1]}),
    selecting("validation rows without environments", "three arrays", validation=(X, Y)),
    selecting(
        "validation rows of another width",
        "validation rows have 4 features, training rows 5",
        validation=(X[:, 1:], Y, E),
    ),
    selecting(
        "validation labels of another type",
        "labels of the same type",
        validation=(X, Y.astype(str), E),
    ),
    selecting(
        "validation rows in another order of columns",
        "column 0 of the validation rows is 'e', of the training rows 'a': give the same columns",
        X=pd.DataFrame(X, columns=list("abcde")),
        validation=(pd.DataFrame(X, columns=list("edcba")), Y, E),
    ),
    selecting(
        "validation labels of other classes",
        r"validation labels such as 50 are no classes of the training rows, \[0, 1, 2\]: give",
        validation=(X, Y + 50, E),
    ),
    selecting("a number for a grid", "grid has 3: give a dict of lists", grid=3),
    selecting("a parameter named by a number", "grid has 3: give the name", grid={3: [1]}),
    selecting("the name of an estimator", "estimator='isr' must have fit", estimator="isr"),
    selecting(
        "a transformer as estimator", r"estimator=ISRMean\(\) must have", estimator=ISRMean()
    ),
    selecting(
        "leaving out one of two environments",
        "leaves out one of 2 .*needs three",
        environments=E % 2,
        rule="leave-one-environment-out",
    ),
]


def comparing(wrong, says, **changes):
    given = {"X": X, "y": Y, "environments": E, "methods": ["erm"], "n_seeds": 1}
    return calling(compare, wrong, says, **given | changes)


COMPARING = [
    comparing(
        "a method that is not known", "method 'magic' is not known: choose", methods=["magic"]
    ),
    comparing("no method", "methods is an empty list: choose", methods=[]),
    comparing("no seed", "n_seeds=0 must be a whole number from 1", n_seeds=0),
    comparing("a billion draws", "n_draws=1000000000 must be", n_draws=10**9),
    comparing("a test that is not known", "test='all' must be one of split", test="all"),
    comparing("a split that is not there", "there is no split.*use test='random'", test="split"),
    comparing("a split of another length", r"split has shape \(3,\)", split=[0, 1, 2]),
    comparing("a split without test rows", "0 test rows.*Use test='random'", split=np.zeros(N)),
    comparing("a split in words", "split has 'train': give 0", split=["train"] * N),
    comparing("a split into four", "split has 3: give 0", split=np.arange(N) % 4),
    comparing(
        "features near the largest float",
        r"X is so large \(up to .*in column\(s\) \['x0', .*: scale",
        X=X * 1e300,
    ),
    comparing(
        "missing values",
        "missing in x1: fill them with impute",
        X=np.where(X[3, 1] == X, np.nan, X),
    ),
    comparing("one environment to compare", r"1 known value\(s\)", environments=np.zeros(N)),
    comparing("too few names", "1 names for 5 features", feature_names=["age"]),
    comparing("a number for a method", "method 3 has no fit: give a name", methods=[3]),
    comparing("a number for names", "feature_names=3 must be a list", feature_names=3),
    Case(
        "a word for the model before",
        lambda folder: report(
            ISRClassifier().fit(X, Y, environments=E), X, Y, environments=E, before="erm"
        ),
        "before='erm' has no predict: give a fitted classifier",
    ),
    calling(
        report,
        "a report of another model",
        "LogisticRegression has no report",
        LogisticRegression(),
    ),
    Case(
        "a report without rows",
        lambda folder: report(ISRMean().fit(X, Y, environments=E)),
        "needs rows",
    ),
    Case(
        "a report on rows without labels",
        lambda folder: report(
            ISRClassifier().fit(X, Y, environments=E), X[:9], Y, environments=E[:9]
        ),
        "X has 9 rows and y 200: give one label per row",
    ),
]
