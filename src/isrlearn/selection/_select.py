"""Choose hyper-parameters by a named rule, without a look at the test rows."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from isrlearn.baselines import GroupDRO
from isrlearn.display import brief, figure, some, table
from isrlearn.estimators import ISR, ISRClassifier, ISRMean, ISRTransformer, default_isr
from isrlearn.moments import FEW_COORDINATES
from isrlearn.rows import check_number, check_rows, seeded
from isrlearn.selection._grid import fit_with, fresh, predictions_of, settings_of
from isrlearn.selection._rules import (
    FEWEST_ROWS,
    LEAVE_ONE_OUT,
    WORST_GROUP,
    Fold,
    Score,
    check_rule,
    environment_folds,
    known,
    scorer,
    stratified_part,
)
from isrlearn.typing import Float64Array, FloatArray, LabelArray

STRENGTHS: Final = (0.0001, 0.001, 0.01, 0.1)
"""Values of C that are tried, for features of mean variance one and 5000 rows."""
ROWS: Final = 5000
ROBUST_STRENGTHS: Final = (0.0001, 0.01)
FEW_CLASSES: Final = 3
ROUNDING: Final = 1e-12
MOST_SLACK: Final = 1 / FEWEST_ROWS

Watch = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Selection:
    """The setting that a rule chose, fitted.

    Parameters
    ----------
    estimator : estimator
        Fitted with the setting.
    setting : dict
        The parameters that were chosen.
    rule : str
        By which rule.
    score : float
        Of the chosen setting, on the rows that the rule looks at.
    settings : list of dict
        All that were tried, in the order of the grid.
    scores : ndarray of shape (n_settings, n_folds)
        Their scores; NaN where the rows did not allow the setting.
    reasons : dict of int to str
        Why a setting was not allowed, by its place.
    seconds : float
        Time of the last fit, the one with the chosen setting.

    Examples
    --------
    >>> from isrlearn import ISRMean, select
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> found = select(X, sex, environments=species, grid={"isr": [ISRMean(0), ISRMean(1)]})
    >>> len(found.settings), found.setting in found.settings, found.rule
    (2, True, 'worst-group')
    >>> found.estimator.predict(X).shape
    (333,)
    """

    estimator: Any
    setting: dict[str, Any]
    rule: str
    score: float
    settings: list[dict[str, Any]]
    scores: Float64Array
    reasons: dict[int, str]
    seconds: float

    def __repr__(self) -> str:
        return f"Selection({in_words(self.setting)}; {self.rule}: {self.score:.3f})"

    def _repr_html_(self) -> str:
        means = self.scores.mean(axis=1)  # NaN, last in the order, where not allowed
        order = np.argsort(-means, kind="stable").tolist()
        rows = [
            (in_words(self.settings[i]), [figure(means[i]), self.reasons.get(i, "")]) for i in order
        ]
        return table(
            f"Chosen by {self.rule}: {in_words(self.setting)}, {self.score:.3f}",
            ["score", "why not"] if self.reasons else ["score"],
            rows if self.reasons else [(name, cells[:1]) for name, cells in rows],
            corner="setting",
        )


def in_words(setting: Mapping[str, Any]) -> str:
    """Return a setting as a line.

    Parameters
    ----------
    setting : mapping of str to object
        Parameters.

    Examples
    --------
    >>> in_words({"isr": ISRMean(1), "head__C": 0.1})
    'isr=ISRMean(1), C=0.1'
    """
    words = []
    for name, value in setting.items():
        if name == "head" and value is None:  # the default head
            continue
        text = str(value)
        if isinstance(value, ISRTransformer):
            given = "" if value.condition_on is None else f", condition_on={value.condition_on}"
            text = f"{type(value).__name__}({value.n_spurious!r}{given})"
        words.append(f"{name.removeprefix('head__')}={text}")
    return ", ".join(words)


def default_grid(labels: Any, n_features: int) -> list[dict[str, list[Any]]]:
    """Return the one setting of ``ISRClassifier()``.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Class labels; not looked at.
    n_features : int
        Number of features.

    Returns
    -------
    list of dict of str to list
    """
    return [{"isr": [default_isr(n_features)], "head": [None]}]


def isr_grid(labels: Any, n_features: int) -> list[dict[str, list[Any]]]:
    """Return the settings of `ISRClassifier` that `select` and `compare` try.

    Removal: one or two leading directions of the class means; with two or three classes also the
    leading direction of each class alone; the leading direction of the whitened joint estimate; up
    to 20 features, what the tests of `ISR` and `ISRMean` find; nothing. Heads: logistic with
    balanced groups, and plain; with two or three classes also `GroupDRO`. The order is the order
    of preference where settings do equally well. ``ISRClassifier()`` is among the settings.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Class labels.
    n_features : int
        Number of features.

    Returns
    -------
    list of dict of str to list
    """
    classes = np.unique(np.asarray(labels)).tolist()
    removals: list[Any] = [ISRMean(1), ISRMean(2), ISR(1)]
    few_classes = len(classes) <= FEW_CLASSES
    if few_classes:
        removals += [ISRMean(1, condition_on=[c]) for c in classes]
    if n_features <= FEW_COORDINATES:
        removals += [ISR(random_state=0), ISRMean("auto", random_state=0)]
    logistic: dict[str, list[Any]] = {
        "group_weight": ["balanced", None],
        "head__C": strengths(STRENGTHS, labels),
    }
    grid: list[dict[str, list[Any]]] = [{"isr": removals, **logistic}]
    if few_classes:
        robust: dict[str, list[Any]] = {
            "head": [GroupDRO()],
            "head__C": strengths(ROBUST_STRENGTHS, labels),
        }
        grid.append({"isr": [ISRMean(1), ISRMean(2)], **robust})
    return [*grid, *default_grid(labels, n_features), {"isr": [ISR(0)], **logistic}]


def strengths(values: Sequence[float], labels: Any) -> list[float]:
    """Return values of C that weigh as much against the mean loss as `values` with 5000 rows.

    Parameters
    ----------
    values : sequence of float
        Values of C for 5000 rows.
    labels : array-like of shape (n,)
        Labels of the rows there are.

    Returns
    -------
    list of float

    Examples
    --------
    >>> strengths([0.001, 0.1], range(500))
    [0.01, 1.0]
    """
    return [float(f"{value * ROWS / len(labels):.2g}") for value in values]


def select(
    X: Any,
    y: Any,
    *,
    environments: Any,
    estimator: Any = None,
    grid: Any = None,
    rule: str = WORST_GROUP,
    validation: tuple[Any, Any, Any] | None = None,
    share: float = 0.2,
    random_state: Any = 0,
    watch: Watch | None = None,
) -> Selection:
    r"""Choose hyper-parameters by a named rule and fit the estimator with them.

    Rules (test rows are never given, so they cannot be looked at):

    * "worst-group": the accuracy of the worst (class, environment) group of validation rows;
    * "average": the accuracy over validation rows;
    * "leave-one-environment-out": each training environment is predicted by a model that was
      fitted on the others; the mean of these accuracies. It asks for what is wanted of a new
      environment and needs no validation rows, but at least three environments.

    Settings that differ from the best by no more than one row of what is scored, and no more than a
    tenth, are as good: the first of them in the grid is taken. With few validation rows that is
    often the very first.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Training rows.
    y : array-like of shape (n,)
        Class labels.
    environments : array-like of shape (n,)
        Environments; None, NaN or NA where unknown.
    estimator : estimator, default=None
        Its ``fit`` gets environments if it takes them; None is `ISRClassifier`.
    grid : dict of lists, or list of such dicts, default=None
        Values to try; the first are preferred. None tries what `isr_grid` lists.
    rule : {"worst-group", "average", "leave-one-environment-out"}, default="worst-group"
        By what to choose.
    validation : (X, y, environments), default=None
        Rows to choose on. The model is then fitted on the training rows alone. None: a random
        share of every (class, environment) group is set apart, and the chosen setting is fitted on
        all rows.
    share : float, default=0.2
        How much is set apart.
    random_state : int, RandomState or None, default=0
        Draws the rows that are set apart.
    watch : callable, default=None
        Called with the numbers of settings done and of all.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from isrlearn import ISRMean, select
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> grid = {"isr": [ISRMean(0), ISRMean(1)], "group_weight": ["balanced"]}
    >>> found = select(X, y, environments=species, grid=grid, rule="leave-one-environment-out")
    >>> found.scores.shape, sorted(found.setting)
    ((2, 3), ['group_weight', 'isr'])
    """
    check_rule(rule)
    check_number("share", share, 0.01, 0.99)
    estimator = ISRClassifier() if estimator is None else estimator
    _refuse_no_estimator(estimator)
    table = _Table(X, y, environments, validation)
    settings = settings_of(isr_grid(y, table.X.shape[1]) if grid is None else grid)
    folds = table.folds(rule, share, random_state)
    scores, reasons = _scores(estimator, settings, table, folds, scorer(rule), watch)
    best = _first_of_the_best(scores, reasons)
    fitted = table.training if validation is not None else np.arange(len(table.y))
    model = clone(estimator).set_params(**fresh(settings[best]))
    begin = time.perf_counter()
    fit_with(model, *table.take(fitted))
    seconds = time.perf_counter() - begin
    values = np.array([[score.value for score in row] for row in scores])
    return Selection(
        model, settings[best], rule, float(values[best].mean()), settings, values, reasons, seconds
    )


def _refuse_no_estimator(estimator: Any) -> None:
    methods = ("fit", "predict", "get_params")
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in methods):
        raise TypeError(
            f"estimator={brief(estimator)} must have fit, predict and get_params: give one such as "
            "ISRClassifier()."
        )


def _three(validation: Any) -> tuple[Any, Any, Any]:
    if not isinstance(validation, tuple | list) or len(validation) != 3:
        raise TypeError("validation must be three arrays, (X, y, environments), or None.")
    X, y, environments = validation
    return X, y, environments


def _refuse_others(X: Any, X_new: Any, y: LabelArray, y_new: LabelArray) -> None:
    """Refuse validation rows with other columns, or of other classes only."""
    names, others = (list(getattr(part, "columns", ())) for part in (X, X_new))
    if names and others and names != others:
        place = next(
            j for j, pair in enumerate(zip(names, others, strict=True)) if len({*pair}) > 1
        )
        raise ValueError(
            f"column {place} of the validation rows is {brief(others[place])}, of the training "
            f"rows {brief(names[place])}: give the same columns in the same order."
        )
    if not np.isin(y_new, y).any():
        raise ValueError(
            f"validation labels such as {brief(y_new[0])} are no classes of the training rows, "
            f"{some(np.unique(y).tolist())}: give labels of the same classes."
        )


class _Table:
    """Training rows, and below them the validation rows if there are any."""

    def __init__(self, X: Any, y: Any, environments: Any, validation: Any) -> None:
        rows = check_rows(X, y, environments)
        parts = [(rows.X, rows.y, known(environments, len(rows.y)))]
        if validation is not None:
            X_new, y_new, environments_new = _three(validation)
            more = check_rows(X_new, y_new, environments_new)
            if (more.y.dtype.kind in "US") != (rows.y.dtype.kind in "US"):
                raise TypeError(
                    "one of y and the validation labels holds numbers, the other strings: give "
                    "labels of the same type."
                )
            if more.X.shape[1] != rows.X.shape[1]:
                raise ValueError(
                    f"validation rows have {more.X.shape[1]} features, training rows "
                    f"{rows.X.shape[1]}: give the same columns."
                )
            _refuse_others(X, X_new, rows.y, more.y)
            parts.append((more.X, more.y, known(environments_new, len(more.y))))
        self.X: FloatArray = np.concatenate([part[0] for part in parts])
        self.y: LabelArray = np.concatenate([part[1] for part in parts])
        self.environments: LabelArray = np.concatenate([part[2] for part in parts])
        self.training = np.arange(len(rows.y))

    def take(self, rows: Any) -> tuple[Any, Any, Any]:
        return self.X[rows], self.y[rows], self.environments[rows]

    def folds(self, rule: str, share: float, random_state: Any) -> list[Fold]:
        if rule == LEAVE_ONE_OUT:
            inside = self.environments[self.training]
            return environment_folds(inside, len(inside))
        every = np.arange(len(self.y))
        if len(self.y) > len(self.training):
            return [Fold(self.training, every[len(self.training) :])]
        seed = seeded(random_state).randint(2**31 - 1)
        random = np.random.default_rng(seed)
        apart = stratified_part(self.y, self.environments, share, random)
        return [Fold(np.setdiff1d(every, apart), apart)]


def _scores(
    estimator: Any,
    settings: list[dict[str, Any]],
    table: _Table,
    folds: list[Fold],
    judge: Callable[[LabelArray, LabelArray, Any], Score],
    watch: Watch | None,
) -> tuple[list[list[Score]], dict[int, str]]:
    """Score every setting in every fold."""
    reasons: dict[int, str] = {}
    scores = [[Score(np.nan, 0.0)] * len(folds) for _ in settings]
    for i, fold in enumerate(folds):
        X_new, y_new, environments_new = table.take(fold.scored)
        found = predictions_of(estimator, settings, table.take(fold.fitted), X_new)
        for done, (place, predicted) in enumerate(found, 1):
            if isinstance(predicted, ValueError):
                reasons[place] = str(predicted)
            else:
                scores[place][i] = judge(y_new, predicted, environments_new)
            if watch is not None:
                watch(i * len(settings) + done, len(folds) * len(settings))
    return scores, reasons


def _first_of_the_best(scores: list[list[Score]], reasons: dict[int, str]) -> int:
    """Return the place of the first setting within one row of the best mean score."""
    means = np.array([np.mean([score.value for score in row]) for row in scores])
    if np.isnan(means).all():
        raise ValueError(f"no setting can be fitted on these rows: {next(iter(reasons.values()))}")
    best = int(np.nanargmax(means))
    one_row = float(np.mean([score.one_row for score in scores[best]])) / len(scores[best])
    slack = min(one_row, MOST_SLACK) + ROUNDING
    return int(np.flatnonzero(means >= means[best] - slack)[0])
