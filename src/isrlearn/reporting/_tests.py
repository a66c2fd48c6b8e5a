"""Tests and spectrum as a report shows them."""

import math
from typing import Final

import numpy as np

from isrlearn._rank_test import RankChoice
from isrlearn._shown import Shown
from isrlearn.diagnosis import Diagnosis
from isrlearn.reporting._content import Finding, Spectrum, Step, Table, Tests
from isrlearn.reporting._rows import n_removed

SHOWN: Final = 30  # eigenvalues
STEPS: Final = 12
ROUNDING: Final = 1e-9
OF_THE_MODEL: Final = ("directions removed", "features most removed", "target information removed")


def spectrum_of(shown: Shown) -> Spectrum | None:
    """Return the eigenvalues with the band of chance; None where there are none.

    Parameters
    ----------
    shown : Shown
        With the spectrum of a fit.
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
    )


def tests_of(diagnosis: Diagnosis | None, n_gone: int, *, same: bool) -> Tests | None:
    """Return what the tests say, in words.

    Parameters
    ----------
    diagnosis : Diagnosis or None
        Of the rows.
    n_gone : int
        What the model removes.
    same : bool
        Whether the diagnosis is of the model's own removal, and not of tests made for the page.
    """
    if diagnosis is None:
        return None
    found = diagnosis.n_spurious
    if same:
        sentence = diagnosis.verdict
        facts = tuple(diagnosis.facts())
    else:
        sentence = (
            f"Tests on the training rows, made for this page, would remove {_times(found)}; "
            f"the model removes {n_gone}, by the setting that was chosen for it."
        )
        facts = tuple(fact for fact in diagnosis.facts() if fact[0] not in OF_THE_MODEL)
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
    what = "Rows that were fitted on, of each class in each environment."
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
