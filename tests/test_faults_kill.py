"""SIGKILL at random moments: nothing earlier is lost, nothing half-written is seen.

A moment is a step that changes the disk (an open, rename, link, sync, ... below the output), a byte
in the midst of a write, or a time. `make faults` takes 50 of them, `make test` ten.
"""

import os
import shutil
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command_support import NEED_TORCH, TRUST, arguments, skip_without_torch, snapshot
from fault_support import N_FAULTS, litter

from isrlearn.benchmark import Store

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
pytest.importorskip("safetensors")

KILLED = ("bench run", "train", "extract", "fit", "fit in chunks", "export", "bench export")
FORCED = ("fit", "fit in chunks", "export", "bench export")
"""Commands that write at their end, over what is there if they are told to."""
SMALL = {"small_steps": True}


@dataclass(frozen=True)
class Undisturbed:
    """What a command does if nothing happens to it."""

    result: dict
    n_steps: int
    n_bytes: int
    seconds: float


def words_of(command, files, out):
    if command == "fit":
        columns = ("--label", "label", "--environment", "environment")
        words = ["fit", files["rows"], *columns, "--out", out / "m.safetensors"]
    elif command == "fit in chunks":
        words = ["fit", files["features"], "--stream", "--out", out / "m.safetensors"]
    elif command == "extract":
        words = ["extract", files["network"], "--data", files["images"], *TRUST.split()]
        words += ["--batch-size", 64, "--out", out]
    else:
        words = arguments(command, files, out=out)
        words += ["--batch-size", 36] if command == "train" else []
    return [*words, "--force"] if command in FORCED else words


def result_of(command, out):
    """What is compared of an output: all bytes, but for the times in a store."""
    if command != "bench run":
        return snapshot(out)
    rows = Store(out / "s.sqlite").check().records()
    return {tuple(v for k, v in row.items() if k != "seconds") for row in rows}


@pytest.fixture(scope="module")
def undisturbed(processes, fault_world, tmp_path_factory):
    known = {}

    def find(command):
        if command not in known:
            out = tmp_path_factory.mktemp("undisturbed") / "out"
            begin = time.monotonic()
            end = processes.run(*words_of(command, fault_world, out), **SMALL, below=out)
            seconds = time.monotonic() - begin
            assert end.code == 0, end.text
            assert litter(out) == []
            n_bytes = max(path.stat().st_size for path in out.rglob("*"))
            known[command] = Undisturbed(result_of(command, out), end.n_steps, n_bytes, seconds)
        return known[command]

    return find


def moment(random, whole):
    """Draw when to be killed: before a step, within a write, or after some time."""
    kind = random.choice(["step", "byte", "time"], p=[0.6, 0.25, 0.15])
    if kind == "step":
        return {"kill_at": int(random.integers(1, whole.n_steps + 1))}
    if kind == "byte":
        return {"limit": int(random.integers(0, whole.n_bytes)), "deadly": True}
    return {"after": float(random.uniform(0, whole.seconds))}


def killed(processes, words, out, after=None, **fault):
    """Run a command until it is killed; return whether it was."""
    pid = processes.start(*words, below=out, **SMALL, **fault)
    if after is not None:
        threading.Timer(after, _kill, [pid]).start()
    end = processes.end(pid)
    assert end.code in (0, -signal.SIGKILL, -signal.SIGXFSZ), end.text
    return end.code != 0


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it was faster
        return


def check_seen(command, out, before, whole, aside):
    """What is there under a name of its own is what was there before, or is right."""
    copy = aside / "copy"
    shutil.copytree(out, copy)  # looking at a store mends it, which is for the next run to do
    if command == "bench run":
        if (copy / "s.sqlite").exists():
            assert result_of(command, copy) <= whole.result
        return
    seen = {n: data for n, data in snapshot(copy).items() if not n.startswith(".") and data}
    if command == "extract" and "manifest.json" in seen:
        check_shorter(copy, whole)
    elif command == "train":
        check_training(seen, whole)
    else:
        for name, data in seen.items():
            assert data in (before.get(name), whole.result.get(name)), name


def check_shorter(folder, whole):
    """A feature file that is not finished has the first of the rows."""
    from isrlearn.io import FeatureFile

    for place, shard in enumerate(FeatureFile.open(folder).shards):
        assert (folder / shard.name).read_bytes() == whole.result[shard.name]
        assert shard.name == f"shard-{place:05d}.safetensors"


def check_training(seen, whole):
    """Weights are those of an epoch, a checkpoint is sealed, the rest is as in the end."""
    import tempfile

    from isrlearn._seal import is_whole

    for name, data in seen.items():
        if name in ("network.json", "training.json", "earlier.txt"):
            assert data == {**whole.result, "earlier.txt": b"mine"}[name]
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / name
                path.write_bytes(data)
                assert is_whole(path), name


def share(command):
    """How many of the kills are this command's; every command is killed at least once."""
    place = KILLED.index(command)
    return max(1, N_FAULTS // len(KILLED) + (place < N_FAULTS % len(KILLED)))


@pytest.mark.parametrize("command", KILLED)
def test_killed_at_any_moment(command, processes, fault_world, undisturbed, tmp_path, random):
    if command.split()[0] in NEED_TORCH:
        skip_without_torch(command.split()[0])
    if command in ("export", "bench export"):
        skip_without_torch(command)
    if command == "fit in chunks" and "features" not in fault_world:
        pytest.skip("needs torch")
    whole = undisturbed(command)
    inputs = snapshot(fault_world["rows"].parent)
    n_killed = 0
    for trial in range(50 * share(command)):
        folder = tmp_path / str(trial)
        out = folder / "out"
        out.mkdir(parents=True)
        before = {"earlier.txt": b"mine"}
        if command in FORCED and random.uniform() < 0.5:
            before |= dict.fromkeys(whole.result, b"what an earlier run wrote")
        for name, data in before.items():
            (out / name).write_bytes(data)
        words = words_of(command, fault_world, out)
        for _ in range(1 + (random.uniform() < 0.3)):  # sometimes twice in a row
            if n_killed < share(command):
                when = moment(random, whole)
                print(command, when)
                n_killed += killed(processes, words, out, **when)
                check_seen(command, out, before, whole, folder)
                shutil.rmtree(folder / "copy")
                assert (out / "earlier.txt").read_bytes() == b"mine"
        last = processes.run(*words, **SMALL, below=out)
        assert last.code == 0, last.text
        assert litter(folder) == []
        (out / "earlier.txt").unlink()
        assert result_of(command, out) == whole.result
        if n_killed == share(command):
            break
    assert n_killed == share(command)
    assert snapshot(fault_world["rows"].parent) == inputs


def test_every_moment_is_hit(random):
    """The law above would hold if nothing were killed: the draws reach every kind of moment."""
    whole = Undisturbed({}, 30, 1000, 2.0)
    kinds = {next(iter(moment(random, whole))) for _ in range(200)}
    assert kinds == {"kill_at", "limit", "after"}
    steps = [m["kill_at"] for _ in range(2000) if "kill_at" in (m := moment(random, whole))]
    assert np.unique(steps).tolist() == list(range(1, 31))
