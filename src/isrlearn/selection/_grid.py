"""Many settings of one estimator on the same rows, sharing what they have in common."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from isrlearn.baselines import LastLayerRival
from isrlearn.display import brief
from isrlearn.estimators import ISRClassifier, ISRTransformer
from isrlearn.heads import fit_head, takes_environments
from isrlearn.moments import FEW_COORDINATES, CellMoments
from isrlearn.rows import InMemory, Rows, check_rows
from isrlearn.typing import FloatArray, LabelArray

Setting = Mapping[str, Any]
STRENGTH = "head__C"


def settings_of(grid: Any) -> list[dict[str, Any]]:
    """Return every setting of a grid, in its order: the last name varies fastest.

    Parameters
    ----------
    grid : mapping of str to sequence, or list of such mappings
        Values to try for each parameter.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> settings_of({"C": [1, 2], "weight": [None, "group"]})[1]
    {'C': 1, 'weight': 'group'}
    """
    grids = list(grid) if np.iterable(grid) and not isinstance(grid, Mapping) else [grid]
    if not grids:
        raise ValueError("grid is an empty list: give a dict of lists, or several such dicts.")
    return [setting for part in grids for setting in _settings_of_one(part)]


def _settings_of_one(grid: Any) -> list[dict[str, Any]]:
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid has {brief(grid)}: give a dict of lists, or a list of such dicts.")
    values = {}
    for name, given in grid.items():
        if not isinstance(name, str):
            raise TypeError(f"grid has {brief(name)}: give the name of a parameter, as text.")
        values[name] = [] if isinstance(given, str) or not np.iterable(given) else list(given)
        if not values[name]:
            raise ValueError(
                f"grid[{brief(name)}]={brief(given)} must be a list that is not empty."
            )
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def predictions_of(
    estimator: Any,
    settings: Sequence[Setting],
    rows: tuple[Any, Any, Any],
    X_new: FloatArray,
) -> Iterator[tuple[int, LabelArray | ValueError]]:
    """Fit every setting on the same rows and yield what each predicts for new rows.

    For an `ISRClassifier` moments are added up once, each removal is found and applied once, and
    logistic heads that differ in C alone begin where the one before ended.

    Parameters
    ----------
    estimator : estimator
        Its `fit` takes environments.
    settings : sequence of mapping
        Parameters to set.
    rows : X, y, environments
        To fit on.
    X_new : ndarray of shape (m, d)
        To predict.

    Yields
    ------
    place : int
        Of the setting, in any order.
    predicted : ndarray of shape (m,), or ValueError
        The error where these rows do not allow the setting.
    """
    if isinstance(estimator, ISRClassifier):
        yield from _ShareISR(estimator, rows, X_new).predictions(settings)
        return
    for path in _alike(settings, lambda name: name != "C"):
        yield from _along(estimator, {place: settings[place] for place in path}, rows, X_new)


def _along(
    estimator: Any, settings: dict[int, Setting], rows: tuple[Any, Any, Any], X_new: FloatArray
) -> Iterator[tuple[int, LabelArray | ValueError]]:
    """Fit settings that differ in C; a rival begins where the one before ended."""
    X, y, environments = rows
    begin = None
    for place in sorted(settings, key=lambda p: settings[p].get("C", 0.0)):
        model = clone(estimator).set_params(**fresh(settings[place]))
        if isinstance(model, LastLayerRival):
            model._start = begin
        try:
            yield place, fit_with(model, X, y, environments).predict(X_new)
        except ValueError as error:
            yield place, error
            continue
        begin = (model.coef_, model.intercept_) if isinstance(model, LastLayerRival) else None


def fit_with(model: Any, X: Any, y: Any, environments: Any) -> Any:
    """Fit a model with environments, or without if its `fit` takes none."""
    if takes_environments(model):
        return model.fit(X, y, environments=environments)
    return model.fit(X, y)


class _ShareISR:
    """Settings of an `ISRClassifier` on the same rows."""

    def __init__(self, estimator: ISRClassifier, rows: tuple[Any, Any, Any], X_new: Any) -> None:
        self.estimator = estimator
        self.environments_given = rows[2] is not None
        self.rows: Rows = check_rows(*rows, estimator=clone(estimator))
        self.X_new = np.asarray(X_new, dtype=self.rows.X.dtype)
        self.moments = CellMoments.from_checked(self.rows)

    def predictions(
        self, settings: Sequence[Setting]
    ) -> Iterator[tuple[int, LabelArray | ValueError]]:
        """Yield places and predictions, removal by removal."""
        for group in _alike(settings, lambda name: name.partition("__")[0] == "isr"):
            try:
                model = self._model(settings[group[0]])
                isr = self._removal(model)
            except ValueError as error:
                yield from ((place, error) for place in group)
                continue
            X, X_new = isr._remove(self.rows.X), isr._remove(self.X_new)
            of_group = [settings[place] for place in group]
            for path in _alike(of_group, lambda name: name != STRENGTH):
                places = [group[i] for i in path]
                yield from self._heads(X, X_new, {place: settings[place] for place in places})

    def _model(self, setting: Setting) -> ISRClassifier:
        model: ISRClassifier = clone(self.estimator).set_params(**fresh(setting))
        model._check_parts()
        model.n_features_in_ = self.rows.X.shape[1]
        return model

    def _removal(self, model: ISRClassifier) -> ISRTransformer:
        isr = model._fresh_isr()
        return isr._fit_source(InMemory(self.rows), self.environments_given, self.moments)

    def _heads(
        self, X: FloatArray, X_new: FloatArray, settings: dict[int, Setting]
    ) -> Iterator[tuple[int, LabelArray | ValueError]]:
        """Fit heads that differ in C, from the strongest penalty to the weakest."""
        begin = None
        for place in sorted(settings, key=lambda p: settings[p].get(STRENGTH, 0.0)):
            model = self._model(settings[place])
            head = clone(model._head_or_default())
            if begin is not None and _can_begin(head, X):
                head.set_params(warm_start=True)
                head.coef_, head.intercept_ = begin
            try:
                fit_head(head, X, self.rows, model._head_weights(self.rows))
                yield place, head.predict(X_new)
            except ValueError as error:
                yield place, error
                continue
            begin = (head.coef_, head.intercept_) if _can_begin(head, X) else None


def _can_begin(head: Any, X: FloatArray) -> bool:
    """Whether a head can begin at given weights and still be the same model."""
    # LogisticHead whitens few features, and not when it begins at given weights.
    many = X.shape[1] > FEW_COORDINATES
    return many and isinstance(head, LogisticRegression) and head.solver != "liblinear"


def _alike(settings: Sequence[Setting], counts: Any) -> list[list[int]]:
    """Return the places of settings that agree in all names that count, in order of appearance."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, setting in enumerate(settings):
        key = tuple((name, id(value)) for name, value in setting.items() if counts(name))
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def fresh(setting: Setting) -> dict[str, Any]:
    """Return a setting whose estimators are not those of the grid, which stay as they are."""
    return {name: clone(v) if hasattr(v, "get_params") else v for name, v in setting.items()}
