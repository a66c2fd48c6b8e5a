"""Classes and functions of the user's own, by ``my_module:name``."""

import importlib
import sys
from pathlib import Path
from typing import Any


def load_named(name: str, what: str, example: str) -> Any:
    """Import what ``my_module:name`` names; the module is looked for in the current folder too.

    Parameters
    ----------
    name : str
        Module and attribute, with a colon between.
    what : str
        What it is to the user, such as "method", for the message of an error.
    example : str
        How it is written, such as "my_module:MyEstimator".

    Returns
    -------
    object
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # left there: what is loaded may import what stands beside it
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever a module of the user's may do when it is imported
        raise ValueError(
            f"{what} {name!r} cannot be loaded: {type(error).__name__}: {error}. Write "
            f"{example}, with my_module.py in the current folder or installed."
        ) from error
