"""What was given, checked and encoded once: rows, labels, environments, weights, parameters."""

from isrlearn.rows._arrays import (
    as_numbers as as_numbers,
    as_rows as as_rows,
    in_type as in_type,
    refuse_kind as refuse_kind,
    refuse_ragged as refuse_ragged,
    refuse_sparse as refuse_sparse,
    shape_of as shape_of,
    some as some,
)
from isrlearn.rows._blocks import (
    FEW_CELLS as FEW_CELLS,
    LARGEST_IN_SINGLE as LARGEST_IN_SINGLE,
    WIDE as WIDE,
    blocks_of_stacks as blocks_of_stacks,
    cell_means as cell_means,
    cell_sums as cell_sums,
    in_stacks as in_stacks,
    largest_values as largest_values,
    mapped as mapped,
    whole_stacks as whole_stacks,
)
from isrlearn.rows._columns import (
    LARGEST as LARGEST,
    naming_columns as naming_columns,
    overflow_message as overflow_message,
    refuse_large_features as refuse_large_features,
)
from isrlearn.rows._device import (
    blocks as blocks,
    device_moments as device_moments,
    float_type as float_type,
    namespace as namespace,
    on_device as on_device,
    to_device as to_device,
)
from isrlearn.rows._given import (
    Chunk as Chunk,
)
from isrlearn.rows._labels import (
    BIN_THEM as BIN_THEM,
    LONGEST as LONGEST,
    MOST_NUMBERS as MOST_NUMBERS,
    UNKNOWN as UNKNOWN,
    as_labels as as_labels,
    encode_labels as encode_labels,
    is_missing as is_missing,
    refuse_measurements as refuse_measurements,
    too_many_values as too_many_values,
)
from isrlearn.rows._parameters import (
    check_number as check_number,
    check_removal as check_removal,
    check_scale as check_scale,
    is_between as is_between,
    seeded as seeded,
)
from isrlearn.rows._saved_arrays import (
    require_names as require_names,
    require_protocol as require_protocol,
    saved_floats as saved_floats,
    saved_moments as saved_moments,
)
from isrlearn.rows._source import (
    NO_ROWS as NO_ROWS,
    Begun as Begun,
    ChunkedRows,
    InMemory as InMemory,
    LocalChunks as LocalChunks,
    NoRowsError as NoRowsError,
    T as T,
    Watch as Watch,
    as_chunks as as_chunks,
    checked as checked,
    chunk_rows as chunk_rows,
    mark_of as mark_of,
)
from isrlearn.rows._targets import (
    MISSING_LABELS as MISSING_LABELS,
    refuse_text as refuse_text,
)
from isrlearn.rows._validation import (
    Rows as Rows,
    check_features as check_features,
    check_response_rows as check_response_rows,
    check_rows as check_rows,
    check_scored as check_scored,
    encode_environments as encode_environments,
    refuse_continuous as refuse_continuous,
    refuse_not_finite as refuse_not_finite,
)
from isrlearn.rows._weights import (
    LIGHTEST as LIGHTEST,
    check_weights as check_weights,
)

__all__ = ["ChunkedRows"]
