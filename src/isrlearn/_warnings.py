"""Warnings that point at the user's line, not at ours."""

import sys
from warnings import warn

_OURS = ("isrlearn", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside this library and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warn(message, category, stacklevel=level)
