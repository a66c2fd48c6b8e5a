"""``isrlearn predict``: predictions of a new file, and their scores where it has labels."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isrlearn._cli_options import Data, Force, Names
from isrlearn._cli_progress import watching, working
from isrlearn._cli_support import (
    Result,
    UserError,
    all_or_nothing,
    answering,
    files_read,
    may_write,
    must_exist,
    tell,
    written_together,
)
from isrlearn._csv import InertWriter
from isrlearn.display import brief, visible

ROWS_AT_ONCE = 50_000
MOST_GROUPS = 12  # of which a table is a quick look; a machine gets all
LONGEST_SHOWN = 26
EQUALLY_FREQUENT = (
    "The probabilities are not calibrated and treat the classes as equally frequent; isrlearn fit "
    "--prior train gives them their frequencies in training."
)


@answering
def predict(
    model: Path,
    data: Data,
    /,
    *,
    out: Path,
    keep: Names = None,
    force: Force = False,
) -> Result:
    """Predict the rows of a new file with a saved model.

    Columns are found by their names; environments are not needed. Where the file has labels, the
    predictions are scored, and where it has environments too, in each group.

    Example: isrlearn predict model.safetensors new.csv --out predictions.csv --keep patient

    Parameters
    ----------
    model
        What isrlearn fit wrote.
    out
        File for row number, prediction and the probability of each class, ending in .csv.
    keep
        A column of the file, such as an ID, that is copied beside the predictions; may be given
        more than once.
    """
    must_exist(data)
    may_write(out, force, ".csv", reads=[model, *files_read(data)])
    if model.suffix != ".safetensors":
        raise UserError(f"{model} is not a model: first the model, then the file of rows.")
    with working("Loading ..."):
        from isrlearn.io import LinearModel
    with all_or_nothing():
        fitted = LinearModel.load(model)
        taken = [name for name in keep or [] if name.strip() in _our_columns(fitted)]
        if taken:
            raise UserError(
                f"--keep {taken[0]}: the predictions have a column of that name already. Rename "
                "the one of the file."
            )
        with working(f"Reading {data} ..."):
            rows, kept = _rows_and_kept(data, fitted.schema, keep or [])
        tell(rows.notes)
        with written_together(out) as (place,):
            predicted, shares = _write_predictions(fitted, rows.features, kept, place)
            scores, unknown = _scored(fitted, rows, predicted, shares)
    tell(_notes_on_labels(unknown, rows, fitted))
    figures = {"rows": len(rows), **_score_figures(scores), "unknown_labels": unknown}
    figures["prior"] = fitted.made.get("prior")
    text = [] if scores is None else list(_score_lines(scores, fitted.schema))
    if figures["prior"] == "balanced":
        text.append(EQUALLY_FREQUENT)
    return Result(figures, text, {"predictions": out})


def _rows_and_kept(data: Path, schema: Any, keep: list[str]) -> tuple[Any, dict[str, Any]]:
    """Read the rows to predict, and the columns that are copied."""
    from isrlearn.io._data import kept_columns, open_source, read_source
    from isrlearn.io._roles import asked_for

    source = open_source(data)
    rows = read_source(source, asked_for(None, (), None, (), schema))
    return rows, kept_columns(source, [name.strip() for name in keep])


def _our_columns(fitted: Any) -> list[str]:
    """Return the columns of the predictions that are not copied."""
    return ["row", "prediction", *(f"probability {c}" for c in fitted.classes.tolist())]


def _write_predictions(
    fitted: Any, features: Any, kept: dict[str, Any], place: Path
) -> tuple[Any, Any]:
    """Write predictions as csv, and return them, (n,), and the probabilities, (n, k)."""
    import numpy as np

    n_rows, parts = len(features), []
    with (
        place.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
        watching() as watch,
    ):
        writer = InertWriter(file)
        writer.writerow(["row", *kept, *_our_columns(fitted)[1:]])
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            predicted = fitted.predict(features[part])
            shares = fitted.predict_proba(features[part])
            parts.append((predicted, shares))
            beside = [texts[part] for texts in kept.values()]
            numbers = range(begin, begin + len(predicted))
            columns = [numbers, *beside, predicted.tolist(), shares.tolist()]
            for *cells, values in zip(*columns, strict=True):
                writer.writerow([*cells, *(f"{value:.6g}" for value in values)])
            watch("Predicting", begin + len(shares), n_rows)
    predictions, probabilities = zip(*parts, strict=True)
    return np.concatenate(predictions), np.concatenate(probabilities)


def _scored(fitted: Any, rows: Any, predicted: Any, shares: Any) -> tuple[Any, dict[str, int]]:
    """Return scores of the rows whose label the model knows, and the rows of each other label."""
    if rows.labels is None:
        return None, {}
    import numpy as np

    from isrlearn._prediction_scores import prediction_scores
    from isrlearn.io._values import class_codes

    labelled = np.flatnonzero([label is not None for label in rows.labels])
    labels = np.array(rows.labels[labelled].tolist())
    codes = class_codes(labels, fitted.classes)
    unknown = Counter(map(str, labels[codes < 0].tolist()))
    scored, codes = labelled[codes >= 0], codes[codes >= 0]
    if len(scored) == 0:
        return None, unknown
    environments = None if rows.environments is None else rows.environments[scored]
    known = codes, predicted[scored], shares[scored]
    return prediction_scores(*known, fitted.classes, environments), unknown


def _notes_on_labels(unknown: dict[str, int], rows: Any, fitted: Any) -> list[str]:
    if not unknown:
        return []
    from isrlearn.io._values import closest, listed, named

    classes = [str(name) for name in fitted.classes.tolist()]
    numbers = all(isinstance(label, int | None) for label in rows.labels.tolist())
    words = [] if numbers else unknown  # 10 is no misprint of 1
    meant = [(name, close) for name in words if (close := closest(name, classes)) is not None]
    renamed = listed([f"{brief(close)} for {brief(name)}" for name, close in meant])
    s = "s" if len(unknown) > 1 else ""
    return [
        f"the model does not know the label{s} {named(list(unknown))}: {sum(unknown.values())} of "
        f"{len(rows)} rows are not scored. It knows {named(classes)}"
        f"{f'; did you mean {renamed}?' if meant else '.'}"
    ]


def _score_figures(scores: Any) -> dict[str, Any]:
    """Return scores for machines; None where there is none."""
    names = ("accuracy", "balanced_accuracy", "log_loss", "auc")
    figures = {"rows_scored": getattr(scores, "n_rows", 0)}
    figures |= {name: getattr(scores, name, None) for name in names}
    groups = getattr(scores, "groups", None)
    if groups is None:
        return {**figures, "worst_group": None, "worst": None, "groups": []}
    label, environment = groups.worst_group
    return {
        **figures,
        "worst_group": groups.worst,
        "worst": {"label": label, "environment": environment},
        "groups": _groups(groups),
    }


def _groups(scores: Any) -> list[dict[str, Any]]:
    """Return the groups that have rows, the worst first."""
    found = [
        {
            "label": label,
            "environment": environment,
            "rows": int(scores.sizes[c, e]),
            "accuracy": float(scores.accuracies[c, e]),
        }
        for c, label in enumerate(scores.classes.tolist())
        for e, environment in enumerate(scores.environments.tolist())
        if scores.sizes[c, e]
    ]
    return sorted(found, key=lambda group: float(group["accuracy"]))


def _score_lines(scores: Any, schema: Any) -> Iterator[str]:
    yield f"Accuracy {_percent(scores.accuracy)} ({_rows(scores.n_rows)})"
    yield f"Balanced accuracy {_percent(scores.balanced_accuracy)}"
    yield f"Log loss {scores.log_loss:.3f}"
    if scores.auc is not None:
        yield f"AUC {scores.auc:.3f}"
    if scores.groups is None:
        return
    from isrlearn.io._values import CROSS

    groups = _groups(scores.groups)
    yield f"Worst group {_percent(groups[0]['accuracy'])} ({_rows(groups[0]['rows'])})"
    heads = [schema.label, CROSS.join(schema.environment), "rows", "accuracy"]
    cells = [
        [str(g["label"]), str(g["environment"]), str(g["rows"]), _percent(g["accuracy"])]
        for g in groups[:MOST_GROUPS]
    ]
    yield from _aligned([heads, *cells])
    if len(groups) > MOST_GROUPS:
        yield f"... and {len(groups) - MOST_GROUPS} more groups, with --json."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _rows(n_rows: int) -> str:
    return f"{n_rows} row" if n_rows == 1 else f"{n_rows} rows"


def _aligned(table: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table of two names and two numbers, of less than 80 columns."""
    short = [[_shortened(cell) for cell in cells] for cells in table]
    widths = [max(map(len, column)) for column in zip(*short, strict=True)]
    for cells in short:
        pairs = list(zip(cells, widths, strict=True))
        names, numbers = pairs[:2], pairs[2:]
        words = [name.ljust(w) for name, w in names] + [number.rjust(w) for number, w in numbers]
        yield "  ".join(["", *words])


def _shortened(name: str) -> str:
    name = visible(name)
    return name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 3]}..."
