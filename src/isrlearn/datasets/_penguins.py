"""Palmer penguins, a small real table (CC0)."""

import csv
from importlib.resources import files
from typing import Final

import numpy as np

from isrlearn.datasets._base import EnvironmentRows

PENGUIN_FEATURES: Final = (
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
)


def load_penguins() -> EnvironmentRows:
    """Load 333 penguins: sex from four body measurements, environment = species.

    Sexes are balanced within each species, and species move the measurements of both: the setting
    of ISR-Mean. The rows with missing values are left out.

    Returns
    -------
    EnvironmentRows
        X of shape (333, 4) with columns `PENGUIN_FEATURES`; y "female" or "male"; environments
        "Adelie", "Chinstrap" or "Gentoo".

    References
    ----------
    .. [1] A. M. Horst, A. P. Hill, K. B. Gorman (2020). palmerpenguins. Data by K. Gorman and
       Palmer Station LTER, CC0.

    Examples
    --------
    >>> from isrlearn.datasets import load_penguins
    >>> X, y, species = load_penguins()
    >>> X.shape, sorted(set(species.tolist()))
    ((333, 4), ['Adelie', 'Chinstrap', 'Gentoo'])
    """
    source = files("isrlearn.datasets").joinpath("data/penguins.csv")
    lines = source.read_text(encoding="utf-8").splitlines()
    records = [record for record in csv.DictReader(lines) if _complete(record)]
    return EnvironmentRows(
        np.array([[float(r[name]) for name in PENGUIN_FEATURES] for r in records]),
        np.array([r["sex"] for r in records]),
        np.array([r["species"] for r in records]),
    )


def _complete(record: dict[str, str]) -> bool:
    return all(record[name] not in ("", "NA") for name in (*PENGUIN_FEATURES, "sex"))
