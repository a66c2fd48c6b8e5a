"""Tests and spectrum as a report shows them."""

import math
from typing import Final

import numpy as np

from isrlearn._shown import Shown
from isrlearn.diagnosis import Diagnosis
from isrlearn.reporting._content import Finding, Spectrum, Step, Table, Tests
from isrlearn.reporting._rows import n_removed
from isrlearn.subspace import RankChoice

SHOWN: Final = 30  # eigenvalues
STEPS: Final = 12
ROUNDING: Final = 1e-9
OF_THE_MODEL: Final = ("directions removed", "features most removed", "target information removed")


def spectrum_of(shown: Shown, *, same: bool) -> Spectrum | None:
    """Return the eigenvalues with the band of chance; None where there are none.

    Parameters
    ----------
    shown : Shown
        With the spectrum of a fit.
    same : bool
        Whether that is the model's own.
    """
    band = shown.spectrum
    if band is None or not np.any(band.values > 0):
        return None
    least = ROUNDING * float(band.values.max())
    some = band.values[:SHOWN] > least
    values = band.values[:SHOWN][some]
    low = high = np.empty(0)
    if band.low is not None and band.high is not None:
        low, high = (np.maximum(part[:SHOWN][some], least) for part in (band.low, band.high))
    choice = None if shown.diagnosis is None else shown.diagnosis.tests
    return Spectrum(
        tuple(values.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        n_removed(shown),
        band.rank,
        0 if choice is None else choice.n_permutations,
        () if choice is None else _steps(choice),
        same,
    )


def tests_of(shown: Shown, *, same: bool, n_fitted: int = 0) -> Tests | None:
    """Return what the tests say, in words.

    Parameters
    ----------
    shown : Shown
        With a diagnosis, or None.
    same : bool
        Whether it is of the model's own removal, and not of tests made for the page.
    n_fitted : int, default=0
        Rows that tests made for the page could have used.
    """
    diagnosis = shown.diagnosis
    if diagnosis is None:
        return None
    sentence, facts = diagnosis.verdict, tuple(diagnosis.facts())
    if not same:
        used = int(diagnosis.counts.sum())
        rows = f"a sample of {used} of {n_fitted}" if 0 < used < 0.9 * n_fitted else "the"
        sentence = (
            f"Tests on {rows} training rows, made for this page, would remove "
            f"{_times(diagnosis.n_spurious)}; the model removes {n_removed(shown)}, by the setting "
            "that was chosen for it."
        )
    if not same or n_removed(shown) < shown.subspace.rank:
        facts = tuple(fact for fact in facts if fact[0] not in OF_THE_MODEL)
    findings = tuple(Finding(f.is_warning, f.text, f.advice) for f in diagnosis.findings)
    return Tests(sentence, findings, facts, _counts(diagnosis))


def _times(n: int) -> str:
    return f"{n} direction{'' if n == 1 else 's'}"


def _counts(diagnosis: Diagnosis) -> Table | None:
    if diagnosis.counts.size == 0:
        return None
    heads, counts = diagnosis._columns()
    names = diagnosis._class_names()
    rows = tuple((n, *map(str, line)) for n, line in zip(names, counts, strict=True))
    what = "Rows that the tests looked at, of each class in each environment."
    return Table("", what, ("class", *heads), rows)


def _steps(choice: RankChoice) -> tuple[Step, ...]:
    return tuple(
        Step(
            step.n_removed,
            _known(step.p_mean),
            _known(step.p_covariance),
            step.p_value,
            step.level,
            step.block > 0,
        )
        for step in choice.steps[:STEPS]
    )


def _known(p: float) -> float | None:
    return None if math.isnan(p) else p
