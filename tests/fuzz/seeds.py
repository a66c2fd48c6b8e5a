"""Valid files, made once: what the mutations start from."""

import io
import json
import sqlite3
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

FEATURES = np.array([[0.5, 1.0], [1.5, 0.0], [2.5, -1.0], [3.5, 2.0], [4.5, 0.5], [5.5, 1.0]])
ARRAYS = {
    "features": FEATURES,
    "labels": np.array([0, 1, 0, 1, 0, 1]),
    "environments": np.array([0, 0, 1, 1, -1, 0]),
    "split": np.array([0, 0, 0, 0, 1, 2]),
}
CSV = (
    b"size,colour,day,site,kind,split\n1.5,red,2020-01-01,north,gull,train\n"
    b'2.5,"blue, dark",2020-01-02,north,tern,train\n,red,2020-01-03,south,gull,0\n'
    b"4.5,red,2020-01-04,south,tern,train\n5.5,NA,,south,tern,test\n6.5,red,,north,gull,val\n"
)


def npy(array, version=(1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version)
    return file.getvalue()


@cache
def npy_members() -> dict[str, bytes]:
    texts = np.array(["gull", "tern", "gull", "tern", "NA", "gull"])
    others = [ARRAYS, {"features": FEATURES.astype(np.float16), "labels": texts}]
    others.append({"features": np.asfortranarray(FEATURES), "labels": texts.astype("S")})
    others.append({"features": FEATURES.astype(int), "labels": FEATURES[:, 0]})
    return {f"{name}{i or ''}": npy(a) for i, o in enumerate(others) for name, a in o.items()}


@cache
def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **ARRAYS)
    return file.getvalue()


@cache
def safetensors() -> tuple[dict, bytes]:
    """Return the header and the body."""
    from safetensors.numpy import save

    return split_safetensors(save(ARRAYS))


def split_safetensors(data: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


@cache
def parquets() -> tuple[bytes, ...]:
    import pyarrow as pa
    from pyarrow import parquet

    texts = ["gull", "tern", "gull", None, "tern", "gull"]
    columns = {
        "size": [1.5, 2.5, None, 4.5, 5.5, 6.5],
        "age": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
        "ok": [True, False, None, True, True, False],
        "colour": pa.array(texts).dictionary_encode(),
        "day": pa.array([0, 1, 2, 3, 4, 5], pa.date32()),
        "dose": pa.array(range(6)).cast(pa.decimal128(21, 2)),
        "many": pa.array([[1], [], None, [2, 3], [4], [5]]),
        "site": ["north", "south"] * 3,
        "kind": texts,
    }
    files = []
    for settings in (
        {"compression": "none", "use_dictionary": False, "row_group_size": 3},
        {"compression": "snappy", "write_statistics": False},
        {"compression": "zstd", "column_encoding": "PLAIN", "use_dictionary": False},
    ):
        file = io.BytesIO()
        parquet.write_table(pa.table(columns), file, **settings)
        files.append(file.getvalue())
    return tuple(files)


@cache
def feature_folder() -> dict[str, bytes]:
    from isrlearn.io import Features, FeatureWriter

    with tempfile.TemporaryDirectory() as folder:
        with FeatureWriter(folder, {"network": "a"}, rows_per_shard=3) as writer:
            for rows in (slice(0, 3), slice(3, 6)):
                writer.add(Features(**{name: a[rows] for name, a in ARRAYS.items()}))
        return contents(Path(folder))


@cache
def model() -> tuple[dict, dict, bytes]:
    """Return the header without its card, the card, and the body."""
    from isrlearn.io import Column, LinearModel, Schema

    columns = (Column("size"), Column("colour", ("blue", "red")))
    schema = Schema(columns, "kind", ("site",), "table")
    found = LinearModel(np.ones((1, 3)), np.zeros(1), np.zeros(3), np.array(["a", "b"]), schema)
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder) / "m.safetensors")
        header, body = split_safetensors((Path(folder) / "m.safetensors").read_bytes())
    card = json.loads(header.pop("__metadata__")["isrlearn"])
    return header, card, body


@cache
def subspace_file() -> tuple[dict, dict, bytes]:
    """Return the header without its card, the card, and the body."""
    import isrlearn

    found = isrlearn.Subspace.orthogonal(np.array([[1.0, 0.0]]), centre=np.zeros(2))
    with tempfile.TemporaryDirectory() as folder:
        isrlearn.save(found, Path(folder) / "s.safetensors")
        header, body = split_safetensors((Path(folder) / "s.safetensors").read_bytes())
    card = json.loads(header.pop("__metadata__")["isrlearn"])
    return header, card, body


@cache
def estimators() -> tuple[bytes, ...]:
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    import isrlearn
    from isrlearn.datasets import load_penguins

    X, y, species = load_penguins()
    steps = StandardScaler(), FunctionTransformer(np.exp)
    rank_tested = isrlearn.ISR(n_permutations=99, random_state=0)
    fitted = (
        isrlearn.ISRMean(1).fit(X, y, environments=species),
        isrlearn.ISRClassifier(rank_tested).fit(X, y, environments=species),
        make_pipeline(*steps, SGDClassifier(random_state=0)).fit(X, y),
    )
    with tempfile.TemporaryDirectory() as folder:
        for place, estimator in enumerate(fitted):
            isrlearn.save(estimator, Path(folder) / f"{place}.skops")
        return tuple(contents(Path(folder)).values())


def split_zip(data: bytes) -> tuple[dict[str, bytes], bytes]:
    """Return the members and the comment."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, archive.comment


@cache
def store() -> bytes:
    from isrlearn.benchmark import Store, grid, run

    with tempfile.TemporaryDirectory() as folder:
        kept = Store(Path(folder) / "s.sqlite").create()
        run(grid(["oracle", "erm"], ["2", "2s"], [2], seeds=[0, 1], rows=50), kept)
        with sqlite3.connect(kept.path) as connection:
            connection.execute("VACUUM")
        connection.close()
        return kept.path.read_bytes()


@cache
def report() -> dict:
    import isrlearn
    from isrlearn.datasets import load_penguins

    X, y, species = load_penguins()
    few = slice(None, None, 30)
    settings = {"n_permutations": 99, "random_state": 0}
    model = isrlearn.ISRClassifier(isrlearn.ISR(**settings)).fit(X, y, environments=species)
    page = isrlearn.report(model, X[few], y[few], environments=species[few], title="Penguins")
    return {"report": page.to_dict()}


@cache
def resumed() -> bytes:
    from isrlearn import ChunkedRows, ISRMean
    from isrlearn.io import Resumed

    labels = ["a", "b"] * 3
    rows = ChunkedRows.from_arrays(FEATURES, labels, environments=[0, 0, 0, 1, 1, 1])
    with tempfile.TemporaryDirectory() as folder:
        ISRMean(1).fit(Resumed(rows, folder))
        return max(contents(Path(folder)).values(), key=len)


@cache
def moments() -> dict:
    from isrlearn.moments import CellMoments

    return CellMoments.from_rows(FEATURES, ["a", "b"] * 3, [0, 0, 0, 1, 1, 1]).to_arrays()


@cache
def subspace() -> dict:
    from isrlearn.subspace import Subspace

    direction = np.array([[1.0, 0.0]])
    return Subspace.orthogonal(direction, centre=np.zeros(2)).to_arrays()


@cache
def checkpoint() -> tuple[dict, bytes]:
    import torch

    from isrlearn.networks._checkpoints import save_tensors

    model = torch.nn.Linear(2, 2)
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    tensors |= {"optimizer.0.step": torch.tensor(1.0)}
    notes = {"run": {"settings": {"epochs": 1}}, "state": {"epoch": 1, "epochs": []}}
    with tempfile.TemporaryDirectory() as folder:
        save_tensors(Path(folder) / "c", tensors, notes)
        return split_safetensors((Path(folder) / "c").read_bytes())


CARD = {
    "protocol": 1,
    "backbone": "resnet50",
    "classes": ["landbird", "waterbird"],
    "environments": ["land", "water"],
    "inputs": {"size": 128},
}
SUMMARY = {
    "run": {"protocol": 1, "settings": {"epochs": 1}},
    "epochs": [{"epoch": 1, "loss": 0.5, "average": 0.9, "worst_group": 0.8}],
}
PLAN = b"""backbone = "bert"
[inputs]
max_length = 64
[training]
epochs = 3
batch_size = 32
learning_rate = 1e-5
optimizer = "adamw"
groupdro.adjustment = 1.0
[heads]
pca = 20
C = [0.1, 1.0]
isr_directions = ["auto", 1]
"""
WATERBIRDS = {
    "metadata.csv": b"img_filename,y,place,split\ngull.jpg,1,0,2\ntern.jpg,0,1,0\n",
    "gull.jpg": b"",
    "tern.jpg": b"",
}
CELEBA = {
    "list_attr_celeba.csv": b"image_id,Blond_Hair,Male\n1.jpg,1,-1\n2.jpg,-1,1\n",
    "list_eval_partition.csv": b"image_id,partition\n1.jpg,0\n2.jpg,1\n",
    "img_align_celeba/1.jpg": b"",
    "img_align_celeba/2.jpg": b"",
}
CELEBA_TEXT = {
    "list_attr_celeba.txt": b"2\nBlond_Hair Male\n1.jpg  1 -1\n2.jpg -1  1\n",
    "list_eval_partition.txt": b"1.jpg 0\n2.jpg 1\n",
    "img_align_celeba/1.jpg": b"",
    "img_align_celeba/2.jpg": b"",
}
MULTINLI = {
    "train.tsv": b"gold_label\tsentence1\tsentence2\nneutral\tIt rains.\tNothing falls.\n"
    b"entailment\tIt rains.\tWater falls.\n",
    "metadata_random.csv": b"gold_label,split\n2,0\n1,2\n",
}
TABLE = {"rows.csv": b"text,label,environment,split\nall good,1,web,train\nno way,0,,test\n"}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder by their names."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
