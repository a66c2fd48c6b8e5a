"""What was given, checked and encoded once: rows, labels, environments, weights, parameters."""

from isrlearn.rows._device import (
    block_rows_on_device as block_rows_on_device,
    blocks as blocks,
    float_type as float_type,
    namespace as namespace,
    on_device as on_device,
    summed as summed,
    taken as taken,
    to_device as to_device,
)
from isrlearn.rows._features import (
    LARGEST as LARGEST,
    as_numbers as as_numbers,
    as_rows as as_rows,
    naming_columns as naming_columns,
    of_list as of_list,
    overflow_message as overflow_message,
    refuse_large_features as refuse_large_features,
    refuse_sparse as refuse_sparse,
    shape_of as shape_of,
)
from isrlearn.rows._labels import (
    BIN_THEM as BIN_THEM,
    LONGEST as LONGEST,
    MISSING as MISSING,
    MOST_NUMBERS as MOST_NUMBERS,
    UNKNOWN as UNKNOWN,
    as_labels as as_labels,
    encode_environments as encode_environments,
    encode_labels as encode_labels,
    is_missing as is_missing,
    refuse_measurements as refuse_measurements,
    refuse_text as refuse_text,
    too_many_values as too_many_values,
)
from isrlearn.rows._saved_arrays import (
    require_names as require_names,
    require_protocol as require_protocol,
    saved_floats as saved_floats,
    saved_moments as saved_moments,
)
from isrlearn.rows._source import (
    NO_ROWS as NO_ROWS,
    WIDE as WIDE,
    Chunk as Chunk,
    ChunkedRows,
    InMemory as InMemory,
    NoRowsError as NoRowsError,
    RowSource as RowSource,
    T as T,
    Watch as Watch,
    as_source as as_source,
    block_rows as block_rows,
    checked as checked,
    chunk_rows as chunk_rows,
)
from isrlearn.rows._validation import (
    LIGHTEST as LIGHTEST,
    Rows as Rows,
    check_features as check_features,
    check_number as check_number,
    check_rows as check_rows,
    check_scale as check_scale,
    check_scored as check_scored,
    check_weights as check_weights,
    refuse_continuous as refuse_continuous,
    refuse_not_finite as refuse_not_finite,
    seeded as seeded,
)

__all__ = ["ChunkedRows"]
