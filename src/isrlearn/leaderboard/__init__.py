"""The leaderboard: every method on the same rows, each chosen by the same rule."""

from isrlearn.leaderboard._bootstrap import Interval
from isrlearn.leaderboard._compare import compare, rounds_in_words
from isrlearn.leaderboard._fit import Fitted, diagnose_data, fit_data
from isrlearn.leaderboard._fit_chunks import fit_chunks
from isrlearn.leaderboard._methods import known_methods
from isrlearn.leaderboard._recommendation import HERE, QUESTIONS, Recommendation
from isrlearn.leaderboard._result import AVERAGES, NOT_DEFINED, Comparison, Entry, columns

__all__ = [
    "AVERAGES",
    "NOT_DEFINED",
    "HERE",
    "QUESTIONS",
    "Comparison",
    "Entry",
    "Fitted",
    "Interval",
    "Recommendation",
    "columns",
    "compare",
    "diagnose_data",
    "fit_chunks",
    "fit_data",
    "known_methods",
    "rounds_in_words",
]
