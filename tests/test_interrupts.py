"""Ctrl-C at every step that changes the disk: nothing is half-written, old and new never mixed."""

import errno
import io
import json
import os
import random as chance
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_support import (
    CALLS,
    COMMANDS,
    TESTS,
    arguments,
    make_world,
    run,
    skip_without_torch,
    snapshot,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
AT_ONCE = ("demo", "compare", "fit", "predict", "export", "diagnose", "repair")
AT_ONCE += ("report", "bench plot", "bench export")
"""Commands that write at their end: all or nothing."""
GOING_ON = tuple(c for c in COMMANDS if "{out}" in CALLS[c] and c not in AT_ONCE)
"""Commands that go on where they were stopped."""
MOST_STEPS = 4
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "sqlite3.connect")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Steps:
    """Counts what changes files below a folder, and presses Ctrl-C before one of these steps."""

    def __init__(self):
        self.below = None
        self.count = 0
        self.stop_at = None
        self.number = signal.SIGINT
        self.known = False

    def __call__(self, event, details):
        if self.below is None or self.below not in str(details[:1]):
            return
        opened = event == "open" and bool((details[2] or 0) & WRITING)
        if opened or event in CHANGES:
            self.count += 1
            if self.count == self.stop_at:
                signal.raise_signal(self.number)

    @contextmanager
    def watch(self, folder, stop_at=None, number=signal.SIGINT):
        if not self.known:
            sys.addaudithook(self)  # it cannot be removed: without a folder it does nothing
            self.known = True
        self.below, self.count, self.stop_at, self.number = str(folder), 0, stop_at, number
        # Processes in the background ignore Ctrl-C, and that is inherited.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield self
        finally:
            self.below = None
            signal.signal(signal.SIGINT, before)


STEPS = Steps()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TESTS)
        yield make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(TESTS)


def some_steps(n_steps, random):
    steps = random.choice(n_steps, size=min(n_steps, MOST_STEPS), replace=False)
    return [int(step) + 1 for step in steps]


def unfinished(folder):
    return [name for name in snapshot(folder) if any(p.startswith(".") for p in Path(name).parts)]


@contextmanager
def quick(command):
    """Let the demonstration compute only once: it is run many times."""
    with pytest.MonkeyPatch.context() as patch:
        if command == "demo":
            from isrlearn import demo

            for name in ("load", "run_models", "make_report"):
                patch.setattr(demo, name, once(getattr(demo, name)))
        yield


def once(function):
    found = []

    def remembered(*values, **options):
        if not found:
            result = function(*values, **options)
            found.append(list(result) if isinstance(result, Iterator) else result)
        return found[0]

    return remembered


def test_every_command_that_writes_is_tested():
    assert {c for c in COMMANDS if "{out}" in CALLS[c]} == {*AT_ONCE, *GOING_ON}


@pytest.mark.parametrize("command", AT_ONCE)
def test_stopped_at_any_step_nothing_or_everything_is_there(
    command, world, tmp_path, random, capsys
):
    skip_without_torch(command)
    out = tmp_path / "out" / "deep"
    words = arguments(command, world, out=out)
    with quick(command):
        with STEPS.watch(tmp_path / "out") as steps:
            assert run(*words) == 0
        names = snapshot(out)
        for path in out.iterdir():
            path.write_text("mine", encoding="utf-8")
        mine = snapshot(out)
        for stop_at in some_steps(steps.count, random):
            capsys.readouterr()
            with STEPS.watch(tmp_path / "new", stop_at):
                code = run(*arguments(command, world, out=tmp_path / "new" / "deep"))
            check_line(capsys, code)
            if code == 130:
                assert not (tmp_path / "new").exists()
            else:  # it came when everything was there
                assert set(snapshot(tmp_path / "new" / "deep")) == set(names)
                remove(tmp_path / "new")
            with STEPS.watch(tmp_path / "out", stop_at):
                code = run(*words, "--force")
            if code == 130:
                assert snapshot(out) == mine
            else:
                assert set(snapshot(out)) == set(names)
                assert not {"mine"} & set(snapshot(out).values())
                for path in out.iterdir():
                    path.write_text("mine", encoding="utf-8")


def check_line(capsys, code):
    assert code in (0, 130)
    if code == 130:
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("isrlearn: interrupted; ")


def remove(folder):
    import shutil

    shutil.rmtree(folder)


def figures(text):
    """Return what a result has but for times and places."""
    found = json.loads(text)
    return {k: v for k, v in found.items() if k not in ("files", "seconds", "known", "done")}


@pytest.mark.parametrize("command", GOING_ON)
def test_stopped_at_any_step_it_goes_on_to_the_same_end(command, world, tmp_path, random, capsys):
    skip_without_torch(command)
    words = arguments(command, world, out=tmp_path / "whole")
    with STEPS.watch(tmp_path / "whole") as steps:
        assert run(*words, "--json") == 0
    expected = figures(capsys.readouterr().out)
    out = tmp_path / "out"
    force = ["--force"] if command == "bench complexity" else []
    for stop_at in sorted(some_steps(steps.count, random))[:2]:
        with STEPS.watch(out, stop_at):
            code = run(*arguments(command, world, out=out), *force)
        check_line(capsys, code)
        assert unfinished(tmp_path) == []
    capsys.readouterr()
    assert run(*arguments(command, world, out=out), *force, "--json") == 0
    assert figures(capsys.readouterr().out) == expected
    # A checkpoint that outlives the end of its training is whole, and not looked at any more.
    left = {name for name in snapshot(out) if not name.endswith("checkpoint.safetensors")}
    assert left == set(snapshot(tmp_path / "whole"))


@pytest.fixture
def number(request):
    """A signal that does what it does by default; nohup lets SIGHUP be ignored."""
    before = signal.signal(request.param, signal.SIG_DFL)
    yield request.param
    signal.signal(request.param, before)


@pytest.mark.parametrize("command", ["fit", "train", "extract", "bench run"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], indirect=True)
def test_what_the_system_sends_is_as_ctrl_c(command, number, world, tmp_path, random, capsys):
    """A queue whose time is over, a container that is stopped, a terminal that is closed."""
    skip_without_torch(command)
    with STEPS.watch(tmp_path / "whole") as steps:
        assert run(*arguments(command, world, out=tmp_path / "whole")) == 0
    words = arguments(command, world, out=tmp_path / "out")
    for stop_at in some_steps(steps.count, random)[:2]:
        capsys.readouterr()
        with STEPS.watch(tmp_path / "out", stop_at, number):
            code = run(*words)
        assert code in (0, 128 + number)
        assert signal.getsignal(number) is signal.SIG_DFL
        if code:
            assert capsys.readouterr().err.splitlines()[-1].startswith("isrlearn: interrupted; ")
        assert unfinished(tmp_path) == []
        if code == 0:
            remove(tmp_path / "out")
    assert run(*words) == 0
    assert set(snapshot(tmp_path / "whole")) <= set(snapshot(tmp_path / "out"))


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_reader_that_is_gone_is_nothing_to_tell(more, world, tmp_path):
    end, begin = os.pipe()
    os.close(end)
    store = arguments("bench status", world, out=tmp_path)
    words = [sys.executable, "-m", "isrlearn", *map(str, store), *more]
    try:
        done = subprocess.run(words, stdout=begin, stderr=subprocess.PIPE, text=True, timeout=300)
    finally:
        os.close(begin)
    assert done.returncode == 141
    assert "isrlearn:" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_standard_output_without_room_is_not_taken_for_a_file(more, world, tmp_path):
    words = [*map(str, arguments("fit", world, out=tmp_path / "out")), *more]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "isrlearn", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("isrlearn: standard output cannot be written")
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
    assert set(snapshot(tmp_path / "out")) == {"m.safetensors", "m.html"}


def test_a_log_without_room_stops_nothing(monkeypatch):
    from isrlearn._cli_support import note

    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    note("half of it is done")


def start(folder, *words):
    """Start a command that tells on standard error what it has imported."""
    return subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "isrlearn", *map(str, words)],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def stop_after(process, module, seconds=0.0):
    """Press Ctrl-C when a module is imported, or later; return the code and the last line."""
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            break
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    lines = [line for line in err.splitlines() if not line.startswith("import time:")]
    return process.returncode, lines


@pytest.mark.parametrize("module", ["cyclopts.exceptions", "isrlearn._cli_support", "isrlearn.cli"])
def test_ctrl_c_at_the_very_start_is_one_line(module, tmp_path):
    code, lines = stop_after(start(tmp_path, "demo"), module)
    assert code == 130
    assert [line.partition(";")[0] for line in lines] == ["isrlearn: interrupted"]
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("command", ["demo", "compare", "fit", "diagnose", "bench plot"])
def test_ctrl_c_at_a_random_moment_leaves_nothing_or_everything(command, world, tmp_path):
    seconds = chance.uniform(0, 3)
    print(f"after {seconds:.2f} seconds")
    process = start(tmp_path, *arguments(command, world, out=tmp_path / "out"))
    code, lines = stop_after(process, "isrlearn._cli_support", seconds)
    if code == 130:
        assert lines[-1].startswith("isrlearn: interrupted; ")
        assert not (tmp_path / "out").exists()
    else:
        assert unfinished(tmp_path) == []
