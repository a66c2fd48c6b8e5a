"""From rows to sufficient statistics of the (class, environment) cells, and their null."""

from isrlearn.moments._cells import (
    SMALLEST as SMALLEST,
    AddMoments as AddMoments,
    AllMoments as AllMoments,
    CellMoments,
)
from isrlearn.moments._evidence import (
    FEW_COORDINATES as FEW_COORDINATES,
    ROWS_PER_COORDINATE as ROWS_PER_COORDINATE,
    TINY_CELL_ROWS as TINY_CELL_ROWS,
    CellEvidence as CellEvidence,
    Conditioned as Conditioned,
    Evidence as Evidence,
    Frame as Frame,
    class_positions as class_positions,
    common_coefs as common_coefs,
    comparable as comparable,
    covariance_evidence as covariance_evidence,
    degrees_of_freedom as degrees_of_freedom,
    eigen_system as eigen_system,
    evidence_given_classes as evidence_given_classes,
    evidence_given_response as evidence_given_response,
    evidence_in as evidence_in,
    feature_scales as feature_scales,
    frame_of as frame_of,
    given_classes as given_classes,
    given_response as given_response,
    mean_evidence as mean_evidence,
    noise_frame as noise_frame,
    principal_axes as principal_axes,
    refuse_underflow as refuse_underflow,
    rounding_errors as rounding_errors,
    total_covariance as total_covariance,
    unit_of_weight as unit_of_weight,
    whitening as whitening,
    within_scatter as within_scatter,
)
from isrlearn.moments._nulls import (
    PermuteEnvironments as PermuteEnvironments,
)
from isrlearn.moments._parts import (
    AddUnits as AddUnits,
    PartMoments as PartMoments,
    UnitSums as UnitSums,
    resampled as resampled,
)
from isrlearn.moments._sums import (
    blocks_of_stacks as blocks_of_stacks,
    in_safe_precision as in_safe_precision,
    in_stacks as in_stacks,
    largest_values as largest_values,
    whole_stacks as whole_stacks,
)

__all__ = ["CellMoments"]
