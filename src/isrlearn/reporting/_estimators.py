"""The report of a fitted estimator on rows."""

from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isrlearn._shown import Head, Shown, show_rows
from isrlearn.display import brief
from isrlearn.estimators import ISRPredictor, ISRRegressor, fold, names_of_features
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.reporting._assemble import assemble
from isrlearn.reporting._content import Made, Method, Table
from isrlearn.reporting._images import Examples
from isrlearn.reporting._report import Report
from isrlearn.reporting._scores import methods_of, verdict_on
from isrlearn.reporting._tables import group_table
from isrlearn.rows import check_features, refuse_sparse
from isrlearn.selection import known

THIRDS: Final = ("lowest third", "middle third", "top third")


def from_estimator(
    fitted: Any,
    X: Any,
    y: Any,
    environments: Any,
    before: Any,
    made: Made,
    examples: Examples | None,
    rows: Any = None,
) -> Report:
    """Return the report of a fitted estimator on rows."""
    given = {"X": X, "y": y, "environments": environments}
    missing = [name for name, values in given.items() if values is None]
    if missing:
        raise ValueError(
            f"a report of {type(fitted).__name__} needs rows, but {', '.join(missing)} are "
            "missing: report(model, X, y, environments=...)"
        )
    if before is not None and not hasattr(before, "predict"):
        raise TypeError(f"before={brief(before)} has no predict: give a fitted classifier.")
    name = type(fitted).__name__
    X, y = _checked(fitted, X, y)
    places = known(environments, len(y))
    is_classifier = isinstance(fitted, ISRPredictor) and not isinstance(fitted, ISRRegressor)
    shown = _shown(fitted, X, y, places, before, rows)
    groups: Any = ()
    methods: tuple[Method, ...] = ()
    tables: tuple[Table, ...] = ()
    if is_classifier:
        models = {} if before is None else {type(before).__name__: _scores(before, X, y, places)}
        name = name if name not in models else f"{name}, repaired"
        groups, methods = methods_of({**models, name: _scores(fitted, X, y, places)}, ours=name)
        tables = (group_table(groups, methods),)
    first = methods[0] if len(methods) > 1 else None
    last = methods[-1] if methods else None
    words = shown.diagnosis.verdict if shown.diagnosis is not None else ""
    if isinstance(fitted, ISRRegressor):
        words += f" {_errors(fitted, X, y, places)}"
    return assemble(
        f"{type(fitted).__name__} on {shown.n_rows} row{'s'[: shown.n_rows != 1]}",
        verdict_on(first, last, f"{shown.n_rows} rows that were given for this page.", words),
        groups,
        methods,
        tables,
        shown,
        made,
        examples,
        same=True,
    )


def _shown(fitted: Any, X: Any, y: Any, environments: Any, before: Any, rows: Any) -> Shown:
    names = tuple(names_of_features(fitted))
    isr = fitted.isr_ if isinstance(fitted, ISRPredictor) else fitted
    after = _linear(fitted) if isinstance(fitted, ISRPredictor) else None
    labels = _thirds(y) if isinstance(fitted, ISRRegressor) else np.asarray(y)
    return show_rows(
        np.asarray(X, dtype=np.float64),
        labels,
        environments,
        subspace=isr.subspace_,
        before=None if before is None else _linear(before),
        after=after,
        feature_names=names,
        tested=isr,
        decides=not isinstance(fitted, ISRRegressor),
        places=rows,
    )


def _errors(model: Any, X: Any, y: Any, environments: Any) -> str:
    """Say how far a regression is off, over all rows and in the worst environment."""
    squares = (model.predict(X) - np.asarray(y, dtype=float)) ** 2
    names = sorted({str(e) for e in environments if e is not None})
    texts = np.array([str(e) for e in environments])
    each = {name: float(np.sqrt(squares[texts == name].mean())) for name in names}
    text = f"Root mean squared error {np.sqrt(squares.mean()):.3g}"
    if not each:
        return f"{text}."
    worst = max(each, key=lambda name: each[name])
    return f"{text}; in the worst environment, {worst}, {each[worst]:.3g}."


def _checked(fitted: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows that the estimator takes, or say why it does not."""
    check_is_fitted(fitted)
    refuse_sparse(X)
    checked = check_features(X, fitted.isr_ if isinstance(fitted, ISRPredictor) else fitted)
    if len(checked) != len(y):
        raise ValueError(f"X has {len(checked)} rows and y {len(y)}: give one label per row.")
    return X, np.asarray(y)


def _folded(model: Any) -> tuple[Any, Any]:
    weight, bias = fold(model)
    return np.atleast_2d(weight), np.atleast_1d(bias)


def _linear(model: Any) -> Head | None:
    """Return the head of a linear model; None for any other."""
    try:
        return Head(*_folded(model))
    except TypeError:
        return None


def _thirds(y: Any) -> Any:
    """Return in which third of the targets each row is, to colour rows by."""
    values = np.asarray(y, dtype=float)
    return np.array(THIRDS)[np.searchsorted(np.quantile(values, [1 / 3, 2 / 3]), values)]


def _scores(model: Any, X: Any, y: Any, environments: Any) -> GroupScores:
    return group_scores(y, model.predict(X), environments=environments)
