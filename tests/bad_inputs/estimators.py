"""Mistakes in the parameters of estimators, in what comes after a fit, and in moments."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from bad_inputs.rows import E, N, X, Y, frame, spoilt
from bad_inputs.running import Case
from isrlearn import (
    ISR,
    CellMoments,
    ChunkedRows,
    ISRClassifier,
    ISRCov,
    ISRMean,
    ISRRegressor,
    fold,
)

# Parameters that all transformers have.
BAD_PARAMETERS = [
    ({"n_spurious": -1}, "n_spurious=-1 must be an integer >= 0"),
    ({"n_spurious": 1.5}, "n_spurious=1.5 must be"),
    ({"n_spurious": "Auto"}, "n_spurious='Auto' must be .* or 'auto'"),
    ({"n_spurious": 10**30}, "n_spurious=10+ would leave nothing of 5 .*at most 4"),
    ({"scale": 1.2}, r"scale=1.2 is not a number in \[0, 1\]"),
    ({"scale": float("nan")}, "scale=nan is not a number in"),
    ({"scale": "half"}, "scale='half' is not a number in"),
    ({"scale": 1j}, "scale=1j is not a number in"),
    ({"scale": 0.5, "reduced": True}, "reduced=True.*scale=0.5.*use scale=0, or"),
    ({"condition_on": 7}, r"condition_on=7 names \[7\], but the classes are \[0, 1, 2\]"),
    ({"condition_on": []}, r"condition_on=\[\] names no class"),
    ({"condition_on": (0, [1])}, r"condition_on=\(0, \[1\]\) names \[\[1\]\], but the classes are"),
    ({"reduced": "yes"}, "reduced='yes' must be True or False"),
    ({"alpha": float("nan")}, "alpha=nan must be a number between 0 and 1"),
    ({"alpha": 7}, "alpha=7 must be a number between 0 and 1"),
    ({"alpha": 1e-12}, "alpha=1e-12 is too small.*at least 1e-05"),
    ({"rank_test": "t"}, "rank_test='t' must be one of"),
    ({"n_permutations": 5}, "n_permutations=5 cannot give a p-value of alpha=0.01.*at least 99"),
    ({"n_permutations": 10**9}, "n_permutations=1000000000 must be .*to 100000"),
]
BAD_PAIRS = ["some", (0, 0), (0, 9), (0, 1, 2), (0, [1]), 3, None]


def in_words(parameters):
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def setting(estimator, says, wrong):
    return Case(wrong, lambda folder: estimator.fit(X, Y, environments=E), says)


PARAMETERS = [
    *(setting(ISRMean(**given), says, in_words(given)) for given, says in BAD_PARAMETERS),
    setting(
        ISR(random_state=-1), "random_state=-1 must be .*from 0 to 4294967295", "random_state=-1"
    ),
    setting(ISR(random_state="x"), "random_state='x' must be", "random_state='x'"),
    setting(
        ISRMean(3, condition_on=1),
        "n_spurious=3 is more .* at most 2, .*3 environments.*Lower",
        "more directions than environments show",
    ),
    setting(
        ISRCov(pairs=(0, 9)),
        r"pairs=\(0, 9\) must be 'all', 'distinct', or two .*\[0, 1, 2\]",
        "pairs of an environment that is not there",
    ),
    setting(ISRCov(pairs="some"), "pairs='some' must be", "pairs='some'"),
    setting(ISRClassifier("mean"), "isr='mean' is not an ISR transformer: give", "isr='mean'"),
    setting(ISRClassifier(head="ridge"), "head='ridge' is not a classifier: give", "head='ridge'"),
    setting(
        ISRClassifier(head=LogisticRegression),
        "head=<class .*LogisticRegression'> is not a classifier",
        "a class as head",
    ),
    setting(
        ISRClassifier(group_weight="equal"),
        "group_weight='equal' must be 'balanced', 'class' or None",
        "group_weight='equal'",
    ),
]


def fitted(estimator=None):
    return (ISRMean() if estimator is None else estimator).fit(X, Y, environments=E)


def in_chunks(X_next, e_next):
    isr = ISRMean().partial_fit(X, Y, environments=E)
    return isr.partial_fit(X_next, Y, environments=e_next)


def other_names(folder):
    isr = ISRMean().fit(frame(X), Y, environments=E)
    isr.transform(frame(X).rename(columns={"age 4": "weight"}))


APPLYING = [
    Case(
        "not fitted",
        lambda folder: ISRMean().transform(X),
        "not fitted yet. Call 'fit'",
        theirs=True,
    ),
    Case(
        "fewer columns than in fit",
        lambda folder: fitted().transform(X[:, :4]),
        "X has 4 features, but ISRMean is expecting 5",
    ),
    Case("other columns than in fit", other_names, "(?s)feature names.*weight.*age 4", theirs=True),
    Case(
        "NaN in rows to predict",
        lambda folder: fitted(ISRClassifier()).predict(spoilt((0, 2), np.nan)(X[:9], 0, 0)[0]),
        r"NaN in column\(s\) \[2\], in 1 of 9 rows",
    ),
    Case(
        "sparse rows to predict",
        lambda folder: fitted(ISRClassifier()).predict(csr_array(X)),
        "sparse",
    ),
    Case(
        "one row as a vector",
        lambda folder: fitted(ISRClassifier()).predict(X[0]),
        r"shape \(5,\).*reshape\(1, -1\)",
    ),
    Case("no rows to transform", lambda folder: fitted().transform(X[:0]), "X has no rows"),
    Case(
        "a chunk of another width",
        lambda folder: in_chunks(X[:, :3], E),
        "X has 3 features, but ISRMean is expecting 5",
    ),
    Case(
        "a chunk with other labels",
        lambda folder: in_chunks(X, E.astype(str)),
        "cannot join labels 0 and '0': use only",
    ),
    Case(
        "a stream that knows one environment only",
        lambda folder: ISRMean().partial_fit(X, Y, environments=np.zeros(N)).transform(X),
        "1 distinct value",
    ),
    Case(
        "rows in chunks to transform",
        lambda folder: fitted().transform(ChunkedRows.from_arrays(X, Y)),
        "X is a ChunkedRows, but an array or a table",
    ),
    Case(
        "weights below zero in score",
        lambda folder: fitted(ISRClassifier()).score(X, Y, sample_weight=-np.ones(N)),
        r"negative value \(-1\): weights must be >= 0",
    ),
    Case(
        "a missing label in score",
        lambda folder: fitted(ISRClassifier()).score(X, np.where(Y, np.nan, 0)),
        "y has missing values.*before scoring",
    ),
    Case(
        "too few labels in score",
        lambda folder: fitted(ISRClassifier()).score(X, Y[1:]),
        "y has 199 values but X has 200 rows",
    ),
    Case(
        "text in the score of a regression",
        lambda folder: fitted(ISRRegressor(ISR(1))).score(X, Y.astype(str)),
        "y holds text, such as .*convert it",
    ),
    Case(
        "a model that is not fitted, folded",
        lambda folder: fold(ISRClassifier()),
        "not fitted",
        theirs=True,
    ),
]
MOMENTS = [
    Case("no features", lambda folder: CellMoments.empty(0), "n_features=0 must be a whole number"),
    Case("half a feature", lambda folder: CellMoments.empty(1.5), "n_features=1.5 must be a whole"),
    Case(
        "rows of another width",
        lambda folder: CellMoments.empty(4).update(X, Y, E),
        "moments of 4 and of 5 features: all rows must have the same columns",
    ),
    Case(
        "weights and squares that overflow together",
        lambda folder: CellMoments.from_rows(X * 1e100, Y, E, np.full(N, 1e200)),
        r"X \(up to .*e\+10.\) and the weights .* overflow: scale sample_weight",
    ),
    Case(
        "moments with and without scatters",
        lambda folder: (
            CellMoments.from_rows(X, Y, E) + CellMoments.from_rows(X, Y, E, second_order=False)
        ),
        "no scatters: give both the same second_order",
    ),
    Case(
        "moments of an unknown protocol",
        lambda folder: CellMoments.from_arrays(
            CellMoments.from_rows(X, Y, E).to_arrays() | {"protocol": np.array(99)}
        ),
        "protocol 99, and this version reads .*install the version",
    ),
]
