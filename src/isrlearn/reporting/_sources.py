"""From results to reports: one function for all of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from isrlearn._shown import Shown, spectrum_band
from isrlearn.estimators import ISRPredictor, ISRTransformer
from isrlearn.leaderboard import Comparison, Fitted
from isrlearn.metrics import GroupScores
from isrlearn.reporting._assemble import assemble
from isrlearn.reporting._content import Made
from isrlearn.reporting._estimators import from_estimator
from isrlearn.reporting._images import Examples
from isrlearn.reporting._made import made_now
from isrlearn.reporting._report import Report
from isrlearn.reporting._rows import n_removed
from isrlearn.reporting._scores import compared, methods_of, recommended, verdict_on
from isrlearn.reporting._tables import comparison_tables, group_table
from isrlearn.selection import RULES

PLAIN: Final = "plain training"
SAME: Final = "ISR without removal"


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
    rows: Any = None,
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
        A model of the same features without the removal, to compare a classifier with.
    examples : sequence, default=None
        What each row is, to show those at the ends of a removed direction: texts, arrays of shape
        (height, width) or (height, width, 3), or PIL images; None for a row without. Of the rows
        given here, or to `compare`; of a repair, those that were scored.
    title : str, default=None
        Heading.
    geometry : bool, default=False
        Whether to add the two pictures of the method.
    made : Made, default=None
        How it came about; None says versions and date.
    rows : array-like of shape (n,), default=None
        Numbers of the rows X, to find those that are shown again; None counts them.

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
        found = from_estimator(result, X, y, environments, before, made, examples, rows)
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
    shown = None if result.scene is None else result.scene.shown()
    first = [outcome.test for outcome in result.outcomes if outcome.seed == 0]
    n_rows = len(np.unique(np.concatenate(first)))
    rows = f"{n_rows} test rows (test: {result.test})"
    if result.n_seeds > 1:
        rows += f", {result.n_seeds} seeds"
    if shown is not None:
        rows += f". Rows, spectrum and tests below are of the first round; {shown.n_rows} rows"
    return assemble(
        "Comparison of methods",
        recommended(result, methods, rows + "."),
        groups,
        methods,
        comparison_tables(result, groups, methods),
        shown,
        replace(made, notes=(*_notes(result), *made.notes)),
        examples,
        same=False,
        n_fitted=0 if result.scene is None else len(result.scene.training),
    )


def _notes(result: Comparison) -> tuple[str, ...]:
    failed = (f"{key} could not be fitted: {why}" for key, why in result.failed().items())
    return (
        f"Rows of a round: {result.rows['training']} to fit on, {result.rows['validation']} to "
        f"choose on, {result.rows['test']} to test on.",
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
    ours = result.title
    heads = {PLAIN: scene.plain(), SAME: scene.same_head(), ours: scene.after}
    models = {n: scene.scores(head, classes) for n, head in heads.items() if head is not None}
    groups, methods = methods_of(models, ours=ours)
    facts = result.model.made
    how = "as it is" if facts["rule"] is None else f"chosen by {facts['rule']}"
    notes = (f"{ours}, {how}: {facts['setting']}.", f"Features: {facts['prepared']}.")
    return assemble(
        f"Fit of {ours}",
        replace(
            verdict_on(
                methods[0],
                methods[-1],
                _scored(scene, shown),
                f"{_by_removal(models, shown, ours)} {result.sentence}".strip(),
                seen=not scene.held_out,
            ),
            headline=f"{ours} removes {result.removed}" if result.removed else ours,
        ),
        groups,
        methods,
        (group_table(groups, methods),),
        shown,
        replace(made, notes=(*notes, *made.notes)),
        examples,
        same=False,
        n_fitted=len(scene.training),
    )


def _scored(scene: Any, shown: Shown) -> str:
    """Say which rows were scored."""
    known = sum(e is not None for e in scene.environments[scene.scored].tolist())
    n = f"{shown.n_rows}"
    if scene.n_scored not in (None, shown.n_rows):
        n = f"A sample of {shown.n_rows} of {scene.n_scored}"
    part = "" if known == shown.n_rows else f" The {known} of known environment are scored."
    if scene.held_out:
        return f"{n} test rows that the fit has not seen.{part}"
    return (
        f"{n} rows that the models were fitted on, so the figures flatter them: isrlearn compare "
        f"scores rows that were kept apart.{part}"
    )


def _by_removal(models: Mapping[str, GroupScores], shown: Shown, ours: str) -> str:
    """Say what of the change is due to the removal, and not to the head and its weights."""
    if SAME not in models:
        return ""
    if n_removed(shown) == 0:
        return "Nothing is removed: what changed is due to the head and the weights of groups."
    without, with_it = 100 * models[SAME].worst, 100 * models[ours].worst
    return f"By the removal itself, with the same head: {without:.1f} → {with_it:.1f}."


def from_repair(result: Any, made: Made, examples: Examples | None) -> Report:
    """Return the report of a repaired network."""
    done = result.report
    models = {"the network as it was": done.before, "repaired": done.after}
    groups, methods = methods_of(models, ours="repaired")
    kept = "rows kept from the repair" if done.held_out else "rows that the repair learned from"
    way = "fitted anew" if done.head == "refit" else "the old ones, folded"
    note = (
        f"Layer {done.layer}: {done.n_spurious} of {done.n_features} directions removed; "
        f"its weights are {way}."
    )
    return assemble(
        "Repair of a network",
        verdict_on(
            methods[0],
            methods[1],
            f"{int(done.before.sizes.sum())} {kept}.",
            seen=not done.held_out,
        ),
        groups,
        methods,
        (group_table(groups, methods),),
        replace(result.shown, spectrum=spectrum_band(result.finder), diagnosis=done.diagnosis),
        replace(made, notes=(note, *made.notes)),
        examples,
        same=True,
    )


def from_models(
    models: Mapping[str, GroupScores],
    shown: Shown,
    *,
    names: tuple[str, str],
    rows: str,
    made: Made,
    examples: Examples | None = None,
    title: str = "Models",
    intro: str = "",
    extra: str = "",
    headline: str = "",
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
    intro, extra, headline : str, default=""
        What the task is, what else belongs to the verdict, and what it comes to in a few words.
    examples, title, geometry
        As in `report`.
    """
    groups, methods = methods_of(models, ours=names[1])
    named = {method.name: method for method in methods}
    found = assemble(
        title,
        replace(verdict_on(named[names[0]], named[names[1]], rows, extra), headline=headline),
        groups,
        methods,
        (group_table(groups, methods),),
        shown,
        made,
        examples,
        same=False,
    )
    return replace(found, geometry=geometry, intro=intro)
