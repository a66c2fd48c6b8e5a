"""Two processes on one output, locks of dead processes, and clocks that jump."""

import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest
from command_support import TRUST, arguments, skip_without_torch, snapshot
from fault_support import THOROUGH, litter

from isrlearn import _files
from isrlearn._files import PREFIX, SUFFIX, only_user, staging, sweep, write_whole

pytestmark = pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")

HOLD = """
import pathlib, time
from isrlearn._files import only_user, staging
with {how}(pathlib.Path({folder!r})):
    pathlib.Path({ready!r}).touch()
    time.sleep(600)
"""


def hold(processes, how, folder, ready):
    """Start a process that holds a folder until it is killed; return its number."""
    code = HOLD.format(how=how, folder=str(folder), ready=str(ready))
    pid = processes.start(code=code)
    end = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    ready.unlink()
    return pid


def kill(processes, pid):
    os.kill(pid, signal.SIGKILL)
    assert processes.end(pid).code == -signal.SIGKILL


# --- what is aside


def test_what_a_dead_process_left_is_swept_and_what_a_live_one_has_is_not(processes, tmp_path):
    ready = tmp_path / "ready"
    dead = hold(processes, "staging", tmp_path, ready)
    live = hold(processes, "staging", tmp_path, ready)
    assert len(litter(tmp_path)) == 2
    write_whole(tmp_path / "a.txt", lambda path: path.write_text("a"))
    assert len(litter(tmp_path)) == 2  # both live
    kill(processes, dead)
    write_whole(tmp_path / "a.txt", lambda path: path.write_text("b"))
    assert len(litter(tmp_path)) == 1
    kill(processes, live)
    sweep(tmp_path)
    assert snapshot(tmp_path) == {"a.txt": b"b"}


@pytest.mark.parametrize("rights", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_rights(tmp_path, rights):
    path = tmp_path / "a.txt"
    path.write_text("a")
    path.chmod(rights)
    write_whole(path, lambda place: place.write_text("b"))
    assert path.read_text() == "b"
    assert path.stat().st_mode & 0o777 == rights
    fresh, plain = tmp_path / "b.txt", tmp_path / "c.txt"
    write_whole(fresh, lambda place: place.write_text("b"))
    plain.write_text("c")
    assert fresh.stat().st_mode == plain.stat().st_mode


def test_what_somebody_else_called_so_is_not_touched(tmp_path):
    for name in (".isrlearn-notes", "x.part", f"{PREFIX}file{SUFFIX}"):
        (tmp_path / name).write_text("mine")
    (tmp_path / ".isrlearn-kept").mkdir()
    write_whole(tmp_path / "a.txt", lambda path: path.write_text("a"))
    assert snapshot(tmp_path).keys() == {
        ".isrlearn-notes",
        "x.part",
        f"{PREFIX}file{SUFFIX}",
        ".isrlearn-kept",
        "a.txt",
    }


def test_a_new_folder_that_another_process_sweeps_is_not_used(tmp_path, monkeypatch):
    """The other one may come between the making of a folder and its being held."""
    made = []
    real = _files.tempfile.mkdtemp

    def swept_at_once(*names):
        folder = real(*names)
        made.append(folder)
        if len(made) == 1:
            shutil.rmtree(folder)
        elif len(made) == 2:
            held.append(os.open(folder, os.O_RDONLY))
            _files.flock(held[0], _files.LOCK_EX | _files.LOCK_NB)  # about to be swept
        return folder

    held = []
    monkeypatch.setattr(_files.tempfile, "mkdtemp", swept_at_once)
    try:
        with staging(tmp_path) as stage:
            assert [str(stage)] == made[2:]
    finally:
        os.close(held[0])
    assert not stage.exists()


def test_whoever_comes_last_wins_and_both_are_whole(processes, tmp_path):
    """Many writers of one path: at any moment a reader sees the whole of one of them."""
    path = tmp_path / "out.txt"
    code = (
        "import pathlib\n"
        "from isrlearn._files import write_whole\n"
        f"path = pathlib.Path({str(path)!r})\n"
        "for _ in range(40):\n"
        "    write_whole(path, lambda place: place.write_text({letter!r} * 5000))\n"
    )
    pids = [processes.start(code=code.replace("{letter!r}", repr(letter))) for letter in "ab"]
    ends = []
    waiting = threading.Thread(target=lambda: ends.extend(processes.end(pid) for pid in pids))
    waiting.start()
    while waiting.is_alive():
        if path.exists():
            assert path.read_text() in ("a" * 5000, "b" * 5000)
    waiting.join()
    assert [end.code for end in ends] == [0, 0], ends
    assert path.read_text() in ("a" * 5000, "b" * 5000)
    assert litter(tmp_path) == []


# --- one folder, one writer


def test_a_second_writer_is_refused_until_the_first_is_dead(processes, tmp_path):
    pytest.importorskip("safetensors")
    from isrlearn.exceptions import FeatureFileError
    from isrlearn.io import FeatureFile, Features, FeatureWriter

    out = tmp_path / "features"
    out.mkdir()
    holder = hold(processes, "only_user", out, tmp_path / "ready")
    with pytest.raises(FeatureFileError, match="another process"), FeatureWriter(out, {}):
        pass
    kill(processes, holder)
    with FeatureWriter(out, {}) as writer:
        writer.add(Features(np.eye(3), np.arange(3), np.arange(3)))
    assert len(FeatureFile.open(out)) == 3


@pytest.mark.parametrize("command", ["train", "extract"])
def test_a_second_run_is_refused_until_the_first_is_dead(command, processes, fault_world, tmp_path):
    skip_without_torch(command)
    out = tmp_path / "out"
    out.mkdir()
    holder = hold(processes, "only_user", out, tmp_path / "ready")
    words = arguments(command, fault_world, out=out)
    second = processes.run(*words)
    assert second.code == 2
    assert "is being written by another process" in second.lines[-1]
    assert set(snapshot(out)) <= {"network.json"}
    kill(processes, holder)
    assert processes.run(*words).code == 0


def test_a_lock_is_told_within_one_process_too(tmp_path):
    with only_user(tmp_path) as first, only_user(tmp_path) as second:
        assert (first, second) == (True, False)
    with only_user(tmp_path) as again:
        assert again


def test_a_lock_that_is_given_back_is_not_kept_by_a_child(tmp_path):
    """A process that was forked while the folder was held, as readers of a loader are."""
    end, begin = os.pipe()
    with only_user(tmp_path):
        child = os.fork()
        if child == 0:
            os.close(begin)
            os.read(end, 1)
            os._exit(0)
    try:
        with only_user(tmp_path) as again:
            assert again
    finally:
        os.close(begin)
        os.close(end)
        os.waitpid(child, 0)


# --- two at once


def test_two_runs_on_one_store_lose_and_double_nothing(processes, tmp_path):
    from isrlearn.benchmark import Store

    words = ["bench", "run", "--examples", "3", "--methods", "oracle", "isr-mean", "--jobs", 1]
    words += ["--n-environments", 2, 3, "--seeds", 8 if THOROUGH else 3]
    alone, both = tmp_path / "alone.sqlite", tmp_path / "both.sqlite"
    assert processes.run(*words, "--store", alone).code == 0
    pids = [processes.start(*words, "--store", both) for _ in range(2)]
    ends = [processes.end(pid) for pid in pids]
    assert [end.code for end in ends] == [0, 0], ends

    def rows(path):
        found = Store(path).check().records()
        return [tuple(v for k, v in row.items() if k != "seconds") for row in found]

    assert rows(both) == rows(alone)
    assert litter(tmp_path) == []


def test_two_fits_to_one_file_leave_a_whole_one(processes, fault_world, tmp_path):
    pytest.importorskip("safetensors")
    columns = ("--label", "label", "--environment", "environment")
    words = ["fit", fault_world["rows"], *columns]
    assert processes.run(*words, "--out", tmp_path / "alone.safetensors").code == 0
    both = tmp_path / "both.safetensors"
    pids = [processes.start(*words, "--out", both, "--force") for _ in range(2)]
    ends = [processes.end(pid) for pid in pids]
    assert [end.code for end in ends] == [0, 0], ends
    assert both.read_bytes() == (tmp_path / "alone.safetensors").read_bytes()
    assert litter(tmp_path) == []


def test_a_second_fit_in_chunks_is_refused_until_the_first_is_dead(
    processes, fault_world, tmp_path
):
    """They would share the folder of sums, and the first to end removes it."""
    if "features" not in fault_world:
        pytest.skip("needs torch")
    words = ["fit", fault_world["features"], "--stream"]
    small = {"small_steps": True}
    assert processes.run(*words, "--out", tmp_path / "alone.safetensors", **small).code == 0
    both = tmp_path / "both.safetensors"
    sums = tmp_path / ".both.safetensors.passes"
    sums.mkdir()
    holder = hold(processes, "only_user", sums, tmp_path / "ready")
    second = processes.run(*words, "--out", both, **small)
    assert second.code == 2
    assert "is being fitted by another process" in second.lines[-1]
    kill(processes, holder)
    for _ in range(5 if THOROUGH else 1):
        pids = [processes.start(*words, "--out", both, "--force", **small) for _ in range(2)]
        ends = [processes.end(pid) for pid in pids]
        assert 0 in [end.code for end in ends], ends
        assert all(end.code == 0 or "another process" in end.text for end in ends), ends
        assert both.read_bytes() == (tmp_path / "alone.safetensors").read_bytes()
        assert litter(tmp_path) == []


# --- clocks


@pytest.mark.parametrize("command", ["fit", "train", "bench run", "extract"])
def test_a_clock_that_jumps_changes_nothing(command, processes, fault_world, tmp_path, random):
    if command != "bench run":
        skip_without_torch("train")
    from test_faults_kill import result_of

    words = {
        "fit": ["fit", fault_world.get("features"), "--stream", "--force"],
        "extract": ["extract", fault_world.get("network"), *TRUST.split(), "--out", "{out}"],
    }
    words["fit"] += ["--out", "{out}/m.safetensors"]
    for name in ("train", "bench run"):
        words[name] = arguments(name, fault_world, out="{out}")
    if command == "extract":
        words["extract"] += ["--data", fault_world["images"]]

    def run(out, **fault):
        given = [str(word).replace("{out}", str(out)) for word in words[command]]
        return processes.run(*given, below=out, small_steps=True, **fault)

    whole = run(tmp_path / "whole")
    assert whole.code == 0, whole.text
    out = tmp_path / "jumped"
    seed = int(random.integers(2**31))
    killed = run(out, clock=seed, kill_at=int(random.integers(1, whole.n_steps + 1)))
    assert killed.code in (0, -signal.SIGKILL), killed.text
    if killed.code:
        last = run(out, clock=seed + 1)
        assert last.code == 0, last.text
    assert result_of(command, out) == result_of(command, tmp_path / "whole")
    assert litter(out) == []


def test_rows_are_known_by_content_as_well_as_by_time(tmp_path, random):
    """Sums of rows that were replaced are not used, even if the time of the file is the same."""
    from isrlearn._cli_fit import _identity

    file, folder = tmp_path / "rows.npz", tmp_path / "features"
    folder.mkdir()
    for path, data in ((file, file), (folder / "shard", folder)):
        path.write_bytes(random.bytes(3_000_000))
        first, about = _identity(data), path.stat()
        assert _identity(data) == first
        content = bytearray(path.read_bytes())
        for place in (0, len(content) - 1):
            changed = content.copy()
            changed[place] ^= 1
            path.write_bytes(changed)
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
            assert _identity(data) != first
        path.write_bytes(content)
        assert _identity(data) != first  # another time, so perhaps another place was changed
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert _identity(data) == first
