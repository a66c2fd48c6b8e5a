"""From rows and a subspace to the weights of a linear head."""

from isrlearn.heads._any_head import (
    fit_head as fit_head,
    labelled_environments as labelled_environments,
    takes_environments as takes_environments,
)
from isrlearn.heads._logistic import (
    SOLVED as SOLVED,
    LogisticHead,
    fit_from_sums as fit_from_sums,
    is_solved_without_rows as is_solved_without_rows,
    needs_scatters as needs_scatters,
    why_not as why_not,
)
from isrlearn.heads._loss import (
    Loss as Loss,
    Sample as Sample,
    bent as bent,
    losses_of as losses_of,
    shares_of as shares_of,
)
from isrlearn.heads._row_weights import (
    scheme_weights as scheme_weights,
)
from isrlearn.heads._solver import (
    HeadCoordinates as HeadCoordinates,
)

__all__ = ["LogisticHead"]
