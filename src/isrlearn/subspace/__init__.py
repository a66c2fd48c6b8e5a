"""From moments to the spurious subspace: means, covariances, both, and the rank."""

from isrlearn.subspace._joint import (
    Workings as Workings,
    joint_directions as joint_directions,
    joint_values as joint_values,
)
from isrlearn.subspace._rank_test import (
    RankChoice,
    RankStep,
    RankTest as RankTest,
    choose_rank as choose_rank,
)
from isrlearn.subspace._recovery import (
    Recovery as Recovery,
    evidence_of_pairs as evidence_of_pairs,
    subspace_from_both as subspace_from_both,
    subspace_from_covariances as subspace_from_covariances,
    subspace_from_means as subspace_from_means,
    subspace_given_response as subspace_given_response,
)
from isrlearn.subspace._rounding import (
    AUTO as AUTO,
    check_n_spurious as check_n_spurious,
    check_search as check_search,
)
from isrlearn.subspace._subspace import (
    Subspace,
)

__all__ = ["RankChoice", "RankStep", "Subspace"]
