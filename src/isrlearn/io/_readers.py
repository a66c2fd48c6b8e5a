"""Files that are read chunk by chunk: features in slices, the other columns as a whole."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn._limits import refuse_rows
from isrlearn._npz import opened_array
from isrlearn.exceptions import DataError
from isrlearn.io._archives import FEATURES, open_npz, require_safetensors
from isrlearn.io._coded import distinct_texts
from isrlearn.io._features import FeatureFile
from isrlearn.io._parquet import flat_names, opened_parquet, read_columns
from isrlearn.io._tables import INDEX, dictionary_texts, refuse_repeated
from isrlearn.io._values import Texts, named, nearest
from isrlearn.rows import chunk_rows
from isrlearn.typing import FloatArray

NUMBERS: Final = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


TENSORS: Final = {
    "F16": "f2",
    "F32": "f4",
    "F64": "f8",
    "BOOL": "b1",
    **{f"{kind}{8 * size}": f"{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)},
}


@dataclass(frozen=True, eq=False)
class Reader:
    """A file of which features are read in chunks.

    Parameters
    ----------
    path : Path
        Where it is.
    part : {"array", "column"}
        What its parts are called.
    names : sequence of str
        Names of the arrays or columns.
    n_rows, n_features : int
        Shape of the features.
    starts : sequence of int
        First row of each chunk.
    column : callable
        Returns the array of a name, (n,).
    chunks : callable
        Returns an iterator over chunks of features, float32 or float64, without the first ones.
    feature_names : tuple of str, default=None
        Names of the features of a table.
    notes : tuple of str, default=()
        What the user should know.
    """

    path: Path
    part: str
    names: Sequence[str]
    n_rows: int
    n_features: int
    starts: Sequence[int]
    column: Callable[[str], Any]
    chunks: Callable[[int], Iterator[FloatArray]]
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def texts(self, name: str) -> Texts:
        """Return the distinct values of a column as text."""
        return distinct_texts(self.column(name))


def npz_reader(path: Path) -> Reader:
    """Open what ``numpy.savez`` wrote, compressed or not; nothing in it is unpickled."""
    archive = open_npz(path)
    _require_features(path, archive.names)
    with opened_array(path, FEATURES) as (header, _):
        shape: Any = header.shape
        dtype = header.dtype
    if header.by_columns:
        raise DataError(
            f"{path}: features are stored column by column, so no row can be read alone: save "
            "numpy.ascontiguousarray(features)."
        )
    step = _step(path, shape, dtype)
    refuse_rows(shape[0], path)

    def chunks(skip: int) -> Iterator[FloatArray]:
        with opened_array(path, FEATURES) as (_, file):
            file.seek(skip * step * shape[1] * dtype.itemsize, 1)
            for start in range(skip * step, shape[0], step):
                n = min(step, shape[0] - start)
                data = file.read(n * shape[1] * dtype.itemsize)
                yield _as_floats(np.frombuffer(data, dtype).reshape(n, shape[1]))

    n_rows, n_features = shape
    starts = range(0, n_rows, step)
    return Reader(path, "array", archive.names, n_rows, n_features, starts, archive.load, chunks)


def safetensors_reader(path: Path) -> Reader:
    """Open a single safetensors file."""
    require_safetensors(path)
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            _require_features(path, names)
            features = file.get_slice(FEATURES)
            shape: Any = tuple(features.get_shape())
            kind = str(features.get_dtype())
    except SafetensorError as error:
        raise DataError(f"{path} is damaged ({error}): copy or write the file again.") from error
    dtype = np.dtype(TENSORS.get(kind, "O"))
    step = _step(path, shape, dtype)

    def slice_of(name: str, rows: slice) -> Any:
        # Opened anew each time: the pages that were read are given back when it is closed.
        with safe_open(path, framework="np") as file:
            return file.get_slice(name)[rows]

    def chunks(skip: int) -> Iterator[FloatArray]:
        for start in range(skip * step, shape[0], step):
            yield _as_floats(slice_of(FEATURES, slice(start, min(start + step, shape[0]))))

    def column(name: str) -> Any:
        return slice_of(name, slice(None))

    n_rows, n_features = shape
    starts = range(0, n_rows, step)
    return Reader(path, "array", names, n_rows, n_features, starts, column, chunks)


def folder_reader(folder: Path) -> Reader:
    """Open a folder that `FeatureWriter` wrote: a shard is a chunk. Hashes are checked once."""
    require_safetensors(folder)
    file = FeatureFile.open(folder)
    if not all(isinstance(shard.rows, int) and 0 <= shard.rows < 2**53 for shard in file.shards):
        raise DataError(f"{folder} has a manifest without numbers of rows: write it again.")
    if not file.whole or len(file) == 0:
        raise DataError(
            f"{folder} is not finished: it has {len(file)} rows so far. Run the command that "
            "began it again."
        )
    columns: dict[str, list[Any]] = {}
    for shard in file.chunks():  # all hashes, once
        for name, values in shard.arrays().items():
            columns.setdefault(name, []).append(values[:0] if name == FEATURES else values)
    shapes = {part.shape[1:] for part in columns.pop(FEATURES)}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1:
        raise DataError(
            f"{folder} has shards whose features do not fit together ({sorted(shapes)}): write it "
            "again."
        )
    n_features = int(next(iter(shapes))[0])
    lengths = [shard.rows for shard in file.shards]
    starts = np.cumsum([0, *lengths[:-1]]).tolist()

    def chunks(skip: int) -> Iterator[FloatArray]:
        for shard in file.chunks(skip, verify=False):
            yield _as_floats(shard.features)

    return Reader(
        folder,
        "array",
        [FEATURES, *columns],
        len(file),
        n_features,
        starts,
        lambda name: np.concatenate(columns[name]),
        chunks,
    )


def parquet_reader(path: Path) -> Reader:
    """Open a parquet file: numeric columns are features."""
    with opened_parquet(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    own = {name.strip(): name for name in schema.names}
    refuse_repeated(path, [name.strip() for name in schema.names])
    names = [name for name in own if not INDEX.fullmatch(name)]

    def column(name: str) -> Any:
        with opened_parquet(path) as file:
            if own[name] not in flat_names(file):
                raise DataError(f"{path}: column {name!r} holds lists, not one value per row.")
            return _values(read_columns(file, [own[name]]).column(0))

    return Reader(path, "column", names, n_rows, 0, (), column, lambda skip: iter(()))


def with_columns(reader: Reader, excluded: set[str]) -> Reader:
    """Return a reader of a table whose features are the numeric columns but some."""
    if reader.part == "array":
        return reader
    with opened_parquet(reader.path) as file:
        kinds = {field.name.strip(): field.type for field in file.schema_arrow}
        own = {field.name.strip(): field.name for field in file.schema_arrow}
    names = tuple(n for n in reader.names if n not in excluded and _is_number(kinds[n]))
    others = [n for n in reader.names if n not in excluded and n not in names]
    if not names:
        raise DataError(f"{reader.path} has no numeric column left for the features: add one.")
    itemsize = 4 if all(str(kinds[n]) in ("float", "halffloat") for n in names) else 8
    step = chunk_rows(len(names), itemsize)

    def chunks(skip: int) -> Iterator[FloatArray]:
        with opened_parquet(reader.path) as file:
            batches = file.iter_batches(step, columns=[own[n] for n in names])
            for number, batch in enumerate(_regrouped(batches, step)):
                if number >= skip:
                    yield _of_batch(batch, [own[n] for n in names], itemsize)

    notes = [f"left out {named(others)}: text is not encoded in chunks."] if others else []
    index = len(own) - len(reader.names)
    if index:
        notes.append(f"left out {index} column(s) without a name of their own (an index).")
    return Reader(
        reader.path,
        "column",
        reader.names,
        reader.n_rows,
        len(names),
        range(0, reader.n_rows, step),
        reader.column,
        chunks,
        names,
        tuple(notes),
    )


def _regrouped(batches: Iterator[Any], step: int) -> Iterator[Any]:
    """Yield tables of `step` rows: batches end where a row group does."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_rows = 0
    for batch in batches:
        waiting.append(batch)
        n_rows += batch.num_rows
        if n_rows >= step:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, step)
            rest = table.slice(step)
            waiting, n_rows = rest.to_batches(), rest.num_rows
    if n_rows:
        yield pa.Table.from_batches(waiting)


def _of_batch(table: Any, names: list[str], itemsize: int) -> FloatArray:
    dtype = np.float32 if itemsize == 4 else np.float64
    result = np.empty((table.num_rows, len(names)), dtype)
    for j, name in enumerate(names):
        result[:, j] = table.column(name).to_numpy()
    return result


def _values(column: Any) -> Any:
    from pyarrow import types

    if types.is_dictionary(column.type) and not types.is_primitive(column.type.value_type):
        return np.array(dictionary_texts(column), dtype=object)
    return column.to_numpy()


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _step(path: Path, shape: tuple[int, ...], dtype: Any) -> int:
    if len(shape) != 2 or 0 in shape:
        raise DataError(f"{path}: features has shape {shape}, expected (rows, features).")
    if dtype.str.lstrip("<=|>") not in NUMBERS:
        raise DataError(f"{path}: features has the type {dtype}, but numbers are needed.")
    return chunk_rows(shape[1], dtype.itemsize)


def _as_floats(features: Any) -> FloatArray:
    """Return features as float32 or float64, as `read_data` does."""
    if features.dtype in (np.float32, np.float64):
        return np.asarray(features)
    return np.asarray(features, np.float32 if features.dtype == np.float16 else np.float64)


def _require_features(path: Path, names: Sequence[str]) -> None:
    if FEATURES not in names:
        raise DataError(
            f"{path} has no array 'features', which must have that name: "
            f"{nearest(FEATURES, names, 'array') if names else 'it is empty.'}"
        )
