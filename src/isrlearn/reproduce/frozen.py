"""Table 2: heads on frozen features, over random parts of the training rows."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn import __version__
from isrlearn._typing import IntArray
from isrlearn.exceptions import FeatureFileError
from isrlearn.io import FeatureFile, Features
from isrlearn.reproduce.heads import RULE, HeadGrid, compare_heads

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
        with np.load(archives[0], allow_pickle=False) as arrays:
            columns = {n: arrays[n] for n in ("features", "labels", "environments", "split")}
    except (KeyError, ValueError, OSError) as error:
        raise FeatureFileError(
            f"{archives[0]} must hold the arrays features, labels, environments and split: {error}."
        ) from error
    codes = {name: columns.pop(name).astype(np.intp) for name in list(columns)[1:]}
    return Features(columns["features"].astype(np.float32), **codes)


def frozen_results(rows: Features, grid: HeadGrid, n_seeds: int) -> Iterator[dict[str, Any]]:
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

    Yields
    ------
    dict
        One per seed and kind of head, like those of Table 1.
    """
    train, validation, test = (rows.take(place) for place in range(3))
    for seed in range(n_seeds):
        part = _part(train, draw_part(train, seed))
        for objective, head in OBJECTIVES.items():
            outcomes = compare_heads(
                part, validation, test, replace(grid, heads=(head,)), random_state=seed
            )
            records = [outcome.record() for outcome in outcomes]
            records = [{**r, "method": _name(r["method"])} for r in records]
            yield {
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


def _part(rows: Features, places: IntArray) -> Features:
    return Features(**{name: array[places] for name, array in rows.arrays().items()})


def _name(method: str) -> str:
    return "original" if method == "refit" else method
