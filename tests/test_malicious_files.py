"""Files made to harm are refused with a reason; nothing in them runs, and memory stays bounded.

The bound is stated in `hostile_reading`: a file that is refused costs at most `FREE` bytes and
`TIMES` its own size in memory, because sizes are compared with the file before memory is taken.
"""

import bz2
import gzip
import re
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

pytest.importorskip("safetensors")
pa = pytest.importorskip("pyarrow")

import hostile_files as h  # noqa: E402
from fuzz.guard import _reset_peak, peak_bytes  # noqa: E402
from hostile_reading import FREE, NAMES, chunks, data, refused  # noqa: E402

from isrlearn._resume import _load  # noqa: E402
from isrlearn.benchmark import Store  # noqa: E402
from isrlearn.datasets import read_multinli, read_table, read_waterbirds  # noqa: E402
from isrlearn.exceptions import (  # noqa: E402
    DataError,
    FeatureFileError,
    ModelFileError,
    StoreError,
)
from isrlearn.io import FeatureFile, LinearModel, read_data  # noqa: E402
from isrlearn.reporting import Report  # noqa: E402

# --- pickles


def test_the_payload_leaves_a_mark_when_it_is_unpickled(tmp_path):
    """Else the tests below would show nothing."""
    import pickle

    pickle.loads(h.pickled(tmp_path / "mark"))
    assert (tmp_path / "mark").exists()


DISGUISED = {
    "rows.npz": (data, DataError),
    "rows.safetensors": (data, DataError),
    "rows.parquet": (data, DataError),
    "rows.csv": (data, DataError),
    "rows.tsv": (data, DataError),
    "model.safetensors": (LinearModel.load, ModelFileError),
    "model.skops": (LinearModel.load, ModelFileError),
    "model.pkl": (LinearModel.load, ModelFileError),
    "result.json": (Report.load, ValueError),
    "results.sqlite": (lambda path: Store(path).check(), StoreError),
    "own.csv": (read_table, DataError),
}


@pytest.mark.parametrize("name", DISGUISED)
def test_a_pickle_in_disguise_is_not_run(tmp_path, name):
    read, error = DISGUISED[name]
    (tmp_path / name).write_bytes(h.pickled(tmp_path / "mark"))
    refused(read, tmp_path / name, error, re.escape(name), tmp_path / "mark")


@pytest.mark.parametrize("read", [data, chunks])
@pytest.mark.parametrize("name", ["features", "labels", "environments"])
@pytest.mark.parametrize("how", ["member", "objects"])
def test_a_pickle_in_an_archive_is_not_run(tmp_path, read, name, how):
    mark = tmp_path / "mark"
    objects = np.array([h.Payload(mark)] * 6, dtype=object)
    member = h.pickled(mark) if how == "member" else h.npy(objects)
    (tmp_path / "rows.npz").write_bytes(h.npz(**{name: member}))
    reason = "no array" if how == "member" else "Python objects, which is never loaded"
    refused(read, tmp_path / "rows.npz", DataError, reason, mark)


def test_a_pickle_in_a_kept_sum_is_not_run(tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / "sum.npz").write_bytes(h.npz(how_far=h.pickled(mark)))
    assert _load(tmp_path / "sum.npz") is None
    assert not mark.exists()


def test_a_pickle_beside_sentences_is_not_run(tmp_path):
    text = "gold_label\tsentence1\tsentence2\nneutral\tIt rains.\tIt pours.\n"
    (tmp_path / "train.tsv").write_text(text)
    objects = np.array([h.Payload(tmp_path / "mark")], dtype=object)
    (tmp_path / "split.npz").write_bytes(h.npz(split=h.npy(objects)))
    refused(read_multinli, tmp_path, DataError, "Python objects", tmp_path / "mark")


@pytest.mark.parametrize("read", [lambda p: FeatureFile.open(p).read(), data, chunks])
def test_a_pickle_as_a_shard_is_not_run(tmp_path, read):
    mark = tmp_path / "mark"
    folder = h.feature_folder(tmp_path / "features", shard=h.pickled(mark))
    refused(read, folder, FeatureFileError, "features", mark)


@pytest.mark.filterwarnings("ignore:pickle-based deserialization")  # old pyarrow tells of it
@pytest.mark.filterwarnings("ignore:pyarrow.PyExtensionType is deprecated")
def test_an_arrow_type_that_brings_a_pickle_is_not_run(tmp_path):
    mark = tmp_path / "mark"
    secret = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": h.pickled(mark),
    }
    fields = [pa.field("size", pa.float64(), metadata=secret)]
    fields += [pa.field(name, pa.string()) for name in ("site", "kind")]
    columns = [[1.0, 2.0, 3.0, 4.0], ["n", "s"] * 2, ["a", "a", "b", "b"]]
    table = pa.table([pa.array(c) for c in columns], schema=pa.schema(fields))
    (tmp_path / "rows.parquet").write_bytes(h.parquet(table))
    with suppress(DataError):  # a table with a strange note; to old pyarrow a column of no type
        read_data(tmp_path / "rows.parquet", **NAMES)
    assert not mark.exists()


# --- archives


def claims(shape, descr="<f8"):
    return h.npz(features=h.header(shape, descr))


ARCHIVES = {
    "bomb": (h.bomb, "its .* bytes claim to hold .* bytes of arrays"),
    "more than deflate can do": (
        lambda: h.raw_zip([("features.npy", h.header((10**8, 1)), 8 * 10**8)]),
        "claims to become 800000000",
    ),
    "many bombs": (
        lambda: h.raw_zip([(f"a{i}.npy", h.zeros_deflated(2**23), 2**23) for i in range(2000)]),
        "claim to hold",
    ),
    "nested": (lambda: h.npz(features=h.npz()), "features is no array"),
    "many members": (lambda: h.many_members(20000), "no array"),
    "overlapping": (h.overlapping, "over each other|Overlapped"),
    "twice": (
        lambda: h.raw_zip([("features.npy", b"\3\0", 0), ("features", b"\3\0", 0)]),
        "two arrays 'features'",
    ),
    "parent": (lambda: h.renamed("features.npy", "../features.npy"), "outside of its folder"),
    "absolute": (lambda: h.renamed("labels.npy", "/labels.npy"), "outside of its folder"),
    "another drive": (lambda: h.renamed("labels.npy", "C:\\labels.npy"), "outside of its folder"),
    "encrypted": (lambda: h.raw_zip([("features.npy", b"x" * 99, 99)], flags=1), "encrypted"),
    "bzip2": (
        lambda: h.raw_zip([("features.npy", bz2.compress(bytes(10**6)), 10**6)], method=12),
        "packed as NumPy does not",
    ),
    "rows": (lambda: claims((10**12, 2)), r"claims the shape \(1000000000000, 2\)"),
    "columns": (lambda: claims((6, 10**12)), "claims the shape"),
    "empty rows": (lambda: claims((10**12, 0)), "shape"),
    "negative": (lambda: claims((-2, -6)), "shape"),
    "wide values": (lambda: claims((6, 2), "|S1000000000"), "claims the shape"),
    "no values": (lambda: claims((6, 2), "|V0"), "type"),
    "parentheses": (lambda: h.npz(features=h.npy_header("(" * 9000)), "header that cannot be read"),
    "code": (lambda: h.npz(features=h.npy_header("__import__('os')")), "header that cannot"),
    "long header": (
        lambda: h.npz(features=h.npy_header("{", version=2, claimed=2**32 - 1)),
        "header that cannot be read",
    ),
    "unknown version": (
        lambda: h.npz(features=b"\x93NUMPY\x09\x00" + bytes(99)),
        "version|no array",
    ),
}


@pytest.mark.parametrize("read", [data, chunks])
@pytest.mark.parametrize("case", ARCHIVES)
def test_a_hostile_archive_is_refused(tmp_path, read, case):
    make, reason = ARCHIVES[case]
    (tmp_path / "rows.npz").write_bytes(make())
    refused(read, tmp_path / "rows.npz", DataError, reason)


@pytest.mark.parametrize("read", [data, chunks])
def test_a_stream_is_read_as_far_as_it_claims_and_no_further(tmp_path, read):
    (tmp_path / "rows.npz").write_bytes(h.small_claim_bomb())
    before = _reset_peak()
    read(tmp_path / "rows.npz")
    assert peak_bytes() - before < FREE


def test_a_bomb_of_honest_zeros_is_refused_and_without_compression_read(tmp_path):
    """What is refused is the ratio: the same zeros are read where they take their bytes."""
    n = 10**5
    arrays = {name: np.arange(n) % 2 for name in ("labels", "environments")}
    arrays["features"] = np.zeros((n, 50), np.float32)
    np.savez_compressed(tmp_path / "small.npz", **arrays)
    refused(data, tmp_path / "small.npz", DataError, "saved without compression")
    np.savez(tmp_path / "large.npz", **arrays)
    assert read_data(tmp_path / "large.npz").features.shape == (n, 50)


def test_rows_that_take_no_bytes_are_refused(tmp_path):
    n = 2**20
    arrays = {"features": np.zeros((n, 1), np.int8), "labels": np.zeros(n, np.int8)}
    np.savez_compressed(tmp_path / "rows.npz", **arrays, environments=np.zeros(n, np.int8))
    for read in (data, chunks):
        refused(read, tmp_path / "rows.npz", DataError, f"claim to hold {n} rows")


TENSORS = {
    "rows": ({"features": h.tensor([10**12, 2], [0, 96])}, 96),
    "overflowing shape": ({"features": h.tensor([2**32, 2**32, 16], [0, 0])}, 0),
    "overlapping": (
        {"features": h.tensor([6, 2], [0, 96]), "labels": h.tensor([6, 2], [0, 96])},
        96,
    ),
    "beyond the end": ({"features": h.tensor([6, 2], [0, 96])}, 10),
    "negative": ({"features": h.tensor([6, 2], [96, 0])}, 96),
    "hole": ({"features": h.tensor([6, 2], [96, 192])}, 192),
    "deep": (b'{"features":' * 5000, 0),
    "no json": (b"\x80\x04pickle", 0),
    "not UTF-8": (b'{"\xff": 1}', 0),
    "huge number": (b'{"features": {"dtype": "F64", "shape": [' + b"9" * 5000 + b"]}}", 0),
}


@pytest.mark.parametrize("read", [data, chunks])
@pytest.mark.parametrize("case", TENSORS)
def test_hostile_tensors_are_refused(tmp_path, read, case):
    described, size = TENSORS[case]
    path = tmp_path / "rows.safetensors"
    path.write_bytes(h.safetensors(described, bytes(size)))
    refused(read, path, DataError, "damaged|no array")


@pytest.mark.parametrize("length", [0, 2**30, 2**63, 2**64 - 1])
@pytest.mark.parametrize("read", [data, chunks, LinearModel.load])
def test_a_header_of_any_claimed_length_is_refused(tmp_path, read, length):
    path = tmp_path / "rows.safetensors"
    path.write_bytes(h.safetensors({"features": h.tensor([6, 2], [0, 96])}, bytes(96), length))
    refused(read, path, (DataError, ModelFileError), re.escape(path.name))


# --- tables


def parquet_of(**columns):
    n = len(next(iter(columns.values())))
    others = {"site": pa.array(["n", "s"] * (n // 2)), "kind": pa.array(["a", "b"] * (n // 2))}
    return pa.table(others | columns)


PARQUET = {
    "nulls": (lambda: h.parquet(pa.table({"size": pa.nulls(10**7, pa.int64())})), "10000000 rows"),
    "zeros": (
        lambda: h.parquet(
            pa.table({f"x{i}": np.zeros(2 * 10**5) for i in range(40)}),
            compression="zstd",
            use_dictionary=False,
        ),
        "bytes of arrays",
    ),
    "wide nulls": (
        lambda: h.parquet(pa.table({"size": pa.nulls(100, pa.binary(10**6))})),
        "bytes of arrays",
    ),
    "long lists": (
        lambda: h.parquet(
            pa.table({"size": pa.ListArray.from_arrays([0, 10**6], pa.array(np.zeros(10**6)))})
        ),
        "rows",
    ),
    "shared beginnings": (
        lambda: h.parquet(
            parquet_of(size=pa.array(["x" * i for i in range(200)])),
            use_dictionary=False,
            column_encoding={"size": "DELTA_BYTE_ARRAY", "site": "PLAIN", "kind": "PLAIN"},
        ),
        "DELTA_BYTE_ARRAY",
    ),
    "no description": (lambda: b"PAR1" + (2**31).to_bytes(4, "little") + b"PAR1", "longer than"),
    "short": (lambda: b"PAR1", "cut short"),
    "encrypted": (lambda: b"PARE" + bytes(20) + b"PARE", "begin and end"),
}


@pytest.mark.parametrize("read", [data, chunks])
@pytest.mark.parametrize("case", PARQUET)
def test_a_hostile_parquet_file_is_refused(tmp_path, read, case):
    make, reason = PARQUET[case]
    (tmp_path / "rows.parquet").write_bytes(make())
    refused(read, tmp_path / "rows.parquet", DataError, reason)


@pytest.mark.parametrize("read", [data, chunks])
def test_one_long_text_in_all_rows_stands_in_memory_once(tmp_path, read):
    """100 000 rows of 100 kB each are ten gigabytes, out of a file of some hundred kilobytes."""
    n = 10**5
    text = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), pa.array(["x" * n]))
    table = parquet_of(size=pa.array(np.arange(float(n))), long=text)
    (tmp_path / "rows.parquet").write_bytes(h.parquet(table, compression="none"))
    before = _reset_peak()
    read(tmp_path / "rows.parquet")
    assert peak_bytes() - before < 2 * FREE


def csv_header(n):
    return ",".join(f"c{i}" for i in range(n)).encode()


CSV = {
    "columns": (lambda: csv_header(10**6) + b"\n", "1000000 columns"),
    "one long line": (lambda: b"a," * (5 * 10**7), "line 1 is longer than"),
    "long second line": (lambda: b"a,b\n" + b"1," * 10**7 + b"\n", "line 2 is longer than"),
    "long field": (lambda: b"a,site,kind\n" + b"x" * 10**6 + b",n,g\n", "field larger than"),
    "open quote": (lambda: b'a,site,kind\n1,n,"' + b"x\n" * 10**5, "split into fields"),
    "gzip": (lambda: gzip.compress(b"a,site,kind\n1,n,g\n" * 99), "binary data|not UTF-8"),
    "UTF-16": (lambda: "a,site,kind\n1,n,g\n".encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (lambda: "a,site,kind\n".encode("utf-16-le"), "binary data"),
    "NUL": (lambda: b"a,site,kind\n1,n\0,g\n", "binary data"),
    "zip": (h.npz, "binary data"),
}


@pytest.mark.parametrize("case", CSV)
def test_a_hostile_text_is_refused(tmp_path, case):
    make, reason = CSV[case]
    (tmp_path / "rows.csv").write_bytes(make())
    refused(data, tmp_path / "rows.csv", DataError, reason)


@pytest.mark.parametrize("case", ["columns", "one long line", "long second line", "UTF-16"])
def test_a_hostile_table_of_a_layout_is_refused(tmp_path, case):
    (tmp_path / "rows.csv").write_bytes(CSV[case][0]())
    refused(read_table, tmp_path / "rows.csv", DataError, "columns|longer than|not UTF-8")


# --- labels


def long_csv(path, n, width):
    long = "".join(f"0,{site},{'c' * width}\n" for site in "ns")
    path.write_text("size,site,kind\n" + long + "0,n,a\n1,s,b\n1,n,b\n0,s,a\n" * (n // 4))


def long_parquet(path, n, width, long="kind"):
    columns = {"site": ["n", "s", "s", "n"] * (n // 4), "kind": ["a", "b"] * (n // 2)}
    columns[long] = [text * width for text in columns[long]]
    texts = {name: pa.array(texts).dictionary_encode() for name, texts in columns.items()}
    table = pa.table({"size": np.arange(n) % 3, **texts})
    path.write_bytes(h.parquet(table, compression="zstd"))


WIDE = {
    "rows.csv": (long_csv, [data]),
    "rows.parquet": (long_parquet, [data, chunks]),
    "sites.parquet": (partial(long_parquet, long="site"), [data, chunks]),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_label_that_would_take_four_kilobytes_in_each_row_is_refused(tmp_path, name):
    """80 000 rows of some bytes each would be arrays of strings of 320 megabytes."""
    make, doors = WIDE[name]
    make(tmp_path / name, 80_000, 1000)
    for read in doors:
        reason = "1000 characters are too many for .* give at most [0-9]+\\.$"
        refused(read, tmp_path / name, DataError, reason)


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize(("width", "n"), [(64, 80_000), (1000, 1000)])
def test_ordinary_labels_and_long_ones_of_few_rows_are_read(tmp_path, name, width, n):
    make, doors = WIDE[name]
    make(tmp_path / name, n, width)
    for read in doors:
        read(tmp_path / name)
    assert max(map(len, data(tmp_path / name).labels)) == (1 if "sites" in name else width)


# --- tar files


def a_size(raw):
    raw[124:136] = b"77777777777\0"


def a_huge_size(raw):
    raw[124:136] = b"\x80" + bytes(3) + (2**62).to_bytes(8, "big")


def a_negative_size(raw):
    raw[124:136] = b"\xff" * 12


@pytest.mark.parametrize("change", [a_size, a_huge_size, a_negative_size])
def test_a_tar_file_that_claims_more_than_it_has_is_refused(tmp_path, change):
    path = h.tar(tmp_path, change)
    refused(read_waterbirds, path, DataError, re.escape(str(path)))
