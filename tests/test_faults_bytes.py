"""Damage to every kind of file that is written and read again: found, or harmless.

The law: a file with a changed byte, a missing end, or two blocks that changed places is refused
with the documented error, or gives exactly what the undamaged one gives. Never something else.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_support import N_FAULTS

import isrlearn
from isrlearn import ISR, ISRClassifier, ISRMean, Subspace, _resume
from isrlearn._seal import is_whole
from isrlearn.exceptions import FeatureFileError, ModelFileError, StoreError, TrainingError

pytest.importorskip("safetensors")


class Refused(Exception):
    """What stands for an error where damage means that a result is made again."""


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is made in a folder, read from there, and refused."""

    file: str
    make: Any
    read: Any
    error: Any
    needs: str = "safetensors"


def frozen(value):
    """Return a value as something that can be compared, arrays to the last bit."""
    if isinstance(value, np.ndarray):
        return (
            value.dtype.str,
            value.shape,
            value.tolist() if value.dtype == object else bytes(np.ascontiguousarray(value).data),
        )
    if is_dataclass(value):
        return type(value).__name__, frozen(vars(value))
    if isinstance(value, Mapping):
        return tuple((str(key), frozen(part)) for key, part in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(frozen(part) for part in value)
    return repr(value)


def draw_rows(random):
    y, e = random.integers(0, 2, 160), random.integers(0, 2, 160)
    X = random.normal(size=(160, 4)) + np.stack([2 * y, 2 * e, 0 * y, y * e], axis=1)
    return X, y, e


# --- how each is made and read


def make_features(folder, random):
    from isrlearn.io import Features, FeatureWriter

    X, y, e = draw_rows(random)
    names = {"classes": ("cat", "dog"), "environments": ("day", "night")}
    with FeatureWriter(folder, {"network": "n"}, rows_per_shard=90, **names) as writer:
        for part in np.array_split(np.arange(160), 3):
            writer.add(Features(X[part], y[part], e[part], y[part]))


def read_features(folder):
    from isrlearn.io import FeatureFile

    file = FeatureFile.open(folder)
    about = file.manifest
    return file.read().arrays(), about.classes, about.environments, about.made_of


def fitted(random):
    X, y, e = draw_rows(random)
    return ISRClassifier(ISRMean(1)).fit(X, np.array(["gull", "tern"])[y], environments=e)


def saver(name, model=fitted):
    return lambda folder, random: isrlearn.save(model(random), folder / name)


def draw_subspace(random):
    directions = np.linalg.qr(random.normal(size=(5, 2)))[0].T
    return Subspace(directions, directions, random.normal(size=5), random.uniform(size=5))


def read_model(folder):
    model = isrlearn.load(folder / "m.safetensors")
    return {**vars(model), "schema": model.schema.to_json()}


def read_estimator(folder):
    model = isrlearn.load(folder / "m.skops")
    X = np.random.default_rng(0).normal(size=(20, 4))
    fields = {**model.isr_.moments_.to_arrays(), **model.subspace_.to_arrays()}
    return fields, model.coef_, model.intercept_, model.predict(X), model.get_params(deep=False)


def read_onnx(folder):
    """Other programs read it; `is_whole` is how damage is found."""
    if not is_whole(folder / "m.onnx"):
        raise Refused
    return (folder / "m.onnx").read_bytes()


def make_store(folder, random):
    from bench_support import result_of

    from isrlearn.benchmark import Job, Problem, Store

    jobs = [Job(Problem("3s'", n, seed), m) for n in (2, 3) for seed in range(3) for m in "ab"]
    results = [result_of(job, float(random.choice([0, 0.5, random.uniform()])), 3) for job in jobs]
    Store(folder / "s.sqlite").create().add(results)


def read_store(folder):
    from isrlearn.benchmark import Store

    store = Store(folder / "s.sqlite").check()
    return store.records(), sorted(store.finished())


def make_training(folder, random):
    """A run that was stopped, with a checkpoint, and beside it one that was not."""
    import torch

    from isrlearn.networks import NetworkCard, NetworkRows, TrainingSettings, train

    x = torch.as_tensor(random.normal(size=(32, 3)), dtype=torch.float32)
    rows = NetworkRows(x, (x[:, 0] > 0).long(), torch.arange(32) % 2)
    NetworkCard("m:f", ("cat", "dog"), ("day", "night"), {"size": 8}).save(folder)
    settings = TrainingSettings(epochs=2, batch_size=8, objective="groupdro")

    def stop(epoch, step, n_steps):
        if step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(torch.nn.Linear(3, 2), rows, rows, settings, out=folder / "stopped", watch=stop)
    train(torch.nn.Linear(3, 2), rows, rows, settings, out=folder)
    shutil.copy(folder / "stopped" / "checkpoint.safetensors", folder)


def read_tensors(name):
    def read(folder):
        from isrlearn.networks._checkpoints import load_tensors

        tensors, notes = load_tensors(folder / name)
        return {key: tensor.numpy() for key, tensor in tensors.items()}, notes

    return read


def read_summary(folder):
    from isrlearn.networks._training import _read_summary

    return _read_summary(folder / "training.json")


def read_card(folder):
    from isrlearn.networks._saved import read_card

    return asdict(read_card(folder))


def make_result(folder, random):
    from isrlearn._cli_pages import write_result

    X, y, e = draw_rows(random)
    model = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    page = isrlearn.report(model, X, y, environments=e, title="Gulls")
    write_result(folder / "result.json", page, {"accuracy": 0.5})


def read_result(folder):
    from isrlearn import Report

    return Report.load(folder).to_dict()


def make_sums(folder, random):
    from isrlearn import ChunkedRows
    from isrlearn.io import Resumed

    X, y, e = draw_rows(random)
    ISR(1).fit(Resumed(ChunkedRows.from_chunks([(X, y, e)]), folder / "sums"))
    largest = max((folder / "sums").iterdir(), key=lambda path: path.stat().st_size)
    _resume._save(folder / "sum.npz", _resume._load(largest))  # it knows its name


def read_sums(folder):
    found = _resume._load(folder / "sum.npz")
    if found is None:  # the sum is taken again
        raise Refused
    return _resume._flat(found, "result")


def make_kept(folder, random):
    from isrlearn.reproduce.results import kept

    outcomes = random.uniform(size=30).tolist()
    kept(folder / "r.json", {"seed": 1}, lambda: {"outcomes": outcomes, "rule": "worst group"})


def read_kept(folder):
    from isrlearn.reproduce.results import kept

    def make():
        raise Refused

    found = kept(folder / "r.json", {"seed": 1}, make)
    return {key: found[key] for key in ("identity", "outcomes", "rule")}


FORMATS = {
    "feature manifest": Format("manifest.json", make_features, read_features, FeatureFileError),
    "feature shard": Format(
        "shard-00001.safetensors", make_features, read_features, FeatureFileError
    ),
    "linear model": Format("m.safetensors", saver("m.safetensors"), read_model, ModelFileError),
    "subspace": Format(
        "m.safetensors",
        saver("m.safetensors", draw_subspace),
        lambda folder: isrlearn.load(folder / "m.safetensors").to_arrays(),
        ModelFileError,
    ),
    "estimator": Format("m.skops", saver("m.skops"), read_estimator, ModelFileError, "skops"),
    "onnx": Format("m.onnx", saver("m.onnx"), read_onnx, Refused, "onnx"),
    "store": Format("s.sqlite", make_store, read_store, StoreError),
    "network card": Format("network.json", make_training, read_card, TrainingError, "torch"),
    "weights": Format(
        "model.safetensors",
        make_training,
        read_tensors("model.safetensors"),
        TrainingError,
        "torch",
    ),
    "checkpoint": Format(
        "checkpoint.safetensors",
        make_training,
        read_tensors("checkpoint.safetensors"),
        TrainingError,
        "torch",
    ),
    "training": Format("training.json", make_training, read_summary, TrainingError, "torch"),
    "result": Format("result.json", make_result, read_result, ValueError, "jinja2"),
    "sums": Format("sum.npz", make_sums, read_sums, Refused),
    "kept result": Format("r.json", make_kept, read_kept, Refused, "torch"),
}


# --- damage


def other_byte(data, random):
    """A byte that is another."""
    data[int(random.integers(len(data)))] ^= int(random.integers(1, 256))


def cut(data, random):
    """The end is missing."""
    del data[int(random.integers(len(data))) :]


def swapped(data, random):
    """Two blocks that changed places."""
    size = int(random.integers(1, min(64, len(data) // 3)))
    first, second = sorted(random.choice(len(data) // size, 2, replace=False) * size)
    one, other = data[first : first + size], data[second : second + size]
    data[first : first + size], data[second : second + size] = other, one


DAMAGES = {other_byte: 4 * N_FAULTS, cut: N_FAULTS, swapped: 2 * N_FAULTS}


def opinion(kind, folder, expected):
    """Return "found" or "harmless"; fail if damage gives other values, or another error."""
    try:
        value = kind.read(folder)
    except kind.error as error:
        assert type(error) in (kind.error, ValueError), repr(error)
        return "found"
    assert frozen(value) == expected, "silently wrong"
    return "harmless"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_found_or_harmless(name, tmp_path, random):
    kind = FORMATS[name]
    pytest.importorskip(kind.needs, exc_type=ImportError)
    whole, folder = tmp_path / "whole", tmp_path / "damaged"
    whole.mkdir()
    kind.make(whole, random)
    expected = frozen(kind.read(whole))
    assert opinion(kind, whole, expected) == "harmless"
    content = (whole / kind.file).read_bytes()
    counts = {}
    for damage, n_trials in DAMAGES.items():
        for _ in range(n_trials):
            state = random.bit_generator.state["state"]
            data = bytearray(content)
            damage(data, random)
            if bytes(data) == content:  # the blocks were alike
                continue
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            (folder / kind.file).write_bytes(data)
            try:
                found = damage.__name__, opinion(kind, folder, expected)
            except BaseException:
                print(f"{name}: {damage.__name__} with state {state}")
                keep_for_a_look(name, data)
                raise
            counts[found] = counts.get(found, 0) + 1
            left = sorted(path.name for path in folder.iterdir())
            assert left == sorted(path.name for path in whole.iterdir()), "reading wrote something"
    print(f"{name}, {len(content)} bytes: {counts}")
    assert sum(counts.values()) > sum(DAMAGES.values()) / 2
    if name not in ("store", "sums"):  # bytes of pages and of zip archives that nobody reads
        assert {opinion for _, opinion in counts} == {"found"}  # the seal covers every byte


def keep_for_a_look(name, data):
    place = Path("build") / "damaged"
    place.mkdir(parents=True, exist_ok=True)
    (place / name.replace(" ", "-")).write_bytes(data)


def test_the_law_can_fail(tmp_path, random):
    """Without a seal a changed number is read as it stands: the test above would see it."""
    kind = Format("r.npy", None, lambda folder: np.load(folder / "r.npy"), ValueError)
    np.save(tmp_path / "r.npy", random.normal(size=500))
    expected = frozen(kind.read(tmp_path))
    data = bytearray((tmp_path / "r.npy").read_bytes())
    data[-9] ^= 1
    (tmp_path / "r.npy").write_bytes(data)
    with pytest.raises(AssertionError, match="silently wrong"):
        opinion(kind, tmp_path, expected)
