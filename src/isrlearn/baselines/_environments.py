"""Which environments and groups a rival compares."""

import numpy as np

from isrlearn.exceptions import SingleEnvironmentWarning, warn_user
from isrlearn.rows import Rows
from isrlearn.typing import IntArray


def compared_environments(rows: Rows, given: bool, rival: str) -> IntArray:
    """Return the environment of each row, -1 where it is unknown.

    Parameters
    ----------
    rows : Rows
        Checked rows.
    given : bool
        Whether the user gave environments. If not, all rows are one, with a warning.
    rival : str
        Who asks, for the messages.

    Returns
    -------
    ndarray of shape (n,)
    """
    if not given:
        warn_user(
            f"no environments were given to {rival}: all rows are taken as one.",
            SingleEnvironmentWarning,
        )
        return np.zeros(len(rows.y), np.intp)
    if len(rows.environments) < 2:
        raise ValueError(
            f"environments has {len(rows.environments)} distinct value(s), but {rival} compares "
            "at least 2. Give a label that varies, or leave environments out."
        )
    return rows.environment_codes


def group_codes(rows: Rows) -> IntArray:
    """Return the (class, environment) group of each row: 0, ..., G - 1, none of them empty.

    Parameters
    ----------
    rows : Rows
        Rows whose environments are all known.

    Returns
    -------
    ndarray of shape (n,)
    """
    n_environments = int(rows.environment_codes.max()) + 1
    cells = rows.class_codes * n_environments + rows.environment_codes
    return np.unique(cells, return_inverse=True)[1].astype(np.intp)
