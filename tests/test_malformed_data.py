"""Each malformed file gets one line of its own that names the file, the problem and the way out."""

import sys

import numpy as np
import pytest

from isrlearn.exceptions import DataError
from isrlearn.io import Column, Features, Schema, read_data

pa = pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")

from bad_inputs.files import (  # noqa: E402
    GOOD,
    NAMES,
    good_arrays,
    with_column,
    write_csv,
)
from feature_support import write_first_protocol  # noqa: E402


def test_only_rows_to_train_on_count_for_a_fit(tmp_path):
    path = write_csv(tmp_path / "birds.csv", GOOD)
    read_data(path, **NAMES).check_for_fit()
    north_only = ["train" if fields[2] == "north" else "test" for fields in GOOD[1:]]
    write_csv(path, with_column("split", north_only))
    with pytest.raises(DataError, match="1 row of class 'tern'|one environment only"):
        read_data(path, **NAMES).check_for_fit()


def test_a_file_without_labels_is_not_fitted_on(tmp_path):
    schema = read_data(write_csv(tmp_path / "birds.csv", GOOD), **NAMES).schema
    unlabelled = write_csv(tmp_path / "new.csv", [fields[:3] for fields in GOOD])
    with pytest.raises(DataError, match="new.csv was read without labels"):
        read_data(unlabelled, schema=schema).check_for_fit()


def damaged(**changes):
    schema = Schema((Column("a"), Column("b", ("x", "y"))), "y", ("e",), "table")
    written = schema.to_json() | changes
    return {key: value for key, value in written.items() if value is not KeyError}


@pytest.mark.parametrize(
    "written",
    [
        [],
        None,
        damaged(protocol=99),
        damaged(kind="tree"),
        damaged(label=3),
        damaged(environment="e"),
        damaged(environment=[1]),
        damaged(columns=7),
        damaged(columns=[]),
        damaged(columns=KeyError),
        damaged(columns=["a"]),
        damaged(columns=[{"categories": None}]),
        damaged(columns=[{"name": "a", "categories": [1]}]),
        damaged(columns=[{"name": "a"}, {"name": "a"}]),
    ],
    ids=repr,
)
def test_a_damaged_schema_is_refused(written):
    with pytest.raises(DataError, match=r"schema .* is damaged \(.+\): fit the model again"):
        Schema.from_json(written)


@pytest.mark.parametrize(
    ("module", "name"), [("pyarrow.parquet", "a.parquet"), ("safetensors", "a.safetensors")]
)
def test_a_missing_package_is_named_with_its_extra(module, name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match=r"extra 'io': pip install 'isrlearn\[io\]'"):
        read_data(tmp_path / name, **NAMES)


def test_shards_of_different_width_do_not_fit_together(tmp_path):
    """Protocol 1 does not tell the kinds of columns, so shards must be compared."""
    parts = [Features(**good_arrays(features=np.ones((6, width)))) for width in (2, 3)]
    write_first_protocol(tmp_path, parts)
    with pytest.raises(DataError, match="do not fit together"):
        read_data(tmp_path)


def test_pickles_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("a pickle was loaded",)

    array = np.empty(6, dtype=object)
    array[:] = [Bomb() for _ in range(6)]
    for name in ("features", "labels", "environments"):
        np.savez(tmp_path / "rows.npz", **good_arrays(**{name: array}))
        with pytest.raises(DataError, match=f"{name} is an array of Python objects"):
            read_data(tmp_path / "rows.npz")
