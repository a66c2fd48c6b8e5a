"""Data to learn from: the paper's Gaussian model, its benchmark, coloured digits, penguins."""

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.datasets._digits import load_colored_digits
from isrlearn.datasets._gaussian import LinearGaussian, make_linear_gaussian
from isrlearn.datasets._penguins import PENGUIN_FEATURES, load_penguins
from isrlearn.datasets._unit_tests import LinearUnitTest

__all__ = [
    "PENGUIN_FEATURES",
    "EnvironmentRows",
    "LinearGaussian",
    "LinearUnitTest",
    "load_colored_digits",
    "load_penguins",
    "make_linear_gaussian",
]
