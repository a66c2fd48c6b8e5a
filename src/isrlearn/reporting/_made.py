"""How a report came about: versions, command, seed, time."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from isrlearn import __version__
from isrlearn.reporting._content import Made

PACKAGES: Final = ("numpy", "scipy", "scikit-learn")


def made_now(
    *,
    command: str | None = None,
    seed: str | None = None,
    seconds: float | None = None,
    notes: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> Made:
    """Return versions, date and what else is known of a run.

    Parameters
    ----------
    command : str, default=None
        What made it.
    seed : str, default=None
        Seeds, in words.
    seconds : float, default=None
        How long it took.
    notes : sequence of str, default=()
        What else the reader should know.
    packages : sequence of str, default=()
        Packages beside the core ones whose versions matter.

    Returns
    -------
    Made

    Examples
    --------
    >>> from isrlearn.reporting import made_now
    >>> made_now(seed="0").versions[0][0]
    'Python'
    """
    named = ((name, _version(name)) for name in (*PACKAGES, *packages))
    return Made(
        version=__version__,
        versions=(("Python", platform.python_version()), *named),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        seconds=seconds,
        seed=seed,
        command=command,
        notes=tuple(notes),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
