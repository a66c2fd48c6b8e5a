"""From results to reports: one function for all of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from isrlearn._base import ISRTransformer, names_of_features
from isrlearn._folding import fold
from isrlearn._predictor_base import ISRPredictor
from isrlearn._regressor import ISRRegressor
from isrlearn._rules import RULES, known
from isrlearn._shown import Head, Shown, show_rows
from isrlearn.leaderboard import Comparison, Fitted
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.reporting._content import Made, Method, Table
from isrlearn.reporting._images import Examples, illustrations
from isrlearn.reporting._made import made_now
from isrlearn.reporting._report import Report
from isrlearn.reporting._rows import directions_of, plane_of
from isrlearn.reporting._scores import compared, methods_of, verdict_on
from isrlearn.reporting._tables import comparison_tables, group_table
from isrlearn.reporting._tests import spectrum_of, tests_of

THIRDS: Final = ("low target", "middle target", "high target")
PLAIN: Final = "plain training"


def report(
    result: Any,
    X: Any = None,
    y: Any = None,
    *,
    environments: Any = None,
    before: Any = None,
    examples: Examples | None = None,
    title: str | None = None,
    geometry: bool = False,
    made: Made | None = None,
) -> Report:
    """Make the page of a result: what the model leaned on, and what the removal did.

    Parameters
    ----------
    result : Comparison, Repair, Fitted, or a fitted estimator of isrlearn
        What to show. `ISRClassifier`, `ISRRegressor`, `ISR`, `ISRMean` and `ISRCov` need rows.
    X : array-like of shape (n, d), default=None
        Rows to show, best such that the fit has not seen. With a Comparison, Repair or Fitted they
        are known.
    y : array-like of shape (n,), default=None
        Their labels or targets.
    environments : array-like of shape (n,), default=None
        Their environments; None where unknown.
    before : fitted classifier, default=None
        A model of the same features without the removal, to compare with.
    examples : sequence, default=None
        What each row is, to show those at the ends of a removed direction: texts, arrays of shape
        (height, width) or (height, width, 3), or PIL images; None for a row without. Of the rows
        that were scored.
    title : str, default=None
        Heading.
    geometry : bool, default=False
        Whether to add the two pictures of the method.
    made : Made, default=None
        How it came about; None says versions and date.

    Returns
    -------
    Report
        With `save`, `html` and `to_dict`.

    Examples
    --------
    >>> import isrlearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from isrlearn.datasets import load_colored_digits
    >>> train, test = load_colored_digits(random_state=0)
    >>> model = isrlearn.ISRClassifier().fit(train.X, train.y, environments=train.environments)
    >>> plain = LogisticRegression(max_iter=1000).fit(train.X, train.y)
    >>> page = isrlearn.report(model, test.X, test.y, environments=test.environments, before=plain)
    >>> [method.name for method in page.methods]
    ['LogisticRegression', 'ISRClassifier']
    >>> page.verdict.before.worst.value < page.verdict.after.worst.value
    True
    """
    made = made_now() if made is None else made
    if isinstance(result, Comparison):
        found = from_comparison(result, made, examples)
    elif isinstance(result, Fitted):
        found = from_fitted(result, made, examples)
    elif hasattr(result, "shown") and hasattr(result, "report"):  # networks.Repair needs torch
        found = from_repair(result, made, examples)
    elif isinstance(result, ISRTransformer | ISRPredictor):
        found = from_estimator(result, X, y, environments, before, made, examples)
    else:
        raise TypeError(
            f"{type(result).__name__} has no report: give a Comparison, a Repair, a Fitted, or a "
            "fitted ISRClassifier, ISRRegressor, ISR, ISRMean or ISRCov with rows."
        )
    found = replace(found, geometry=geometry)
    return found if title is None else found.titled(title)


def from_comparison(result: Comparison, made: Made, examples: Examples | None) -> Report:
    """Return the report of a comparison: rows and tests are those of its first round."""
    groups, methods = compared(result)
    named = dict(zip((entry.key for entry in result.entries), methods, strict=True))
    after = named.get("isr", methods[0])
    before = named.get("erm") or named.get("isr-head")
    shown = None if result.scene is None else result.scene.shown()
    rows = f"{result.rows['test']} test rows (test: {result.test})"
    if result.n_seeds > 1:
        rows += f", {result.n_seeds} seeds"
    if shown is not None:
        rows += f". Rows, spectrum and tests below are of the first round; {shown.n_rows} rows"
    return _report(
        "Comparison of methods",
        verdict_on(before, after, rows + ".", result.verdict),
        groups,
        methods,
        comparison_tables(result, groups, methods),
        shown,
        replace(made, notes=(*_notes(result), *made.notes)),
        examples,
        same=False,
    )


def _notes(result: Comparison) -> tuple[str, ...]:
    failed = (f"{key} could not be fitted: {why}" for key, why in result.failed().items())
    return (
        f"Rows: {result.rows['training']} to fit on, {result.rows['validation']} to choose on, "
        f"{result.rows['test']} to test on.",
        f"Every method chose its setting by the rule “{result.rule}”: {RULES[result.rule]}. Test "
        "labels were looked at once, at the end.",
        f"Features: {result.prepared}.",
        *result.notes,
        *failed,
    )


def from_fitted(result: Fitted, made: Made, examples: Examples | None) -> Report:
    """Return the report of a model that was fitted on a file."""
    scene = result.scene
    if scene is None:
        raise ValueError(
            "this Fitted was made without its rows: fit_data and fit_chunks keep them."
        )
    shown = scene.shown()
    classes = result.model.classes
    models = {
        PLAIN: scene.scores(scene.plain(), classes),
        "ISR": scene.scores(scene.after, classes),
    }
    groups, methods = methods_of(models, ours="ISR")
    rows = f"{shown.n_rows} test rows that the fit has not seen."
    if not scene.held_out:
        rows = (
            f"These are {shown.n_rows} rows that the models were fitted on, so the figures flatter "
            "them: isrlearn compare scores rows that were kept apart."
        )
    facts = result.model.made
    notes = (
        f"Chosen by {facts['rule']}: {facts['setting']} (accuracy by that rule "
        f"{facts['score']:.3f}).",
        f"Features: {facts['prepared']}.",
    )
    return _report(
        "Fit of ISR",
        verdict_on(methods[0], methods[1], rows),
        groups,
        methods,
        (group_table(groups, methods),),
        shown,
        replace(made, notes=(*notes, *made.notes)),
        examples,
        same=False,
    )


def from_repair(result: Any, made: Made, examples: Examples | None) -> Report:
    """Return the report of a repaired network."""
    done = result.report
    groups, methods = methods_of({"before": done.before, "after": done.after}, ours="after")
    kept = "rows kept from the repair" if done.held_out else "rows that the repair learned from"
    way = "fitted anew" if done.head == "refit" else "the old one, folded"
    note = (
        f"Layer {done.layer}: {done.n_spurious} of {done.n_features} directions removed; "
        f"its weights are {way}."
    )
    return _report(
        "Repair of a network",
        verdict_on(methods[0], methods[1], f"{int(done.before.sizes.sum())} {kept}."),
        groups,
        methods,
        (group_table(groups, methods),),
        result.shown,
        replace(made, notes=(note, *made.notes)),
        examples,
        same=True,
    )


def from_estimator(
    fitted: Any,
    X: Any,
    y: Any,
    environments: Any,
    before: Any,
    made: Made,
    examples: Examples | None,
) -> Report:
    """Return the report of a fitted estimator on rows."""
    if X is None or y is None or environments is None:
        raise ValueError(
            f"a report of {type(fitted).__name__} needs rows: report(model, X, y, environments=...)"
        )
    name = type(fitted).__name__
    places = known(environments, len(y))
    is_classifier = isinstance(fitted, ISRPredictor) and not isinstance(fitted, ISRRegressor)
    shown = _shown(fitted, X, y, places, before)
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
    return _report(
        f"{type(fitted).__name__} on {len(shown.environments) and shown.n_rows} rows",
        verdict_on(first, last, f"{shown.n_rows} rows that were given for this page.", words),
        groups,
        methods,
        tables,
        shown,
        made,
        examples,
        same=True,
    )


def _shown(fitted: Any, X: Any, y: Any, environments: Any, before: Any) -> Shown:
    names = tuple(names_of_features(fitted))
    rows = np.asarray(X, dtype=np.float64)
    isr = fitted.isr_ if isinstance(fitted, ISRPredictor) else fitted
    after = Head(*_folded(fitted)) if isinstance(fitted, ISRPredictor) else None
    labels = _thirds(y) if isinstance(fitted, ISRRegressor) else np.asarray(y)
    return show_rows(
        rows,
        labels,
        environments,
        subspace=isr.subspace_,
        before=None if before is None else _linear(before),
        after=after,
        feature_names=names,
        tested=isr,
        decides=not isinstance(fitted, ISRRegressor),
    )


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


def from_models(
    models: Mapping[str, GroupScores],
    shown: Shown,
    *,
    names: tuple[str, str],
    rows: str,
    made: Made,
    examples: Examples | None = None,
    title: str = "Models",
    geometry: bool = False,
) -> Report:
    """Return the report of several models scored on the same rows.

    Parameters
    ----------
    models : mapping of str to GroupScores
        By name.
    shown : Shown
        Rows, with the removal and heads of the two that are compared.
    names : (str, str)
        Before and after.
    rows : str
        Which rows were scored, in words.
    made : Made
        How it came about.
    examples, title, geometry
        As in `report`.
    """
    groups, methods = methods_of(models, ours=names[1])
    named = {method.name: method for method in methods}
    found = _report(
        title,
        verdict_on(named[names[0]], named[names[1]], rows),
        groups,
        methods,
        (group_table(groups, methods),),
        shown,
        made,
        examples,
        same=False,
    )
    return replace(found, geometry=geometry)


def _report(
    title: str,
    verdict: Any,
    groups: Any,
    methods: tuple[Method, ...],
    tables: tuple[Table, ...],
    shown: Shown | None,
    made: Made,
    examples: Examples | None,
    *,
    same: bool,
) -> Report:
    illustrate = None if examples is None else illustrations(examples)
    return Report(
        title=title,
        verdict=verdict,
        groups=groups,
        methods=methods,
        tables=tables,
        spectrum=None if shown is None else spectrum_of(shown),
        plane=None if shown is None else plane_of(shown),
        directions=() if shown is None else directions_of(shown, illustrate),
        tests=None if shown is None else tests_of(shown.diagnosis, shown.subspace.rank, same=same),
        made=made,
    )
