"""Data to learn from: the paper's Gaussian model, its benchmark, small real data, and readers."""

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.datasets._celeba import read_celeba
from isrlearn.datasets._digits import load_colored_digits
from isrlearn.datasets._examples import ExampleSet
from isrlearn.datasets._gaussian import LinearGaussian, make_linear_gaussian
from isrlearn.datasets._general import read_examples, read_table
from isrlearn.datasets._multinli import has_negation, read_multinli
from isrlearn.datasets._penguins import PENGUIN_FEATURES, load_penguins
from isrlearn.datasets._unit_tests import LinearUnitTest
from isrlearn.datasets._waterbirds import read_waterbirds

__all__ = [
    "PENGUIN_FEATURES",
    "EnvironmentRows",
    "ExampleSet",
    "LinearGaussian",
    "LinearUnitTest",
    "has_negation",
    "load_colored_digits",
    "load_penguins",
    "make_linear_gaussian",
    "read_celeba",
    "read_examples",
    "read_multinli",
    "read_table",
    "read_waterbirds",
]
