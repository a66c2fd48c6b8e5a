"""Rows of a user's file: features, labels, environments and split."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.io._archives import (
    Archive,
    open_folder,
    open_npz,
    open_safetensors,
    require_rows,
)
from isrlearn.io._encoding import (
    choose_columns,
    encode_columns,
    notes_on_categories,
    notes_on_counters,
    notes_on_gaps,
    refuse_absent,
)
from isrlearn.io._roles import Asked, Roles, asked_for, find_roles, require
from isrlearn.io._rows import TRAIN, Rows, Source, column_texts, read_rows
from isrlearn.io._schema import Schema
from isrlearn.io._tables import Table, read_csv, read_parquet
from isrlearn.io._values import Texts, named
from isrlearn.typing import FloatArray, IntArray, LabelArray

FEWEST_ROWS_OF_A_CLASS: Final = 2
READERS: Final[Mapping[str, Callable[[Path], Source]]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
}


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of a file, with what another file needs to be read in the same way.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        float32 or float64; NaN where a value is missing.
    labels : ndarray of shape (n,) or None
        Integers or strings; None if the file has none, and for rows without one where the file is
        read to predict.
    environments : ndarray of shape (n,) or None
        Integers or strings, None where unknown; None if the file has none.
    split : ndarray of shape (n,) or None
        0 train, 1 validation, 2 test; None if the rows are not split.
    schema : Schema
        How columns became features.
    notes : tuple of str
        What the user should know: columns and rows that were left out, and why.
    source : Path
        The file.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from isrlearn.io import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/rows.npz"
    ...     np.savez(path, features=np.eye(4), labels=[0, 0, 1, 1], environments=[0, 1, 0, -1])
    ...     data = read_data(path)
    >>> len(data), data.environments.tolist(), data.split is None
    (4, [0, 1, 0, None], True)
    >>> data.check_for_fit()  # raises nothing: two classes and two environments
    """

    features: FloatArray
    labels: LabelArray | None
    environments: LabelArray | None
    split: IntArray | None
    schema: Schema
    notes: tuple[str, ...]
    source: Path

    def __len__(self) -> int:
        return len(self.features)

    def check_for_fit(self) -> None:
        """Raise `DataError` unless a model can be fitted on the rows to train on.

        There must be two classes of at least two rows each, and two known environments of which
        at least one has more than one row. With a split, rows of the other parts do not count.
        """
        rows = np.ones(len(self), bool) if self.split is None else self.split == TRAIN
        if self.labels is None:
            raise DataError(f"{self.source} was read without labels: give a file that has them.")
        check_classes(self.source, Counter(self.labels[rows].tolist()))
        known = [] if self.environments is None else self.environments[rows].tolist()
        check_environments(self.source, Counter(e for e in known if e is not None))


def check_classes(path: Path, sizes: Counter[Any]) -> None:
    """Raise `DataError` unless there are two classes of two rows each.

    Parameters
    ----------
    path : Path
        The file.
    sizes : Counter
        Rows to train on of each class.
    """
    if len(sizes) < 2:
        raise DataError(
            f"{path} has one class only, {brief(next(iter(sizes), None))}, in the rows to "
            "train on: two are needed, so add rows of another or name another label."
        )
    smallest, size = sizes.most_common()[-1]
    if size < FEWEST_ROWS_OF_A_CLASS:
        raise DataError(
            f"{path} has {size} row of class {brief(smallest)} to train on: "
            f"{FEWEST_ROWS_OF_A_CLASS} are needed, so add rows or leave that class out. "
            "If it is a number to predict, use ISRRegressor from Python."
        )


def check_environments(path: Path, sizes: Counter[Any]) -> None:
    """Raise `DataError` unless there are two environments, and one has more than one row.

    Parameters
    ----------
    path : Path
        The file.
    sizes : Counter
        Rows to train on of each known environment.
    """
    if not sizes:
        raise DataError(
            f"{path} has no row to train on whose environment is known: name another "
            "environment, or fill it in."
        )
    if len(sizes) == 1:
        raise DataError(
            f"{path} has one environment only, {brief(next(iter(sizes)))}, in the rows to "
            "train on: at least two are needed to see what differs."
        )
    if max(sizes.values()) == 1:
        raise DataError(
            f"{path} has {len(sizes)} environments of one row each (an ID?): name a "
            "column that groups the rows."
        )


def read_data(
    path: str | Path,
    *,
    label: str | None = None,
    environment: str | Sequence[str] = (),
    split: str | None = None,
    drop: str | Sequence[str] = (),
    schema: Schema | None = None,
) -> Data:
    r"""Read features, labels, environments and split of a file.

    Parameters
    ----------
    path : path
        ``.npz`` or ``.safetensors`` with arrays `features`, `labels`, `environments` and
        perhaps `split`; a folder that `FeatureWriter` wrote; or a ``.csv`` (``.tsv``) or
        ``.parquet`` table.
    label : str, default=None
        Column of the labels; of an archive, another array than `labels`.
    environment : str or sequence of str, default=()
        Column of the environments; several are crossed ("north × day"). Of an archive, other
        arrays than `environments`.
    split : str, default=None
        Column or array of the split: train, validation (val, valid, dev) and test, or 0, 1, 2.
        Without it, a column called "split" that holds just these is taken.
    drop : str or sequence of str, default=()
        Columns of a table to leave out.
    schema : Schema, default=None
        How an earlier file was read. The same columns are looked for; labels and environments may
        be absent, and no row is left out, so that predictions stand beside their rows.

    Returns
    -------
    Data

    Notes
    -----
    In a table "", NA, NaN, N/A, null, None and ? say that a value is missing. Blanks around
    values and names do not count. Numeric columns are features, with NaN where a value is missing;
    true and false are 1 and 0. A text column of at most 20 values in the rows to train on becomes
    one 0/1 feature per value; a value that is missing, or that is in no row to train on, is 0 in
    all of them. Other text, dates, and columns of one value are left out; `Data.notes` names them.

    Labels and environments that are all whole numbers become integers (but "007" is a name), all
    others strings. In an archive the environment -1 is unknown. Rows without a label are left out
    unless there is a `schema`; then the labels are None if one is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isrlearn.io import read_data
    >>> file = Path(tempfile.mkdtemp()) / "birds.csv"
    >>> text = "size,colour,site,kind\n3,red,a,gull\n5,blue,a,tern\n4,red,b,gull\n,blue,,tern\n"
    >>> _ = file.write_text(text)
    >>> data = read_data(file, label="kind", environment="site")
    >>> data.schema.feature_names
    ('size', 'colour=blue', 'colour=red')
    >>> data.features
    array([[ 3.,  0.,  1.],
           [ 5.,  1.,  0.],
           [ 4.,  0.,  1.],
           [nan,  1.,  0.]])
    >>> data.environments.tolist()
    ['a', 'a', 'b', None]
    """
    asked = asked_for(label, environment, split, drop, schema)
    return read_source(open_source(Path(path)), asked)


def open_source(path: Path) -> Source:
    """Open a file of rows before it is known what its columns or arrays are for."""
    require_rows(path)
    reader = open_folder if path.is_dir() else READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"{path} ends in {path.suffix!r}, which cannot be read: give {', '.join(READERS)} or "
            "a folder of features."
        )
    try:
        return reader(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its rights.") from error


def kept_columns(source: Source, names: Collection[str]) -> dict[str, Texts]:
    """Return columns of a file that go beside its predictions, by name.

    Parameters
    ----------
    source : Table or Archive
        What was opened.
    names : collection of str
        Columns, or arrays of one value per row.
    """
    for name in names:
        require(source, name, source.names, "keep")
    return {name: column_texts(source, name) for name in names}


def read_source(source: Source, asked: Asked) -> Data:
    """Read the rows of a file that was opened, as `read_data` does."""
    roles = find_roles(source, asked)
    rows = read_rows(source, roles, predicting=asked.schema is not None)
    if isinstance(source, Table):
        features, schema, notes = _table_features(source, asked, roles, rows)
    else:
        features, schema, notes = _array_features(source, asked, roles, rows)
    return Data(
        features=features,
        labels=rows.labels,
        environments=rows.environments,
        split=rows.split,
        schema=schema,
        notes=(*source.notes, *rows.notes, *notes),
        source=source.path,
    )


def _table_features(
    table: Table, asked: Asked, roles: Roles, rows: Rows
) -> tuple[FloatArray, Schema, list[str]]:
    excluded = {*roles.names(), *asked.drop}
    names = [name for name in table.names if name not in excluded]
    if asked.schema is not None:
        wanted = [column.name for column in asked.schema.columns]
        refuse_absent(table.path, names, wanted)
        extra = [name for name in names if name not in wanted]
        notes = [f"not used by the model: {named(extra)}."] if extra else []
        notes += notes_on_categories(table, asked.schema.columns)
        features = encode_columns(table, asked.schema.columns)[rows.kept]
        return features, asked.schema, notes + notes_on_gaps(asked.schema.feature_names, features)
    choice = choose_columns(table, names, rows.training)
    schema = Schema(choice.columns, roles.label, roles.environment, "table")
    features = encode_columns(table, schema.columns)[rows.kept]
    notes = choice.notes() + notes_on_categories(table, schema.columns)
    notes += notes_on_gaps(schema.feature_names, features)
    return features, schema, notes + notes_on_counters(schema.feature_names, features)


def _array_features(
    archive: Archive, asked: Asked, roles: Roles, rows: Rows
) -> tuple[FloatArray, Schema, list[str]]:
    features = archive.features[rows.kept]
    n_features = features.shape[1]
    if asked.schema is None:
        return features, Schema.of_array(n_features, roles.label, roles.environment), []
    if asked.schema.kind != "array":
        raise DataError(
            f"{archive.path} holds an array without column names, but the model was fitted on a "
            f"table: give a csv or parquet file with {named(asked.schema.feature_names)}."
        )
    wanted = len(asked.schema.columns)
    if wanted != n_features:
        raise DataError(
            f"{archive.path} has {n_features} features, but the model was fitted on {wanted}: "
            "give features that were made in the same way."
        )
    return features, asked.schema, []
