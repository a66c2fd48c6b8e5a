"""A group that training has never seen: what the default estimator does, and the study behind it.

python benchmarks/unseen.py table RAW_FOLDER   # each (class, environment) group left out in turn
python benchmarks/unseen.py rows RAW_FOLDER    # the same by isrlearn.compare, the rows of ISR alone
python benchmarks/unseen.py ridge RAW_FOLDER   # the penalty of the head, from training rows alone

RAW_FOLDER holds the features of rebuilt Waterbirds and MultiNLI, and the attributes of CelebA, of
which 20 000 training and 8 000 validation rows are drawn. Features are reduced to 100 principal
components, attributes are standardised. Rivals choose their penalty by the worst validation group
that is left; ISRClassifier() chooses nothing.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cyclopts import App
from joblib import Parallel, delayed
from leaderboard import pair_features
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from isrlearn import ISR, ISRClassifier, ISRMean, compare
from isrlearn.baselines import GroupDRO, LinearProbe
from isrlearn.metrics import group_scores

app = App(help=__doc__)
FEATURES = {
    "rebuilt Waterbirds": ("waterbirds_rebuilt_efficientnet_lite0", "environments"),
    "MultiNLI": ("multinli_dev_matched_minilm", "environments_extended"),
}
LABELS = {"CelebA Blond": "Blond_Hair", "Attractive": "Attractive", "Young": "Young"}
CELEBA = {**LABELS, "Smiling": "Smiling"}
TELLTALE = {"Smiling": ("High_Cheekbones", "Mouth_Slightly_Open")}
STRENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0)
RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class Part(NamedTuple):
    """Some rows."""

    X: Any
    y: Any
    environments: Any

    def without(self, group: tuple[Any, Any]) -> "Part":
        """Return the rows of other groups."""
        kept = (self.y != group[0]) | (self.environments != group[1])
        return Part(*(column[kept] for column in self))


def load(name: str, raw: Path, seed: int) -> list[Part]:
    """Return training, validation and test rows of a set."""
    if name in FEATURES:
        folder, environments = FEATURES[name]
        with np.load(raw / folder / f"{folder}.npz", allow_pickle=False) as file:
            X = file["features"].astype(np.float64)
            X = pair_features(X) if name == "MultiNLI" else X
            y, e, split = file["labels"], file[environments], file["split"]
        return [Part(X[split == s], y[split == s], e[split == s]) for s in range(3)]
    label = CELEBA.get(name, name)
    with np.load(raw / "celeba_attributes" / "celeba_attributes.npz", allow_pickle=False) as file:
        bits = np.unpackbits(file["packed"], axis=1)[:, :40].astype(np.float64)
        columns, split = file["attribute_names"].tolist(), file["split"]
    left = (label, "Male", *TELLTALE.get(label, ()))
    X = bits[:, [j for j, column in enumerate(columns) if column not in left]]
    y, e = (bits[:, columns.index(column)].astype(int) for column in (label, "Male"))
    random = np.random.default_rng(seed)
    sizes = {0: 20_000, 1: 8_000, 2: int((split == 2).sum())}
    rows = [random.choice(np.flatnonzero(split == s), sizes[s], replace=False) for s in range(3)]
    return [Part(X[r], y[r], e[r]) for r in rows]


def left_out(name: str, raw: Path, seed: int) -> Iterator[list[Part]]:
    """Yield prepared parts, a group taken out of training and validation rows in turn."""
    training, validation, test = load(name, raw, seed)
    groups = sorted(set(zip(training.y.tolist(), training.environments.tolist(), strict=True)))
    for group in groups:
        seen = [training.without(group), validation.without(group), test]
        many = training.X.shape[1] > 100
        tool = PCA(100, svd_solver="covariance_eigh") if many else StandardScaler()
        tool.fit(seen[0].X)
        unit = np.sqrt(tool.explained_variance_.mean()) if many else 1.0
        yield [part._replace(X=tool.transform(part.X) / unit) for part in seen]


def worst(model: Any, part: Part) -> float:
    """Return the accuracy of the worst group."""
    return group_scores(part.y, model.predict(part.X), environments=part.environments).worst


def chosen(models: list[Any], training: Part, validation: Part) -> Any:
    """Return the model with the best worst group of the validation rows."""
    fitted = [m.fit(training.X, training.y, environments=training.environments) for m in models]
    return max(fitted, key=lambda model: worst(model, validation))


def models(n_rows: int) -> dict[str, list[Any]]:
    """Return what is compared: settings of a method that validation rows choose from."""
    C = [value * 5000 / n_rows for value in STRENGTHS]
    return {
        "group reweighting": [LinearProbe(c, weight="group") for c in C],
        "classes, then groups": [LinearProbe(c, weight="balanced") for c in C],
        "GroupDRO": [GroupDRO(c) for c in C],
        "ISRClassifier(), nothing removed": [ISRClassifier(ISR(0))],
        "ISRClassifier()": [ISRClassifier()],
        "the same with group_weight='class'": [ISRClassifier(group_weight="class")],
        "the same with head=GroupDRO": [ISRClassifier(head=GroupDRO(c)) for c in C],
    }


def figures(name: str, raw: Path, seed: int) -> dict[str, float]:
    """Return the worst test group of each method, mean over the groups left out."""
    warnings.simplefilter("ignore")
    found: dict[str, list[float]] = {}
    for training, validation, test in left_out(name, raw, seed):
        for title, tried in models(len(training.y)).items():
            model = chosen(tried, training, validation)
            found.setdefault(title, []).append(worst(model, test))
    return {title: float(np.mean(values)) for title, values in found.items()}


@app.command
def table(raw: Path, *, sets: list[str] | None = None, seed: int = 0, jobs: int = 2) -> None:
    """Print the worst test group of each method, mean over the groups left out."""
    names = sets or [*FEATURES, *CELEBA]
    rows = Parallel(n_jobs=jobs)(delayed(figures)(name, raw, seed) for name in names)
    print(f"| | {' | '.join(names)} | mean |\n|---|{'---|' * (len(names) + 1)}")
    for title in rows[0]:
        values = [row[title] for row in rows]
        print(f"| {title} | {' | '.join(f'{v:.3f}' for v in (*values, np.mean(values)))} |")


def row(name: str, raw: Path, seed: int) -> dict[str, float]:
    """Return the worst group of the rows of ISR in ``isrlearn.compare``."""
    parts = load(name, raw, seed)
    X, y, e = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    split = np.repeat(np.arange(3), [len(part.y) for part in parts])
    options = {"test": "leave-one-group-out", "n_seeds": 1, "n_draws": 10, "methods": ["isr"]}
    found = compare(X, y, environments=e, split=split, **options)
    return {entry.title: entry.worst_group.value for entry in found.entries}


@app.command
def rows(raw: Path, *, sets: list[str] | None = None, seed: int = 0, jobs: int = 2) -> None:
    """Print the rows of ISR in ``isrlearn.compare`` with each group left out."""
    names = sets or [*FEATURES, *CELEBA]
    found = Parallel(n_jobs=jobs)(delayed(row)(name, raw, seed) for name in names)
    for name, values in zip(names, found, strict=True):
        print(f"{name}: {', '.join(f'{title} {value:.3f}' for title, value in values.items())}")


def cross_fitted(name: str, raw: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return accuracy and loss of the worst seen group in training rows, (ridges,) each."""
    warnings.simplefilter("ignore")
    accuracies, losses = [], []
    for training, _, _ in left_out(name, raw, seed):
        X, y, e = training
        isr = ISRMean(1).fit(X, y, environments=e)
        Z = isr.transform(X)
        groups = [(y == c) & (e == k) for c in np.unique(y) for k in np.unique(e[y == c])]
        n_groups = {c: len(np.unique(e[y == c])) for c in np.unique(y)}
        weights = np.zeros(len(y))
        for rows in groups:
            weights[rows] = 1 / (n_groups[y[rows][0]] * rows.sum())
        weights *= len(y) / weights.sum()
        means = np.array([np.average(Z[y == c], 0, weights[y == c]) for c in n_groups])
        unit = np.sqrt(np.mean(np.sum((means - means.mean(0)) ** 2, axis=1)))
        folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(Z, 100 * y + e))
        for ridge in RIDGES:
            head = LogisticRegression(C=1 / (ridge * len(y)), max_iter=2000)
            how = {"cv": folds, "method": "predict_proba", "params": {"sample_weight": weights}}
            shares = cross_val_predict(head, Z / unit, y, **how)
            right = np.unique(y)[shares.argmax(axis=1)] == y
            accuracies.append(min(right[rows].mean() for rows in groups))
            each = [log_loss(y[rows], shares[rows], labels=np.unique(y)) for rows in groups]
            losses.append(max(each))
    shape = -1, len(RIDGES)
    return tuple(np.reshape(v, shape).mean(axis=0) for v in (accuracies, losses))


@app.command
def ridge(raw: Path, *, sets: list[str] | None = None, seed: int = 0, jobs: int = 2) -> None:
    """Print the worst seen group of training rows, cross-fitted, by the penalty of the head."""
    names = sets or [*FEATURES, *CELEBA]
    found = Parallel(n_jobs=jobs)(delayed(cross_fitted)(name, raw, seed) for name in names)
    for what, place in (("accuracy", 0), ("loss", 1)):
        print(f"worst seen group, {what} | {' | '.join(map(str, RIDGES))}")
        rows = [(name, part[place]) for name, part in zip(names, found, strict=True)]
        for name, values in (*rows, ("mean", np.mean([v for _, v in rows], axis=0))):
            print(f"{name} | {' | '.join(f'{v:.3f}' for v in values)}")


if __name__ == "__main__":
    app()
