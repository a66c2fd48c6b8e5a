"""What the data functions return."""

from typing import NamedTuple

from isrlearn.typing import Float64Array, LabelArray


class EnvironmentRows(NamedTuple):
    """Rows with their environments.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Labels.
    environments : ndarray of shape (n,)
        Environments.

    Examples
    --------
    >>> from isrlearn.datasets import load_penguins
    >>> rows = load_penguins()
    >>> X, y, environments = rows
    >>> X is rows.X, X.shape
    (True, (333, 4))
    """

    X: Float64Array
    y: LabelArray
    environments: LabelArray
