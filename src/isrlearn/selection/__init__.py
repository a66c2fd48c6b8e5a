"""Settings chosen by a named rule, without a look at the test rows."""

from isrlearn.selection._grid import (
    fit_with as fit_with,
    fresh as fresh,
)
from isrlearn.selection._rules import (
    FEWEST_ROWS as FEWEST_ROWS,
    LEAVE_ONE_OUT as LEAVE_ONE_OUT,
    RULES as RULES,
    WORST_GROUP as WORST_GROUP,
    check_rule as check_rule,
    environment_folds as environment_folds,
    known as known,
    stratified_part as stratified_part,
)
from isrlearn.selection._select import (
    FEW_CLASSES as FEW_CLASSES,
    ROBUST_STRENGTHS as ROBUST_STRENGTHS,
    STRENGTHS as STRENGTHS,
    Selection,
    Watch as Watch,
    default_grid as default_grid,
    in_words as in_words,
    isr_grid as isr_grid,
    select,
    strengths as strengths,
)

__all__ = ["Selection", "select"]
