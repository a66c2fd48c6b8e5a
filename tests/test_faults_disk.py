"""A full disk and a read-only folder: one line that names the file, and all is as it was.

A limit on the size of files stands for a full disk everywhere: the system refuses the write that
passes it, in the midst of a file. Where file systems may be mounted, a small one is really filled.
"""

import errno
import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from command_support import CALLS, COMMANDS, arguments, skip_without_torch, snapshot
from fault_support import THOROUGH, litter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and modes of Linux")
pytest.importorskip("safetensors")

WRITING = [command for command in COMMANDS if "{out}" in CALLS[command]]
SLOW = ("demo", "compare", "repair", "reproduce table1", "reproduce partial-labels")
SLOW += ("bench plot", "bench complexity")
"""Left to `make faults`."""
FORCED = ("demo", "compare", "fit", "predict", "export", "diagnose", "report", "repair")
FORCED += ("bench plot", "bench export", "bench complexity")
SAFE = ("s as it was", "What it has is safe", "cannot be made")
SELECTED = [c for c in WRITING if THOROUGH or c not in SLOW]


@pytest.fixture(scope="module")
def sizes(processes, fault_world, tmp_path_factory):
    """Return the names and sizes of what a command writes."""
    known = {}

    def find(command):
        if command not in known:
            out = tmp_path_factory.mktemp("undisturbed") / "out"
            end = processes.run(*arguments(command, fault_world, out=out))
            assert end.code == 0, end.text
            known[command] = {
                str(p.relative_to(out)): p.stat().st_size for p in out.rglob("*") if p.is_file()
            }
        return known[command]

    return find


def prepared(command, out, sizes):
    """Fill a folder with what may have been there before; return the words that allow for it."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "earlier.txt").write_bytes(b"mine")
    if command not in FORCED:
        return []
    for name in sizes:
        if not name.endswith(".sqlite"):  # which is added to, not replaced
            (out / name).write_bytes(b"earlier")
    return ["--force"]


def check_refusal(end, out, what=SAFE):
    assert end.code == 2, end.text
    line = end.lines[-1]
    assert line.startswith("isrlearn: "), end.text
    assert str(out) in line and ".part" not in line, line
    assert any(words in line for words in what), line
    assert "Traceback" not in end.text


def check_kept(command, out, before):
    """Nothing is lost; what a command that goes on has finished may have been added."""
    assert litter(out) == []
    found = snapshot(out)
    if command in FORCED and command != "bench complexity":
        assert found == before
    else:
        assert before.items() <= found.items()


@pytest.mark.parametrize("command", SELECTED)
def test_a_write_that_fails_is_one_line(command, processes, fault_world, sizes, tmp_path, random):
    skip_without_torch(command)
    out = tmp_path / "out"
    force = prepared(command, out, sizes(command))
    words = [*arguments(command, fault_world, out=out), *force]
    before = snapshot(out)
    for limit in random.integers(0, max(sizes(command).values()), 4 if THOROUGH else 1):
        print(f"limit {limit}")
        check_refusal(processes.run(*words, limit=int(limit)), out)
        check_kept(command, out, before)
    last = processes.run(*words)
    assert last.code == 0, last.text
    assert litter(out) == []
    assert set(sizes(command)) <= set(snapshot(out))


@contextmanager
def small_disk(folder, n_bytes):
    """Mount a small file system, and yield a function that makes it larger or read-only."""
    folder.mkdir()

    def mount(*words):
        subprocess.run(["mount", *words, str(folder)], check=True, capture_output=True)

    try:
        mount("-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("file systems cannot be mounted here")
    try:
        yield lambda options: mount("-o", f"remount,{options}")
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("command", SELECTED if THOROUGH else ["fit", "extract", "bench run"])
def test_a_full_disk_is_one_line(command, processes, fault_world, sizes, tmp_path, random):
    skip_without_torch(command)
    page = resource.getpagesize()
    with small_disk(tmp_path / "disk", 2**22) as remount:
        out = tmp_path / "disk" / "out"
        force = prepared(command, out, sizes(command))
        words = [*arguments(command, fault_world, out=out), *force]
        before = snapshot(out)
        # Room for less than all that will be there, besides what is there already.
        free = int(random.integers(0, max(1, sum(sizes(command).values()) // page)))
        fill = tmp_path / "disk" / "fill"
        with fill.open("wb") as file:
            usage = shutil.disk_usage(tmp_path / "disk")
            file.write(b"\0" * max(0, usage.free - free * page))
        end = processes.run(*words)
        if end.code:  # files that are replaced one by one may fit after all
            check_refusal(end, out)
            check_kept(command, out, before)
        remount("size=64m")
        last = processes.run(*words)
        assert last.code == 0, last.text
        assert litter(out) == []


@pytest.mark.parametrize("command", SELECTED)
def test_a_read_only_folder_is_one_line(command, processes, fault_world, sizes, tmp_path):
    skip_without_torch(command)
    out = tmp_path / "out"
    force = prepared(command, out, sizes(command))
    words = [*arguments(command, fault_world, out=out), *force]
    before = snapshot(out)
    out.chmod(0o555)
    try:
        end = processes.run(*words, powerless=True)
    finally:
        out.chmod(0o755)
    check_refusal(end, out)
    assert snapshot(out) == before


@pytest.mark.parametrize("command", WRITING if THOROUGH else ["export", "bench run"])
def test_a_read_only_disk_is_one_line(command, processes, fault_world, sizes, tmp_path):
    skip_without_torch(command)
    with small_disk(tmp_path / "disk", 2**22) as remount:
        out = tmp_path / "disk" / "out"
        force = prepared(command, out, sizes(command))
        before = snapshot(out)
        remount("ro")
        end = processes.run(*arguments(command, fault_world, out=out), *force)
        remount("rw")
        check_refusal(end, out)
        assert snapshot(out) == before


@pytest.mark.parametrize("n_before", range(3))
def test_a_disk_that_is_full_only_when_it_is_asked_to_write(n_before, tmp_path, monkeypatch):
    """Quotas and network disks may refuse as late as that; files that belong together stay so."""
    from isrlearn._cli_support import written_together

    paths = [tmp_path / name for name in ("model", "page", "table")]
    for path in paths:
        path.write_text("earlier")
    real, handles = os.fsync, []

    def full(handle):
        handles.append(handle)
        if len(handles) > n_before:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        real(handle)

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="quota"), written_together(*paths) as places:
        for place in places:
            place.write_text("new")
    assert snapshot(tmp_path) == {path.name: b"earlier" for path in paths}


# --- the same of functions


@contextmanager
def limited(n_bytes):
    """Let no file of this process become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def draw_model(random):
    from isrlearn import ISRClassifier, ISRMean

    X = random.normal(size=(200, 6))
    y, e = random.integers(0, 2, 200), random.integers(0, 2, 200)
    return ISRClassifier(ISRMean(1)).fit(X + 2 * y[:, None], y, environments=e), X


@pytest.mark.parametrize("ending", ["safetensors", "skops", "onnx"])
def test_saving_where_there_is_no_room(ending, tmp_path, random):
    import isrlearn

    if ending != "safetensors":
        pytest.importorskip(ending, exc_type=ImportError)
    model, _ = draw_model(random)
    path = tmp_path / f"model.{ending}"
    isrlearn.save(model, path)
    before = path.read_bytes()
    other, _ = draw_model(random)
    limit = int(random.integers(0, len(before) // 2))
    with limited(limit), pytest.raises(OSError, match=rf"model\.{ending}'?$") as failed:
        isrlearn.save(other, path)
    assert failed.value.filename == str(path)
    assert snapshot(tmp_path) == {path.name: before}
    isrlearn.save(other, path)
    assert path.read_bytes() != before
    assert litter(tmp_path) == []


def test_a_writer_of_features_without_room_goes_on_later(tmp_path, random):
    from isrlearn.io import FeatureFile, Features, FeatureWriter

    X = random.normal(size=(40, 50))
    rows = Features(X, np.arange(40) % 2, np.arange(40) % 3)

    def write():
        with FeatureWriter(tmp_path, {"made": "of"}, rows_per_shard=10) as writer:
            for begin in range(writer.n_written, 40, 10):
                part = slice(begin, begin + 10)
                columns = {n: a[part] for n, a in rows.arrays().items()}
                with limited(300 if begin == 20 and not FeatureWriter.room else 2**30):
                    writer.add(Features(**columns))

    FeatureWriter.room = False
    try:
        with pytest.raises(OSError, match=r"shard-00002\.safetensors") as failed:
            write()
        assert failed.value.filename == str(tmp_path / "shard-00002.safetensors")
        assert len(FeatureFile.open(tmp_path)) == 20
        assert litter(tmp_path) == []
        FeatureWriter.room = True
        write()
    finally:
        del FeatureWriter.room
    np.testing.assert_array_equal(FeatureFile.open(tmp_path).read().features, X)


def test_a_store_without_room_keeps_what_it_has(store, random):
    from bench_support import result_of

    from isrlearn.benchmark import Job, Problem
    from isrlearn.exceptions import StoreError

    jobs = [Job(Problem("3", 2, seed), "isr") for seed in range(200)]
    store.add([result_of(jobs[0])])
    limit = store.path.stat().st_size + int(random.integers(0, 4096))
    with limited(limit), pytest.raises(StoreError, match="What it has is safe"):
        store.add(result_of(job) for job in jobs)
    assert store.check().finished() == {jobs[0].key}
    assert litter(store.path.parent) == []
    assert store.add(result_of(job) for job in jobs) == 199


def test_a_store_without_hard_links_is_made_wholly_or_not(tmp_path, monkeypatch):
    from isrlearn.benchmark import Store
    from isrlearn.exceptions import StoreError

    def no_links(*paths):
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (room, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        )
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", no_links)
    room = 5000  # for less than the copy
    with limited(2**20), pytest.raises(StoreError, match="cannot be made"):
        Store(tmp_path / "s.sqlite").create()
    assert list(tmp_path.iterdir()) == []
    room = 2**20
    with limited(room):
        assert Store(tmp_path / "s.sqlite").create().records() == []
    assert litter(tmp_path) == []


def test_sums_without_room_are_taken_again(tmp_path, random):
    from isrlearn import ChunkedRows, ISRClassifier, ISRMean
    from isrlearn.io import Resumed

    _, X = draw_model(random)
    y, e = random.integers(0, 2, 200), random.integers(0, 2, 200)
    rows = ChunkedRows.from_chunks([(X[:90], y[:90], e[:90]), (X[90:], y[90:], e[90:])])
    expected = ISRClassifier(ISRMean(1)).fit(rows)
    with limited(int(random.integers(0, 500))), pytest.raises(OSError, match=str(tmp_path)):
        ISRClassifier(ISRMean(1)).fit(Resumed(rows, tmp_path / "sums"))
    assert litter(tmp_path) == []
    again = ISRClassifier(ISRMean(1)).fit(Resumed(rows, tmp_path / "sums"))
    np.testing.assert_array_equal(again.coef_, expected.coef_)


def test_training_without_room_goes_on_later(tmp_path, random):
    torch = pytest.importorskip("torch")
    from isrlearn.networks import NetworkRows, TrainingSettings, train

    x = torch.as_tensor(random.normal(size=(48, 30)), dtype=torch.float32)
    rows = NetworkRows(x, (x[:, 0] > 0).long(), torch.arange(48) % 2)

    def run(folder):
        torch.manual_seed(0)
        model = torch.nn.Linear(30, 2)
        train(model, rows, rows, TrainingSettings(epochs=2, batch_size=16), out=folder)
        return model.weight.detach().numpy()

    expected = run(tmp_path / "whole")
    with limited(int(random.integers(0, 250))), pytest.raises(OSError, match="safetensors"):
        run(tmp_path / "later")
    assert litter(tmp_path) == []
    np.testing.assert_array_equal(run(tmp_path / "later"), expected)
    assert set(snapshot(tmp_path / "later")) == set(snapshot(tmp_path / "whole"))
