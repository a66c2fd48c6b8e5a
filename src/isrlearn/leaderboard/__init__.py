"""The leaderboard: every method on the same rows, each chosen by the same rule."""

from isrlearn.leaderboard._bootstrap import Interval
from isrlearn.leaderboard._compare import compare, rounds_in_words
from isrlearn.leaderboard._fit import Fitted, diagnose_data, fit_data
from isrlearn.leaderboard._fit_chunks import fit_chunks
from isrlearn.leaderboard._methods import known_methods
from isrlearn.leaderboard._recommendation import HERE, QUESTIONS, Recommendation, other_question
from isrlearn.leaderboard._result import Comparison, Entry, as_table, averages_in_words

__all__ = [
    "HERE",
    "QUESTIONS",
    "Comparison",
    "Entry",
    "Fitted",
    "Interval",
    "Recommendation",
    "as_table",
    "averages_in_words",
    "compare",
    "diagnose_data",
    "fit_chunks",
    "fit_data",
    "known_methods",
    "other_question",
    "rounds_in_words",
]
