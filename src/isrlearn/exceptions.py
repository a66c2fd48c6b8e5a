"""Warnings and errors of the library, so that each can be caught or silenced by its class.

Examples
--------
>>> import warnings
>>> from isrlearn.exceptions import SingleEnvironmentWarning
>>> warnings.simplefilter("error", SingleEnvironmentWarning)  # be strict
>>> warnings.resetwarnings()
"""

__all__ = [
    "DataError",
    "EmptyCellWarning",
    "FeatureFileError",
    "JobError",
    "ModelFileError",
    "SingleEnvironmentWarning",
    "SparseInputError",
    "StoreError",
    "TinyCellWarning",
    "TrainingError",
]


class SingleEnvironmentWarning(UserWarning):
    """No environments were given: nothing can differ between them, so nothing is removed."""


class EmptyCellWarning(UserWarning):
    """Some class has no rows in some environment; the fit goes on with the other cells."""


class TinyCellWarning(UserWarning):
    """Some (class, environment) cell has so few rows that its moments are mostly noise."""


class SparseInputError(ValueError, TypeError):
    """X is sparse. scikit-learn calls that a TypeError, the rest of this library a ValueError."""


class JobError(RuntimeError):
    """A method failed in a benchmark; the message says which, where and why."""


class StoreError(ValueError):
    """A file cannot be used as a store of benchmark results."""


class DataError(ValueError):
    """A table, an archive, images or texts are missing or damaged; the message names the file."""


class FeatureFileError(ValueError):
    """A folder cannot be used as a feature file."""


class ModelFileError(ValueError):
    """A file cannot be used as a model."""


class TrainingError(RuntimeError):
    """A network cannot be trained further; the message says why."""
