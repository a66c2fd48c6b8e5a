"""Fit one model on a file that is read chunk by chunk: chosen on a sample, fitted on all rows."""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from sklearn.base import clone

from isrlearn._shown import Head
from isrlearn.estimators import ISRClassifier, fold
from isrlearn.heads import labelled_environments
from isrlearn.io import LinearModel
from isrlearn.io._data import check_classes, check_environments
from isrlearn.io._open import RowFile
from isrlearn.leaderboard._fit import Fitted, check_prior, facts_of, removal_of, with_prior
from isrlearn.leaderboard._preparation import COMPONENTS, Preparation, prepare
from isrlearn.leaderboard._scene import Scene
from isrlearn.leaderboard._shipping import Asked, Fitter, Sample, Shipped, settle
from isrlearn.leaderboard._splits import empty_groups
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.rows import ChunkedRows, Rows
from isrlearn.selection import Selection, Watch, fresh, in_words, select
from isrlearn.typing import FloatArray, LabelArray

SAMPLE_ROWS: Final = 20_000
SAMPLE_BYTES: Final = 2**27
ROWS_AT_ONCE: Final = 2048  # of many features, prepared in double precision
TRAIN, VALIDATION, TEST = range(3)

OpenPart = Callable[[int, Callable[[FloatArray], FloatArray] | None], ChunkedRows]
"""Rows of a part, 0 train, 1 validation, 2 test, with what is done to their features."""


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows, with labels and environments.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Labels.
    environments : ndarray of shape (n,)
        Environments; None where unknown.
    """

    X: FloatArray
    y: LabelArray
    environments: LabelArray

    def __add__(self, other: "RowSample") -> "RowSample":
        """Return the rows of both."""
        return RowSample(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.environments, other.environments]),
        )


@dataclass(frozen=True)
class TakeRows:
    """Take one row of so many from each chunk.

    Parameters
    ----------
    every : int
        One row out of so many.
    """

    title: ClassVar = "Sample"
    every: int

    def __call__(self, rows: Rows) -> RowSample:
        """Return the sample of a chunk."""
        known = labelled_environments(rows.environments, rows.environment_codes)
        if known is None:
            known = np.full(len(rows.y), None, dtype=object)
        chosen = slice(None, None, self.every)
        return RowSample(rows.X[chosen].copy(), rows.y[chosen], known[chosen])


@dataclass(frozen=True, eq=False)
class Predict:
    """Labels, environments and predictions of rows.

    Parameters
    ----------
    model : LinearModel
        What predicts.
    """

    title: ClassVar = "Test"
    model: LinearModel

    def __call__(self, rows: Rows) -> RowSample:
        """Return the predictions of a chunk, in place of the features."""
        found = TakeRows(1)(rows)
        return RowSample(self.model.predict(rows.X), found.y, found.environments)


def fit_chunks(
    file: RowFile,
    open_part: OpenPart,
    *,
    rule: str | None = None,
    method: str | None = None,
    n_spurious: int | None = None,
    prior: str | None = None,
    pca: int = COMPONENTS,
    impute: str | None = None,
    with_scene: bool = False,
    watch: Watch | None = None,
) -> Fitted:
    """Fit an `ISRClassifier` on all rows of a file; what is chosen is chosen on a sample of them.

    Features are prepared as the sample says (standard deviations, principal components, medians).
    The penalty is scaled, so that it weighs as much against the mean loss of all rows as it did
    against that of the sample.

    Parameters
    ----------
    file : RowFile
        The file.
    open_part : callable
        Its rows, in chunks of this process or of a cluster.
    rule, method, n_spurious, prior, pca, impute
        As in `fit_data`; the methods are ISR, its default or chosen.
    with_scene : bool, default=False
        Whether to keep a sample of the rows for a report; of test rows, if there are any.
    watch : callable, default=None
        Called with the numbers of settings done and of all.

    Returns
    -------
    Fitted

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io._open import open_file
    >>> from isrlearn.io._roles import asked_for
    >>> X, sex, species = load_penguins()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/p.npz", features=X, labels=sex, environments=species)
    ...     file = open_file(f"{folder}/p.npz", asked_for(None, (), None, ()))
    ...     fitted = fit_chunks(file, lambda part, prepare: file.rows(part, prepare=prepare))
    >>> bool(np.mean(fitted.model.predict(X) == sex) > 0.8)
    True
    """
    asked = Asked.of(rule, method, n_spurious)
    check_prior(prior)
    _check(file)
    sample = _sample(file, open_part, TRAIN)
    preparation = prepare(
        sample.X,
        file.schema.feature_names,
        pca=pca,
        impute=impute,
        with_units=file.schema.kind == "table",
    )
    if asked.rival is not None:
        raise ValueError(
            f"method={method!r} needs all rows at once, and the file is read in chunks: use "
            "stream=False (--no-stream), or one of the methods isr and isr-chosen."
        )
    n_rows = file.n_rows(TRAIN)

    def fit(setting: dict[str, Any]) -> ISRClassifier:
        model: ISRClassifier = ISRClassifier().set_params(**fresh(setting))
        return model.fit(open_part(TRAIN, InBlocks(preparation)))

    def finish(found: Selection) -> ISRClassifier:
        setting = dict(found.setting)
        if "head__C" in setting:
            setting["head__C"] *= len(sample.y) / n_rows
        return fit(setting)

    def choose(rival: Any, rule: str) -> Selection:
        grid = asked.grid(sample.y, seen.X.shape[1])
        return _chosen(file, open_part, seen, sample.environments, preparation, grid, rule, watch)

    names = file.schema.feature_names if file.schema.kind == "table" else ()
    features = preparation.filled(sample.X)
    seen = Sample(preparation.apply(sample.X), sample.y, features, names)
    found = settle(asked, seen, Fitter(choose, fit, finish))
    classifier = found.estimator
    labels = file.labels
    y = np.asarray(labels.values)[labels.codes[file.is_in(TRAIN)]]
    model = _model(file, preparation, found, len(sample.y))
    model = with_prior(model, found, prior, y, sample.X)
    scene = _scene(file, open_part, sample, preparation, classifier) if with_scene else None
    told = found.title, found.removed, found.sentence, found.validation
    return Fitted(model, found.selection, _scores(file, open_part, model), scene, *told)


@dataclass(frozen=True, eq=False)
class InBlocks:
    """Prepare the features of a chunk, some rows at a time: it is done in double precision.

    Parameters
    ----------
    preparation : Preparation
        What is done.
    """

    preparation: Preparation

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return prepared rows."""
        starts = range(0, len(X), ROWS_AT_ONCE)
        return np.concatenate([self.preparation.apply(X[i : i + ROWS_AT_ONCE]) for i in starts])


def _chosen(
    file: RowFile,
    open_part: OpenPart,
    sample: Sample,
    environments: LabelArray,
    preparation: Preparation,
    grid: list[dict[str, list[Any]]],
    rule: str,
    watch: Watch | None,
) -> Selection:
    validation = None
    if file.n_rows(VALIDATION):
        rows = _sample(file, open_part, VALIDATION)
        validation = preparation.apply(rows.X), rows.y, rows.environments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small cells of settings that are only tried
        return select(
            sample.X,
            sample.y,
            environments=environments,
            # GroupDRO needs all rows.
            grid=[part for part in grid if part.get("head", [None]) == [None]],
            validation=validation,
            rule=rule,
            watch=watch,
        )


def _sample(
    file: RowFile,
    open_part: OpenPart,
    part: int,
    prepare: Callable[[FloatArray], FloatArray] | None = None,
) -> RowSample:
    wanted = min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * file.reader.n_features))
    every = max(1, file.n_rows(part) // max(wanted, 1))
    return open_part(part, prepare).total(TakeRows(every))


def _check(file: RowFile) -> None:
    """Raise `DataError` unless a model can be fitted on the rows to train on."""
    training = file.is_in(TRAIN)
    labels, environments = file.labels, file.environments
    check_classes(file.reader.path, _sizes(labels.values, labels.codes[training]))
    check_environments(file.reader.path, _sizes(environments.values, environments.codes[training]))


def _sizes(values: list[Any], codes: Any) -> Counter[Any]:
    counts = np.bincount(codes, minlength=len(values)).tolist()
    pairs = zip(values, counts, strict=True)
    return Counter({value: count for value, count in pairs if count and value is not None})


def _model(file: RowFile, preparation: Preparation, found: Shipped, n_sampled: int) -> LinearModel:
    weight, bias = preparation.fold_into(*fold(found.estimator))
    how = "" if found.rule is None else f", chosen on {n_sampled} rows"
    setting = f"{in_words(found.setting)}{how}"
    made = facts_of(found, preparation, setting, file.n_rows(TRAIN), _empty_groups(file))
    classes = found.estimator.classes_
    return LinearModel(weight, bias, preparation.fill, classes, file.schema, made)


def _empty_groups(file: RowFile) -> list[tuple[Any, Any]]:
    labels, environments = file.labels, file.environments
    codes = np.stack([labels.codes, environments.codes])[:, file.is_in(TRAIN)]
    c, e = np.unique(codes, axis=1)
    names = np.array([*environments.values], dtype=object)
    return empty_groups(np.array(labels.values[:-1])[c], names[e])


def _scene(
    file: RowFile,
    open_part: OpenPart,
    sample: RowSample,
    preparation: Preparation,
    classifier: ISRClassifier,
) -> Scene:
    fill = _Fill(preparation.fill)  # what is missing would be refused
    tested = _sample(file, open_part, TEST, fill) if file.n_rows(TEST) else None
    held_out = tested is not None and any(e is not None for e in tested.environments)
    rows = sample if tested is None or not held_out else sample + tested
    n_fitted, n_rows = len(sample.y), len(rows.y)
    return Scene(
        X=rows.X,
        y=rows.y,
        environments=rows.environments,
        training=np.arange(n_fitted),
        scored=np.arange(n_fitted if held_out else 0, n_rows),
        held_out=held_out,
        names=file.schema.feature_names,
        preparation=preparation,
        with_units=file.schema.kind == "table",
        after=Head(*fold(classifier)),
        **removal_of(classifier) | {"model": _scaled(classifier, n_fitted / file.n_rows(TRAIN))},
        n_scored=file.n_rows(TEST if held_out else TRAIN),
    )


def _scaled(classifier: ISRClassifier, share: float) -> ISRClassifier:
    """Return the classifier, not fitted, with the penalty for a share of the rows."""
    same: ISRClassifier = clone(classifier)
    if same.head is not None and hasattr(same.head, "C"):
        same.set_params(head__C=same.head.C / share)
    return same


def _scores(file: RowFile, open_part: OpenPart, model: LinearModel) -> GroupScores | None:
    if file.n_rows(TEST) == 0:
        return None
    # Missing values are filled by the model, which the checks of chunks would refuse.
    fill = _Fill(model.fill)
    rows = open_part(TEST, fill).total(Predict(model))
    if all(environment is None for environment in rows.environments):
        return None
    return group_scores(rows.y, rows.X, environments=rows.environments)


@dataclass(frozen=True, eq=False)
class _Fill:
    """Put a value where one is missing."""

    fill: Any

    def __call__(self, X: FloatArray) -> FloatArray:
        return np.where(np.isnan(X), self.fill, X).astype(X.dtype)
