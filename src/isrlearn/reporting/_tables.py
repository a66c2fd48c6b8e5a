"""Tables of a report."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from isrlearn.display import isolated
from isrlearn.leaderboard import Comparison, as_table, averages_in_words
from isrlearn.reporting._content import Group, Method, Table
from isrlearn.reporting._page import percent

MOST_COLUMNS: Final = 12
ABOUT: Final = {
    "isr": "ISRClassifier() as it is: directions in which environments differ given the class "
    "removed, then a linear head",
    "isr-head": "the same head on all features",
    "isr-chosen": "ISRClassifier, removal and head chosen on validation rows",
    "isr-chosen-head": "the head that was chosen, on all features",
    "erm": "plain logistic regression",
    "class-reweighted": "plain logistic regression, all classes count the same",
    "group-reweighted": "plain logistic regression, all groups count the same",
    "subsampled": "plain logistic regression on as many rows of each group",
    "group-dro": "the loss of the worst group made small",
    "dfr": "a last layer on balanced parts of the validation rows, averaged",
    "leace": "what tells the environment linearly erased",
    "leace-class": "what tells the environment linearly within a class erased",
    "inlp": "directions that tell the environment projected out, one after the other",
    "coral": "covariances of the environments aligned",
    "v-rex": "a penalty on losses that differ between environments",
    "irm": "a penalty on heads that environments would change (IRMv1)",
}
MOST_ROWS: Final = 60


def group_table(groups: Sequence[Group], methods: Sequence[Method]) -> Table:
    """Return the accuracies of all groups: models in rows, or groups where there are many.

    Parameters
    ----------
    groups : sequence of Group
        Of the scored rows.
    methods : sequence of Method
        With accuracies in the same order.
    """
    sentence = "Accuracy in percent of every group; in brackets the number of its rows."
    names = [f"{isolated(g.label)}, {isolated(g.environment)} ({g.size})" for g in groups]
    if len(groups) <= MOST_COLUMNS:
        rows = tuple((m.name, *map(percent, m.groups)) for m in methods)
        ours = next((i for i, m in enumerate(methods) if m.ours), None)
        return Table("Every group", sentence, ("model", *names), rows, ours)
    lowest = [min(a for a in at if a is not None) for at in _by_group(methods)]
    order = sorted(range(len(groups)), key=lambda i: (lowest[i], i))
    rows = tuple((names[i], *(percent(m.groups[i]) for m in methods)) for i in order[:MOST_ROWS])
    headings = ("group", *(m.name for m in methods))
    hidden = max(0, len(groups) - MOST_ROWS)
    return Table("Every group", f"{sentence} Worst first.", headings, rows, None, hidden)


def _by_group(methods: Sequence[Method]) -> list[tuple[float | None, ...]]:
    return list(zip(*([0.0 if a is None else a for a in m.groups] for m in methods), strict=True))


def comparison_tables(
    result: Comparison, groups: Sequence[Group], methods: Sequence[Method]
) -> tuple[Table, ...]:
    """Return the tables of a comparison.

    Parameters
    ----------
    result : Comparison
        What was compared.
    groups, methods
        As in `group_table`.
    """
    keys = [entry.key for entry in result.entries]
    shipped = keys.index(result.recommendation.key)
    headings, lines = as_table(result.entries)
    seeds = (
        "; means over seeds, the worst group being that of each seed" if result.n_seeds > 1 else ""
    )
    means = (
        " Rows are counted once over all draws, and accuracies are means over them: the smallest "
        "may be above the worst group, which is that of each draw."
        if seeds
        else ""
    )
    every = group_table(groups, methods)
    figures = Table(
        "Every method",
        "Test accuracy in percent, best worst group first, with 95 % bootstrap intervals over the "
        "test rows, mirrored because the least of several groups is lower in resampled rows"
        f"{seeds}. {averages_in_words(headings)} ISR minus this: worst groups on the same "
        "resampled rows.",
        headings[:-1],
        tuple(line[:-1] for line in lines),
        shipped,
    )
    saw = Table(
        "What each method saw and chose",
        "Rows and labels that a method has seen, and its settings; several where rounds chose "
        "differently.",
        ("method", "what it is", "saw", "chose"),
        tuple(
            (e.title, ABOUT.get(e.key, "your own"), e.uses, "; ".join(dict.fromkeys(e.settings)))
            for e in result.entries
        ),
        shipped,
        in_words=True,
    )
    return (
        figures,
        *_left_out(result, shipped),
        replace(every, sentence=every.sentence + means),
        saw,
    )


def _left_out(result: Comparison, highlight: int) -> tuple[Table, ...]:
    """Return the worst group by the group that was left out, if that was the test."""
    names = list(result.entries[0].left_out)
    if not names:
        return ()
    rows = tuple(
        (e.title, *(f"{percent(e.left_out[n])} ({percent(e.unseen[n])})" for n in names))
        for e in result.entries
    )
    sentence = (
        "Accuracy in percent of the worst test group when the group above was taken out of the "
        "training and validation rows, and in brackets of the group taken out. The first table "
        "shows the means of both."
    )
    headings = ("method", *(f"without {isolated(name)}" for name in names))
    return (Table("Every group left out", sentence, headings, rows, highlight),)
