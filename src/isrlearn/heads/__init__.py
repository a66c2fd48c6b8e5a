"""From rows and a subspace to the weights of a linear head."""

from isrlearn.heads._head_passes import (
    Sample as Sample,
)
from isrlearn.heads._logistic import (
    SOLVED as SOLVED,
    fit_in_coordinates as fit_in_coordinates,
    weighted_covariance as weighted_covariance,
)
from isrlearn.heads._logistic_head import (
    LogisticHead,
)
from isrlearn.heads._pooled import (
    Pooled as Pooled,
)
from isrlearn.heads._row_weights import (
    bearable_weights as bearable_weights,
    group_factors as group_factors,
    scheme_weights as scheme_weights,
)
from isrlearn.heads._slopes import (
    Slope as Slope,
)
from isrlearn.heads._sum_heads import (
    Removed as Removed,
    fit_from_sums as fit_from_sums,
    needs_scatters as needs_scatters,
    solved_by_slopes as solved_by_slopes,
    why_not as why_not,
)

__all__ = ["LogisticHead"]
