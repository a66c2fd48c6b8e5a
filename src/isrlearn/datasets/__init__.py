"""Data to learn from: the paper's Gaussian model, coloured digits, penguins."""

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.datasets._digits import load_colored_digits
from isrlearn.datasets._gaussian import LinearGaussian, make_linear_gaussian
from isrlearn.datasets._penguins import PENGUIN_FEATURES, load_penguins

__all__ = [
    "PENGUIN_FEATURES",
    "EnvironmentRows",
    "LinearGaussian",
    "load_colored_digits",
    "load_penguins",
    "make_linear_gaussian",
]
