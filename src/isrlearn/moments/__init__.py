"""From rows to sufficient statistics of the (class, environment) cells, and their null."""

from isrlearn.moments._cells import (
    SMALLEST as SMALLEST,
    CellMoments,
)
from isrlearn.moments._comparison import (
    TINY_CELL_ROWS as TINY_CELL_ROWS,
    class_positions as class_positions,
    comparable as comparable,
    refuse_underflow as refuse_underflow,
)
from isrlearn.moments._conditioning import (
    Conditioned as Conditioned,
    common_coefs as common_coefs,
    covariance_evidence as covariance_evidence,
    degrees_of_freedom as degrees_of_freedom,
    given_classes as given_classes,
    given_response as given_response,
    mean_evidence as mean_evidence,
    rounding_errors as rounding_errors,
    unit_of_weight as unit_of_weight,
    within_scatter as within_scatter,
)
from isrlearn.moments._frame import (
    FEW_COORDINATES as FEW_COORDINATES,
    ROWS_PER_COORDINATE as ROWS_PER_COORDINATE,
    Frame as Frame,
    eigen_system as eigen_system,
    feature_scales as feature_scales,
    frame_of as frame_of,
    noise_frame as noise_frame,
    principal_axes as principal_axes,
    total_covariance as total_covariance,
    whitening as whitening,
)
from isrlearn.moments._null_sources import (
    NullSource as NullSource,
    chunk_nulls as chunk_nulls,
    part_nulls as part_nulls,
    response_nulls as response_nulls,
    row_nulls as row_nulls,
    row_part_nulls as row_part_nulls,
)
from isrlearn.moments._nulls import (
    Evidence as Evidence,
    evidence_in as evidence_in,
)
from isrlearn.moments._parts import (
    PartMoments as PartMoments,
)
from isrlearn.moments._passes import (
    AddMoments as AddMoments,
    AllMoments as AllMoments,
    UnitSums as UnitSums,
)

__all__ = ["CellMoments"]
