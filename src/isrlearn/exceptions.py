"""Warnings and errors of the library, so that each can be caught or silenced by its class.

Examples
--------
>>> import warnings
>>> from isrlearn.exceptions import SingleEnvironmentWarning
>>> warnings.simplefilter("error", SingleEnvironmentWarning)  # be strict
>>> warnings.resetwarnings()
"""

import sys
from warnings import warn

__all__ = [
    "DataError",
    "EmptyCellWarning",
    "FeatureFileError",
    "JobError",
    "ModelFileError",
    "PrecisionWarning",
    "SingleEnvironmentWarning",
    "SparseInputError",
    "StoreError",
    "TinyCellWarning",
    "TrainingError",
]


class SingleEnvironmentWarning(UserWarning):
    """No environments were given: nothing can differ between them, so nothing is removed.

    Examples
    --------
    >>> import warnings
    >>> from isrlearn import ISRMean
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     isr = ISRMean().fit([[0.0, 1.0], [2.0, 1.0]], ["a", "b"])
    >>> caught[0].category.__name__, isr.n_spurious_
    ('SingleEnvironmentWarning', 0)
    """


class EmptyCellWarning(UserWarning):
    """Some class has no rows in some environment; the fit goes on with the other cells.

    Examples
    --------
    >>> import warnings
    >>> from isrlearn import ISRMean
    >>> from isrlearn.datasets import load_penguins
    >>> X, sex, species = load_penguins()
    >>> seen = (sex == "male") | (species != "Gentoo")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", EmptyCellWarning)  # it is known that they are not there
    ...     isr = ISRMean(1).fit(X[seen], sex[seen], environments=species[seen])
    """


class TinyCellWarning(UserWarning):
    """Some (class, environment) cell has so few rows that its moments are mostly noise.

    Examples
    --------
    >>> import warnings
    >>> from isrlearn import ISRMean
    >>> X, y = [[0.0, 1.0], [2.0, 1.0], [1.0, 3.0], [4.0, 4.0]], [0, 1, 0, 1]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TinyCellWarning)  # be strict
    ...     try:
    ...         ISRMean(1).fit(X, y, environments=["lab", "lab", "field", "field"])
    ...     except TinyCellWarning as warning:
    ...         print(str(warning).split(":")[0])
    cells with fewer than 5 rows
    """


class PrecisionWarning(UserWarning):
    """Rounding errors may have turned the removed directions; the message says where and how much.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from isrlearn import ISR
    >>> random = np.random.default_rng(0)
    >>> e, y = np.repeat(["lab", "field"], 40), np.tile([0, 1], 40)
    >>> X = random.normal(size=(80, 3)) + y[:, None]
    >>> names_it = 1e4 * (e == "lab") + 0.1 * X[:, 0]  # a column that names the environment
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrecisionWarning)  # be strict
    ...     try:
    ...         ISR(1).fit(np.column_stack([X, names_it]), y, environments=e)
    ...     except PrecisionWarning as warning:
    ...         print(str(warning).split(":")[0])
    means of environments differ by more than 3000 standard deviations of the rows within cells,
    mostly in column 3
    """


class SparseInputError(ValueError, TypeError):
    """X is sparse. scikit-learn calls that a TypeError, the rest of this library a ValueError.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from isrlearn import ISRMean
    >>> X = csr_matrix([[0.0, 1.0], [1.0, 0.0]])
    >>> try:
    ...     ISRMean().fit(X, [0, 1], environments=["lab", "field"])
    ... except SparseInputError:
    ...     X = X.toarray()
    >>> X.shape
    (2, 2)
    """


class JobError(RuntimeError):
    """A method failed in a benchmark; the message says which, where and why.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.benchmark import Store, grid, run
    >>> counts_only = "sklearn.naive_bayes:MultinomialNB"  # refuses negative features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         run(grid([counts_only], ["2"], [2], [0], rows=50), Store(f"{folder}/s").create())
    ...     except JobError as error:
    ...         print(counts_only in str(error))
    True
    """


class StoreError(ValueError):
    """A file cannot be used as a store of benchmark results.

    Examples
    --------
    >>> from isrlearn.benchmark import Store
    >>> try:
    ...     Store("no/such/store.sqlite").check()
    ... except StoreError as error:
    ...     print("isrlearn bench run makes one" in str(error))
    True
    """


class DataError(ValueError):
    """A table, an archive, images or texts are missing or damaged; the message names the file.

    Examples
    --------
    >>> from isrlearn.io import read_data
    >>> try:
    ...     read_data("no_such.csv", label="disease", environment="hospital")
    ... except DataError as error:
    ...     print(error)
    no_such.csv does not exist: check the path.
    """


class FeatureFileError(ValueError):
    """A folder cannot be used as a feature file.

    Examples
    --------
    >>> from isrlearn.io import FeatureFile
    >>> try:
    ...     FeatureFile.open("no_such_folder")
    ... except FeatureFileError as error:
    ...     print(error)
    no_such_folder has no manifest.json: not a feature file.
    """


class ModelFileError(ValueError):
    """A file cannot be used as a model.

    Examples
    --------
    >>> from isrlearn.io import LinearModel
    >>> try:
    ...     LinearModel.load("no_such.safetensors")
    ... except ModelFileError as error:
    ...     print(error)
    no_such.safetensors is not there: name a model that isrlearn fit wrote.
    """


class TrainingError(RuntimeError):
    """A network cannot be trained further; the message says why.

    Examples
    --------
    >>> from isrlearn.networks import load_network
    >>> try:
    ...     load_network("no_such_folder")
    ... except TrainingError as error:
    ...     print(error)
    no_such_folder has no network.json: it is not a network of isrlearn.
    """


_OURS = ("isrlearn", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the first caller outside this library and scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warn(message, category, stacklevel=level)
