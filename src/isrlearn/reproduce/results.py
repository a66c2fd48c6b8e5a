"""Results that are kept as json, each whole or not there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isrlearn._seal import read_sealed, write_sealed


def kept(
    path: Path, identity: dict[str, Any], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return the result that is kept in a file, or make it and keep it.

    Parameters
    ----------
    path : Path
        The file; its folder is created.
    identity : dict
        What decides the result. A file with another one, or that is damaged, is made anew.
    make : callable
        Returns the result.

    Returns
    -------
    dict
    """
    wanted = json.loads(json.dumps(identity))
    try:
        result = read_sealed(path)
        if result["identity"] == wanted:
            return result
    except (OSError, ValueError, KeyError):
        pass
    done: dict[str, Any] = json.loads(json.dumps({"identity": identity, **make()}))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, done)
    return done
