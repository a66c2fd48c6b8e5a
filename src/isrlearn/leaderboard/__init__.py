"""The leaderboard: every method on the same rows, each chosen by the same rule."""

from isrlearn.leaderboard._bootstrap import Interval
from isrlearn.leaderboard._compare import compare
from isrlearn.leaderboard._methods import known_methods
from isrlearn.leaderboard._result import Comparison, Entry

__all__ = ["Comparison", "Entry", "Interval", "compare", "known_methods"]
