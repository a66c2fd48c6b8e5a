"""What the data functions return."""

from typing import NamedTuple

from isrlearn._typing import Float64Array, LabelArray


class EnvironmentRows(NamedTuple):
    """Rows with their environments: ``X, y, environments = rows``."""

    X: Float64Array
    """(n, d) features."""
    y: LabelArray
    """(n,) labels."""
    environments: LabelArray
    """(n,) environments."""
