"""The paper's experiments on real data: Tables 1 and 2 and partial environment labels.

Needs torch and what the tables are printed and drawn with
(``pip install isrlearn[torch,bench]``).
"""

from isrlearn.reproduce.heads import HeadGrid, Outcome, compare_heads
from isrlearn.reproduce.plans import Plan, find_plan, read_plan

__all__ = ["HeadGrid", "Outcome", "Plan", "compare_heads", "find_plan", "read_plan"]
