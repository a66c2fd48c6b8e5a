"""Table 2: heads on frozen features, over random parts of the training rows."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn import __version__
from isrlearn._npz import read_arrays
from isrlearn.exceptions import FeatureFileError
from isrlearn.io import FeatureFile, Features
from isrlearn.io._features import COLUMNS
from isrlearn.reproduce.heads import RULE, HeadGrid, compare_heads
from isrlearn.reproduce.results import kept
from isrlearn.rows import encode_environments, encode_labels
from isrlearn.typing import IntArray

PROTOCOL: Final = 2
SHARE: Final = 0.8
OBJECTIVES: Final = {"erm": "plain", "reweighting": "balanced"}
"""The paper's rows of Table 2, and what they mean for a head on frozen features."""


def read_frozen(path: str | Path) -> Features:
    """Read features with labels, environments and a split.

    Parameters
    ----------
    path : path
        A feature folder, an .npz (arrays ``features``, ``labels``, ``environments``, ``split``), or
        a folder with one.

    Returns
    -------
    Features
    """
    path = Path(path)
    if (path / "manifest.json").exists():
        rows = FeatureFile.open(path).read()
        if rows.split is None:
            raise FeatureFileError(f"{path} has no split into train, validation and test.")
        return rows
    archives = [path] if path.is_file() else sorted(path.glob("*.npz"))
    if len(archives) != 1:
        raise FeatureFileError(
            f"{path} has {len(archives)} .npz files and no manifest.json: name one .npz, or a "
            "folder that isrlearn extract wrote."
        )
    try:
        columns = read_arrays(archives[0], COLUMNS)
    except (ValueError, OSError) as error:
        raise FeatureFileError(
            f"{archives[0]} must hold the arrays features, labels, environments and split: {error}."
        ) from error
    return _checked(archives[0], columns)


def _checked(path: Path, columns: dict[str, Any]) -> Features:
    """Return features with classes numbered from 0; refuse what cannot be split and scored."""
    features, labels, environments, split = (columns[name] for name in COLUMNS)
    lengths = {column.shape for column in (labels, environments, split)}
    if features.ndim != 2 or lengths != {features.shape[:1]}:
        raise FeatureFileError(
            f"{path}: features must have two dimensions, and labels, environments and split one "
            f"value for each of its rows; the shape of features is {features.shape}."
        )
    largest = np.finfo(np.float32).max
    if features.dtype.kind not in "biuf" or not np.all(np.abs(features) <= largest):
        raise FeatureFileError(f"{path}: features must be finite numbers that float32 can hold.")
    if sorted(np.unique(split).tolist()) != [0, 1, 2]:
        raise FeatureFileError(
            f"{path}: split must hold 0 (train), 1 (validation) and 2 (test); it holds "
            f"{np.unique(split).tolist()}."
        )
    try:
        classes, label_codes = encode_labels(labels, "labels")
        _, environment_codes = encode_environments(environments, len(labels))
    except (ValueError, TypeError) as error:
        raise FeatureFileError(f"{path}: {error}") from error
    if environments.dtype.kind in "iu":
        environment_codes = np.where(environments == -1, -1, environment_codes)
    if len(np.unique(label_codes[split == 0])) < len(classes) or np.any(label_codes < 0):
        raise FeatureFileError(f"{path}: every class must have rows in the train split.")
    return Features(
        features.astype(np.float32), label_codes, environment_codes, split.astype(np.intp)
    )


def frozen_results(
    rows: Features, grid: HeadGrid, n_seeds: int, out: Path
) -> Iterator[dict[str, Any]]:
    """Yield the results of Table 2, seed by seed.

    Each seed takes a random 80 % of the training rows of every group, without replacement, in a
    random order. Validation and test rows are the same for all.

    Parameters
    ----------
    rows : Features
        With a split.
    grid : HeadGrid
        What is tried.
    n_seeds : int
        Seeds 0 to n_seeds - 1.
    out : Path
        Folder where each result is kept as json; one that is there is not made again.

    Yields
    ------
    dict
        One per seed and kind of head, like those of Table 1.
    """
    known = {"protocol": PROTOCOL, "data": _digest(rows), "heads": asdict(grid), "share": SHARE}
    for seed in range(n_seeds):
        for objective in OBJECTIVES:
            identity = {**known, "seed": seed, "objective": objective}
            path = out / f"{objective}-seed{seed}.json"
            yield kept(path, identity, partial(_result, rows, grid, seed, objective))


def _result(rows: Features, grid: HeadGrid, seed: int, objective: str) -> dict[str, Any]:
    train, validation, test = (rows.take(place) for place in range(3))
    part = _part(train, draw_part(train, seed))
    grid = replace(grid, heads=(OBJECTIVES[objective],))
    outcomes = compare_heads(part, validation, test, grid, random_state=seed)
    records = [outcome.record() for outcome in outcomes]
    records = [{**r, "method": _name(r["method"])} for r in records]
    return {
        "version": __version__,
        "data": "features",
        "objective": objective,
        "seed": seed,
        "rule": RULE,
        "share_of_training_rows": SHARE,
        "heads": asdict(grid),
        "outcomes": records,
        "selected": {record["method"]: place for place, record in enumerate(records)},
    }


def draw_part(train: Features, seed: int) -> IntArray:
    """Return places of a random part of each group, in a random order."""
    random = np.random.default_rng(seed)
    groups = train.labels * (train.environments.max() + 2) + train.environments
    kept = [
        random.permutation(np.flatnonzero(groups == g))[: round(SHARE * np.sum(groups == g))]
        for g in np.unique(groups)
    ]
    return np.asarray(random.permutation(np.concatenate(kept)))


def _digest(rows: Features) -> str:
    summary = hashlib.sha256()
    for name, array in rows.arrays().items():
        summary.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return summary.hexdigest()[:16]


def _part(rows: Features, places: IntArray) -> Features:
    return Features(**{name: array[places] for name, array in rows.arrays().items()})


def _name(method: str) -> str:
    return "probe" if method == "refit" else method
