"""Repair the last layer of a trained network, without training it again."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from torch import nn
from torch.nn.utils import parametrize

from isrlearn._shown import Head, Shown, show_rows
from isrlearn.diagnosis import Diagnosis
from isrlearn.display import brief, titled
from isrlearn.estimators import ISRClassifier, ISRTransformer, check_group_weight, default_isr, fold
from isrlearn.heads import fit_head
from isrlearn.io import Features
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.networks._collect import as_array, collect
from isrlearn.networks._layers import named_linear
from isrlearn.networks._progress import Progress
from isrlearn.networks._report import RepairReport
from isrlearn.rows import check_rows
from isrlearn.selection import known
from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray, IntArray

Weights = tuple[Float64Array, Float64Array | None]


@dataclass(frozen=True, eq=False)
class Repair:
    """A network with a repaired last layer, and what was done to it.

    Parameters
    ----------
    model : nn.Module
        The repaired network: the same modules, names, shapes, types and devices.
    report : RepairReport
        Accuracies per group, before and after.
    subspace : Subspace
        What was removed, in the input space of the layer.
    classifier : ISRClassifier or None
        The classifier that was fitted on the features; None where the old head was folded.
    finder : transformer
        What found the subspace.
    shown : Shown
        Some of the scored rows, for `isrlearn.report`.

    Examples
    --------
    >>> import torch
    >>> from isrlearn import ISRMean
    >>> from isrlearn.networks import repair
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    >>> x = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
    >>> batch = x, (x[:, 0] > 0).long(), torch.arange(80) % 2
    >>> found = repair(network, [batch], isr=ISRMean(n_spurious=1), head="fold")
    >>> found.subspace.rank, found.classifier is None
    (1, True)
    """

    model: nn.Module
    report: RepairReport
    subspace: Subspace
    classifier: ISRClassifier | None
    finder: ISRTransformer
    shown: Shown

    def _repr_html_(self) -> str:
        parts = self.report, self.subspace, self.report.diagnosis
        return titled(f"Repair of {type(self.model).__name__}", *(p._repr_html_() for p in parts))


def repair(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    layer: str | None = None,
    isr: ISRTransformer | None = None,
    head: Any = "refit",
    group_weight: str | None = "balanced",
    inplace: bool = False,
    holdout: Iterable[Any] | None = None,
    progress: Progress = None,
) -> Repair:
    """Remove the directions in which environments differ from the last layer of a network.

    The features that go into the layer are read once; the network is not trained. What comes back
    has the same shape and speed: its last layer holds the folded weights, nothing else changes.

    Parameters
    ----------
    model : nn.Module
        A trained classifier that ends in an ``nn.Linear`` with one output (two classes) or one per
        class, with or without bias.
    loader : iterable of (inputs, labels, environments)
        Batches of rows to learn from: classes 0 to k - 1, environments numbered, -1 where unknown.
        Rows of unknown environment take part in the head, not in finding the subspace.
    layer : str, default=None
        Name of the layer; None finds the last linear layer that runs.
    isr : transformer, default=None
        How to find the subspace: ``ISR(...)``, ``ISRMean(...)`` or ``ISRCov(...)``; None is the
        default of `ISRClassifier`: ``ISRMean(1)`` with more than 20 features.
    head : {"refit", "fold"} or classifier, default="refit"
        "refit" fits the default head of `ISRClassifier` on the features without the spurious part;
        a linear scikit-learn classifier takes its place. "fold" keeps the old head and folds the
        removal into its weights: for networks whose labels are not at hand in full, or many
        outputs.
    group_weight : {"balanced", "class", None}, default="balanced"
        How rows count in a head that is fitted, as in `ISRClassifier`.
    inplace : bool, default=False
        Change `model` itself instead of a copy.
    holdout : iterable of (inputs, labels, environments), default=None
        Rows for the report; None scores the rows of `loader`, and the report says so.
    progress : bool or callable, default=None
        As in `collect_features`.

    Returns
    -------
    Repair
        With `.model` and `.report`.

    Notes
    -----
    A head without bias cannot shift: the removal is then relative to the origin instead of the mean
    of the cell means, and a new head is fitted without intercept.

    Examples
    --------
    >>> import torch
    >>> from isrlearn import ISRMean
    >>> from isrlearn.networks import repair
    >>> network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> random = torch.Generator().manual_seed(0)
    >>> x = torch.randn(80, 4, generator=random)
    >>> batch = x, (x[:, 0] > 0).long(), torch.arange(80) % 2
    >>> result = repair(network, [batch], isr=ISRMean(n_spurious=1))
    >>> result.report.n_spurious, type(result.model).__name__
    (1, 'Sequential')
    """
    _check(head, isr, group_weight)
    if not hasattr(model, "named_modules"):
        raise TypeError(f"model={brief(model)} must be a module of torch.")
    if not np.iterable(loader):
        raise TypeError(f"loader={brief(loader)} must yield (inputs, labels, environments).")
    target = getattr(model, "_orig_mod", model)  # what torch.compile has wrapped
    repaired = target if inplace else _copied(target)
    name, rows = collect(target, loader, layer, progress=progress, ends_in=True)
    scored = rows
    if holdout is not None:
        scored = collect(target, holdout, name, progress=progress)[1]
    _refuse_unknown(rows, "loader")
    _refuse_unknown(scored, "holdout")
    old = head_of(target, name)
    new = (
        _folded(rows, isr, old)
        if _is(head, "fold")
        else _refitted(rows, isr, head, old, group_weight)
    )
    report = RepairReport(
        layer=name,
        head="refit" if new.classifier else "fold",
        n_spurious=len(new.subspace.directions),
        n_features=old[0].shape[1],
        before=_score(scored, old),
        after=_score(scored, new.weights),
        held_out=holdout is not None,
        diagnosis=new.diagnosis,
    )
    put_weights(repaired, name, *new.weights)
    shown = show_rows(
        scored.features,
        scored.labels,
        known(scored.known_environments(), len(scored)),
        subspace=new.subspace,
        before=_as_head(old),
        after=_as_head(new.weights),
    )
    found = new.subspace, new.classifier, new.finder, shown
    return Repair(model if inplace else repaired, report, *found)


def put_weights(model: nn.Module, layer: str, weight: Any, bias: Any) -> None:
    """Write weights into a linear layer, keeping its shape, type and device.

    Parameters
    ----------
    model : nn.Module
        Network that is changed.
    layer : str
        Name of the layer.
    weight : array-like of shape (k, d)
        New weights.
    bias : array-like of shape (k,) or None
        New bias; None for a layer that has none.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> put_weights(network, "1", [[1.0, -1.0]], [0.5])
    >>> network(torch.tensor([[3.0, 1.0]])).item()
    2.5
    """
    module = named_linear(model, layer)
    _refuse_shared(model, layer, module)
    if (bias is None) != (module.bias is None):
        raise ValueError(f"layer {layer!r} and the new weights must both have a bias, or neither.")
    if tuple(module.weight.shape) != np.shape(weight):
        raise ValueError(
            f"layer {layer!r} has weights of shape {tuple(module.weight.shape)}, the new ones "
            f"{np.shape(weight)}."
        )
    with torch.no_grad():
        module.weight.copy_(torch.as_tensor(np.asarray(weight)))
        if bias is not None:
            module.bias.copy_(torch.as_tensor(np.asarray(bias)))


class _New(NamedTuple):
    weights: Weights
    subspace: Subspace
    diagnosis: Diagnosis
    finder: ISRTransformer
    classifier: ISRClassifier | None = None


def _as_head(weights: Weights) -> Head:
    weight, bias = weights
    return Head(weight, np.zeros(len(weight)) if bias is None else bias)


def _folded(rows: Features, isr: ISRTransformer | None, old: Weights) -> _New:
    finder = default_isr(rows.features.shape[1]) if isr is None else clone(isr)
    finder.fit(rows.features, rows.labels, environments=rows.known_environments())
    centre = 0.0 if old[1] is None else None
    weights = finder.subspace_.fold_into(*old, centre=centre)
    return _New(weights, finder.subspace_, finder.diagnose(), finder)


def _refitted(
    rows: Features, isr: ISRTransformer | None, head: Any, old: Weights, group_weight: str | None
) -> _New:
    _check_labels(rows.labels, len(old[0]))
    classifier = ISRClassifier(isr, None if _is(head, "refit") else head, group_weight=group_weight)
    classifier.fit(rows.features, rows.labels, environments=rows.known_environments())
    weights = two_outputs(classifier.coef_, classifier.intercept_, len(old[0]))
    if old[1] is None:
        weights = _without_bias(classifier, rows, len(old[0]))
    found = classifier.subspace_, classifier.diagnose(), classifier.isr_, classifier
    return _New(weights, *found)


def _without_bias(classifier: ISRClassifier, rows: Features, n_outputs: int) -> Weights:
    """Fit the head again without intercept, on rows without the removed part of themselves."""
    origin = replace(classifier.subspace_, centre=np.zeros(rows.features.shape[1]))
    head = clone(classifier.head_)
    if not hasattr(head, "fit_intercept"):
        raise ValueError(
            f"the layer has no bias, and {type(head).__name__} has no fit_intercept: choose "
            "another head, or head='fold'."
        )
    head.set_params(fit_intercept=False)
    columns = (rows.features, rows.labels, rows.known_environments(), None)
    checked = check_rows(*columns, estimator=classifier, reset=False)
    fit_head(head, origin.project(rows.features), checked, classifier._head_weights(checked))
    weight, bias = fold(head)
    return two_outputs(*origin.fold_into(weight, bias), n_outputs)[0], None


def two_outputs(weight: Float64Array, bias: Float64Array, n_outputs: int) -> Weights:
    """Spread the one row of a head for two classes over two outputs: softmax gives the same."""
    weight, bias = np.atleast_2d(weight), np.atleast_1d(bias)
    if len(weight) == 1 and n_outputs == 2:
        return np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight, bias


def head_of(model: nn.Module, layer: str) -> Weights:
    """Return weight and bias of a linear layer as float64 arrays; None for no bias."""
    module = named_linear(model, layer)
    _refuse_shared(model, layer, module)
    bias = None if module.bias is None else as_array(module.bias.detach()).astype(np.float64)
    return as_array(module.weight.detach()).astype(np.float64), bias


def predictions(features: FloatArray, weights: Weights) -> IntArray:
    """Return the class that a linear head gives to each row.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Inputs of the head.
    weights : (weight, bias)
        Of shapes (k, d) and (k,), or None for no bias; one output means class 1 where positive.

    Returns
    -------
    ndarray of shape (n,)
    """
    weight, bias = weights
    logits = features @ weight.T + (0 if bias is None else bias)
    chosen = logits[:, 0] > 0 if logits.shape[1] == 1 else np.argmax(logits, axis=1)
    return np.asarray(chosen, dtype=np.intp)


def _score(rows: Features, weights: Weights) -> GroupScores:
    predicted = predictions(rows.features, weights)
    return group_scores(rows.labels, predicted, environments=rows.known_environments())


def _is(head: Any, name: str) -> bool:
    return isinstance(head, str) and head == name


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:  # whatever the modules of the user do when they are copied
        raise ValueError(
            f"{type(model).__name__} cannot be copied ({error}): use inplace=True, or remove what "
            "cannot be copied, such as weight norm."
        ) from error


def _refuse_unknown(rows: Features, name: str) -> None:
    if np.all(rows.environments < 0):
        raise ValueError(
            f"no row of the {name} has a known environment: it must yield (inputs, labels, "
            "environments), with environments of 0 or more for some rows."
        )


def _check(head: Any, isr: Any, group_weight: Any) -> None:
    check_group_weight(group_weight)
    if isinstance(head, str) and head not in ("refit", "fold"):
        raise ValueError(f"head={head!r} must be 'refit', 'fold' or a linear classifier.")
    if isr is not None and not isinstance(isr, ISRTransformer):
        raise TypeError(
            f"isr={isr!r} is not an ISR transformer: give ISR(), ISRMean() or ISRCov()."
        )


def _check_labels(labels: IntArray, n_outputs: int) -> None:
    seen = np.unique(labels)
    needed = np.arange(max(n_outputs, 2))
    if not np.array_equal(seen, needed):
        shown = ", ".join(map(str, seen[:8].tolist()))
        raise ValueError(
            f"the layer has {n_outputs} outputs, so a new head needs rows of the classes 0 to "
            f"{needed[-1]}; the loader has {shown}. Number the classes from 0, or use head='fold'."
        )


def _refuse_shared(model: nn.Module, layer: str, module: nn.Linear) -> None:
    """Refuse weights that are computed, or that another layer uses too."""
    stored = module._parameters.get("weight") is not None
    if parametrize.is_parametrized(module) or not stored:
        raise ValueError(
            f"the weights of layer {layer!r} are computed when it runs (a parametrization, weight "
            "or spectral norm, pruning): remove that first, so that the layer holds its weights."
        )
    own = {p.data_ptr() for p in module.parameters(recurse=False)}
    for name, other in model.named_modules():
        shared = other is not module and own & {
            p.data_ptr() for p in other.parameters(recurse=False) if p.numel()
        }
        if shared:
            raise ValueError(
                f"layer {layer!r} shares its weights with {name!r}: changing one would change the "
                "other. Give the layer weights of its own first."
            )
