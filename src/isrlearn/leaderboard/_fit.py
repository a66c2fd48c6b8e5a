"""Fit one model on a file's rows and fold everything into one linear map."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from isrlearn import __version__
from isrlearn._shown import Head
from isrlearn.diagnosis import Diagnosis
from isrlearn.display import brief, is_one_of
from isrlearn.estimators import ISR, ISRClassifier, default_isr, fold
from isrlearn.io import Data, LinearModel
from isrlearn.io._model import with_class_sizes
from isrlearn.leaderboard._methods import Method
from isrlearn.leaderboard._preparation import COMPONENTS, Preparation, prepare
from isrlearn.leaderboard._run import Part, choose_method
from isrlearn.leaderboard._scene import Scene
from isrlearn.leaderboard._shipping import (
    Asked,
    Fitter,
    Sample,
    Shipped,
    settle,
)
from isrlearn.leaderboard._splits import empty_groups, untrained
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.selection import Selection, Watch, fresh, in_words, known, select
from isrlearn.subspace import Subspace
from isrlearn.typing import IntArray, LabelArray

TRAIN: Final = "train"


class Fitted(NamedTuple):
    """A model, how it was chosen, and what it does on the test rows if there are any.

    Parameters
    ----------
    model : LinearModel
        The whole way from features to a prediction as one linear map.
    selection : Selection or None
        What was tried; None where nothing was chosen.
    test : GroupScores or None
        Scores on the test rows; None without a split.
    scene : Scene or None
        What a page shows of the rows.
    title : str
        The method.
    removed : str
        What it removes, in words.
    sentence : str
        How the default and the model chosen on validation rows compare; empty where only one was
        asked for.
    validation : dict
        The same as plain values; empty where one of the two could not be fitted.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io import read_data
    >>> from isrlearn.leaderboard import fit_data
    >>> X, sex, species = load_penguins()
    >>> rows = {"features": X, "labels": sex, "environments": species}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/p.npz", split=np.arange(333) % 3, **rows)
    ...     fitted = fit_data(read_data(f"{folder}/p.npz"))
    >>> fitted.title, fitted.removed, int(fitted.test.sizes.sum())
    ('ISR', '2 directions', 111)
    """

    model: LinearModel
    selection: Selection | None
    test: GroupScores | None
    scene: Scene | None = None
    title: str = "ISR"
    removed: str = ""
    sentence: str = ""
    validation: Mapping[str, Any] = MappingProxyType({})


def fit_data(
    data: Data,
    *,
    rule: str | None = None,
    method: str | None = None,
    n_spurious: int | None = None,
    prior: str | None = None,
    pca: int = COMPONENTS,
    impute: str | None = None,
    watch: Watch | None = None,
) -> Fitted:
    """Fit a linear model on the rows of a file.

    If nothing else is asked for, both ``ISRClassifier()`` and the model chosen on validation rows
    are fitted. The default is kept unless neither removes anything, and the result says where the
    two disagree. With a split, models are fitted on the training rows and chosen on the validation
    rows; test rows are scored once. Without validation rows a fifth of every group is set apart to
    choose, and models are fitted on all.

    Parameters
    ----------
    data : Data
        Rows with labels and environments.
    rule : str, default=None
        Choose removal and head by this rule, as in `select`.
    method : str, default=None
        Fit this method of `known_methods`, or one of your own, ``my_module:MyEstimator``, that is
        linear. It chooses its setting by the rule, or by "worst-group".
    n_spurious : int, default=None
        Remove so many directions.
    prior : {None, "train"}, default=None
        "train": probabilities are of classes as frequent as in training, which moves decisions
        towards frequent classes. None: as the head counts classes; ISR counts them alike.
    pca : int, default=100
        Most principal components.
    impute : {None, "median"}, default=None
        How missing values are filled.
    watch : callable, default=None
        As in `select`.

    Returns
    -------
    Fitted

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io import read_data
    >>> from isrlearn.leaderboard import fit_data
    >>> X, sex, species = load_penguins()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/p.npz", features=X, labels=sex, environments=species)
    ...     model = fit_data(read_data(f"{folder}/p.npz")).model
    >>> bool(np.mean(model.predict(X) == sex) > 0.8)
    True
    """
    asked = Asked.of(rule, method, n_spurious)
    check_prior(prior)
    data.check_for_fit()
    training, validation, test = _parts(data)
    preparation = _prepared(data, training, pca, impute)
    rows = _rows(data, training, preparation)
    held_out = _rows(data, validation, preparation) if len(validation) else None
    X, y, environments = rows

    def choose(rival: Method | None, rule: str) -> Selection:
        if rival is not None:
            return _chosen(rival, rule, rows, held_out)
        arguments = {"environments": environments, "validation": held_out, "watch": watch}
        return select(X, y, grid=asked.grid(y, X.shape[1]), rule=rule, **arguments)

    def fit(setting: dict[str, Any]) -> ISRClassifier:
        model: ISRClassifier = ISRClassifier().set_params(**fresh(setting))
        return model.fit(X, y, environments=environments)

    names = data.schema.feature_names if data.schema.kind == "table" else ()
    sample = Sample(X, y, preparation.filled(data.features[training]), names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small cells of settings that are only tried
        found = settle(asked, sample, Fitter(choose, fit, lambda chosen: chosen.estimator))
    model = _model(data, preparation, found, training)
    model = with_prior(model, found, prior, y, data.features[training])
    scene = _scene(data, preparation, found.estimator, training, test)
    scores = _scores(data, model, test)
    told = found.title, found.removed, found.sentence, found.validation
    return Fitted(model, found.selection, scores, scene, *told)


def diagnose_data(
    data: Data, *, pca: int = COMPONENTS, impute: str | None = None, seed: int = 0
) -> tuple[Diagnosis, str]:
    """Diagnose the training rows of a file.

    Parameters
    ----------
    data : Data
        Rows with labels and environments.
    pca, impute
        As in `fit_data`.
    seed : int, default=0
        Of the tests.

    Returns
    -------
    diagnosis : Diagnosis
    prepared : str
        What was done to the features first.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.datasets import load_penguins
    >>> from isrlearn.io import read_data
    >>> from isrlearn.leaderboard import diagnose_data
    >>> X, sex, species = load_penguins()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/p.npz", features=X, labels=sex, environments=species)
    ...     diagnosis, prepared = diagnose_data(read_data(f"{folder}/p.npz"))
    >>> diagnosis.n_features, prepared
    (4, 'features divided by their standard deviation')
    """
    found = tests_on(data, pca=pca, impute=impute, seed=seed)
    return found.isr.diagnose(), found.prepared


class Tested(NamedTuple):
    """A removal whose number of directions was found by tests, and the rows it was tested on."""

    isr: Any
    X: Any
    y: LabelArray
    environments: LabelArray
    prepared: str
    rows: IntArray
    """Where they are in the file."""


def tests_on(
    data: Data, *, pca: int = COMPONENTS, impute: str | None = None, seed: int = 0
) -> Tested:
    """Test what differs between the environments of the training rows of a file.

    Parameters
    ----------
    data, pca, impute, seed
        As in `diagnose_data`.

    Returns
    -------
    Tested
    """
    data.check_for_fit()
    training, _, _ = _parts(data)
    preparation = _prepared(data, training, pca, impute, whiten=False)
    Z, y, environments = _rows(data, training, preparation)
    X = _named(Z, data, preparation)
    isr = default_isr(Z.shape[1]).set_params(n_spurious="auto", random_state=seed)
    fitted = isr.fit(X, y, environments=environments)
    return Tested(fitted, X, y, environments, preparation.words, training)


def _named(X: Any, data: Data, preparation: Preparation) -> Any:
    """Give columns the names of the features of the file, or of components."""
    import pandas as pd

    components = [f"component {j + 1}" for j in range(X.shape[1])]
    whole = preparation.matrix.ndim == 1
    return pd.DataFrame(X, columns=list(data.schema.feature_names) if whole else components)


def _parts(data: Data) -> tuple[IntArray, IntArray, IntArray]:
    if data.split is None:
        none = np.empty(0, dtype=np.intp)
        return np.arange(len(data)), none, none
    training, validation, test = (np.flatnonzero(data.split == part) for part in range(3))
    return training, validation, test


def _prepared(
    data: Data, training: IntArray, pca: int, impute: str | None, *, whiten: bool = True
) -> Preparation:
    return prepare(
        data.features[training],
        data.schema.feature_names,
        pca=pca,
        impute=impute,
        with_units=data.schema.kind == "table",
        whiten=whiten,
    )


def _labels(data: Data) -> LabelArray:
    if data.labels is None:
        raise ValueError(f"{data.source} was read without labels.")
    return data.labels


def _environments(data: Data) -> LabelArray:
    return known(data.environments, len(data))


def _rows(data: Data, rows: IntArray, preparation: Preparation) -> tuple[Any, Any, Any]:
    X = preparation.apply(data.features[rows])
    return X, _labels(data)[rows], _environments(data)[rows]


def _chosen(rival: Method, rule: str, rows: Part, held_out: Part | None) -> Selection:
    try:
        return choose_method(rival, rule, rows, held_out)
    except ValueError:
        raise
    except Exception as error:
        if not rival.own:
            raise
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"method {rival.key} cannot be fitted: {what}") from error


def _model(data: Data, preparation: Preparation, found: Shipped, training: IntArray) -> LinearModel:
    empty = empty_groups(_labels(data)[training], _environments(data)[training])
    made = facts_of(found, preparation, found.setting, len(training), empty)
    classes = np.asarray(found.estimator.classes_)
    weight, bias = preparation.fold_into(*_linear(found))
    return LinearModel(weight, bias, preparation.fill, classes, data.schema, made)


def check_prior(prior: Any) -> None:
    """Raise a ValueError unless `prior` is one that `with_prior` can give."""
    if prior is not None and not is_one_of(prior, [TRAIN]):
        raise ValueError(f"prior={brief(prior)} must be {TRAIN!r}, or None for that of the head.")


def with_prior(
    model: LinearModel, found: Shipped, prior: str | None, y: LabelArray, features: Any
) -> LinearModel:
    """Return a model that knows how frequent its classes were, and has the prior asked for.

    `features` are rows to train on, or a sample of them: a prior moves decisions, and how far is
    kept as "predicted_shares".
    """
    alike = getattr(found.estimator, "_counts_classes_alike", None)
    if alike is None:
        if prior is not None:
            raise ValueError(
                f"prior={prior!r} is not defined for {found.title}, which weighs classes in its "
                "own way: leave prior out."
            )
        return model
    sizes = [int(np.sum(y == label)) for label in model.classes]
    model = with_class_sizes(model, sizes, prior=prior, alike=alike)
    if prior is None:
        return model
    predicted = model.predict(features)
    shares = [float(np.mean(predicted == label)) for label in model.classes]
    return replace(model, made={**model.made, "predicted_shares": shares})


def _linear(found: Shipped) -> tuple[Any, Any]:
    try:
        return fold(found.estimator)
    except TypeError as error:
        raise ValueError(
            f"{found.title} is not linear, and a model is saved as one linear map ({error}): "
            "choose another method, or save the estimator with isrlearn.save as .skops."
        ) from error


def facts_of(
    found: Shipped,
    preparation: Preparation,
    setting: Any,
    n_rows: int,
    empty: list[tuple[Any, Any]],
) -> dict[str, Any]:
    """Return how a model was made, as plain values to be kept with it."""
    return {
        "isrlearn": __version__,
        "method": found.title,
        "rule": found.rule,
        "score": found.score,
        "setting": setting if isinstance(setting, str) else in_words(setting),
        "n_spurious": int(getattr(found.estimator, "n_spurious_", 0)),
        "removed": found.removed,
        "prepared": preparation.words,
        "rows": n_rows,
        "untrained": untrained(empty) if empty else "",
    }


def _scene(
    data: Data, preparation: Preparation, fitted: Any, training: IntArray, test: IntArray
) -> Scene:
    environments = _environments(data)
    held_out = any(environments[row] is not None for row in test)  # else no group to score
    return Scene(
        X=data.features,
        y=_labels(data),
        environments=environments,
        training=training,
        scored=test if held_out else training,
        held_out=held_out,
        names=data.schema.feature_names,
        preparation=preparation,
        with_units=data.schema.kind == "table",
        after=Head(*fold(fitted)),
        **removal_of(fitted),
    )


def removal_of(fitted: Any) -> dict[str, Any]:
    """Return what a `Scene` shows of a removal; of a rival, that there is none."""
    if isinstance(fitted, ISRClassifier):
        return {"isr": fitted.isr_, "model": fitted, "subspace": fitted.subspace_}
    n_features = fold(fitted)[0].shape[-1]
    return {"isr": ISR(0), "subspace": Subspace.nothing(n_features)}


def _scores(data: Data, model: LinearModel, test: IntArray) -> GroupScores | None:
    environments = _environments(data)[test]
    if len(test) == 0 or all(environment is None for environment in environments):
        return None
    predicted = model.predict(data.features[test])
    return group_scores(_labels(data)[test], predicted, environments=environments)
