"""Write the files of today's protocols into this folder: run once for each new protocol.

    python tests/old_files/make.py

What is there is left alone: an old file is a witness of what an old version wrote.
"""

from pathlib import Path

import numpy as np

import isrlearn
from isrlearn import ISRMean, Subspace
from isrlearn.benchmark import Store, grid, run
from isrlearn.io import Column, Features, FeatureWriter, LinearModel, Schema
from isrlearn.networks import NetworkCard

HERE = Path(__file__).parent


def main() -> None:
    makers = {
        "features-2": features,
        "model-2.safetensors": model,
        "subspace-2.safetensors": subspace,
        "estimator-1.skops": estimator,
        "store-3-sealed.sqlite": store,
        "network-2": network,
    }
    for name, make in makers.items():
        if not (HERE / name).exists():
            make(HERE / name)


def features(path: Path) -> None:
    """Nine rows in shards of six and three, as in features-1."""
    place = np.arange(9)
    values = (np.arange(18, dtype=np.float32) / 4).reshape(9, 2)
    rows = Features(values, place % 2, place % 3 - 1, place % 3)
    names = {"classes": ("cat", "dog"), "environments": ("day", "night")}
    made_of = {"layer": "6", "network": "tiny"}
    with FeatureWriter(path, made_of, rows_per_shard=6, **names) as writer:
        for part in (slice(0, 6), slice(6, 9)):
            writer.add(Features(**{name: a[part] for name, a in rows.arrays().items()}))


def model(path: Path) -> None:
    """The model of model-1."""
    columns = (Column("age"), Column("colour", ("blue", "red")))
    LinearModel(
        np.array([[1.5, -2.0, 0.25]]),
        np.array([0.125]),
        np.array([40.0, 0.0, 0.0]),
        np.array(["gull", "tern"]),
        Schema(columns, "kind", ("site",), "table"),
        {"n_spurious": 1, "setting": "ISRMean(1)"},
    ).save(path)


def subspace(path: Path) -> None:
    """The subspace of subspace-1."""
    direction = np.array([[0.6, 0.8, 0.0]])
    isrlearn.save(Subspace(direction, direction, np.array([1.0, 2.0, 3.0]), np.zeros(3)), path)


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with plain numbers: a class is told by the first feature, a place by the second."""
    place = np.arange(40)
    y, e = place % 2, place // 2 % 2
    return np.stack([y + place / 64, e + place % 5 / 8, place % 7 / 4], axis=1), y, e


def estimator(path: Path) -> None:
    X, y, e = rows()
    isrlearn.save(ISRMean(1).fit(X, np.array(["gull", "tern"])[y], environments=e), path)


def store(path: Path) -> None:
    run(grid(["oracle", "isr-mean"], ["3"], [2], [0], rows=50), Store(path).create())


def network(path: Path) -> None:
    card = NetworkCard("networks.tiny:backbone", ("cat", "dog"), ("day", "night"))
    card.save(path)


if __name__ == "__main__":
    main()
