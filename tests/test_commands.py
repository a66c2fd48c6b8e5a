"""Every command, found by walking the app: help, json, mistakes, completion, plain pipes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from command_support import (
    APPS,
    CALLS,
    COLUMNS,
    COMMANDS,
    INPUTS,
    PAGES,
    TESTS,
    arguments,
    inputs,
    make_world,
    run,
    skip_without_torch,
    snapshot,
)

from isrlearn import _cli_progress
from isrlearn.cli import app

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "matplotlib", "torch", "safetensors", "dask"}
EVERYWHERE_THE_SAME = (
    *("--force", "--json", "--seed", "--seeds", "--jobs", "--scheduler", "--store", "--config"),
    *("--backbone", "--epochs", "--batch-size", "--label", "--environment", "--split", "--drop"),
    *("--impute", "--pca", "--layout", "--negation", "--device", "--trials", "--steps"),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TESTS)
        yield make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder, so that what a command leaves is seen."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setattr(_cli_progress, "PATIENCE", 1e6)  # however slow the machine is


@pytest.fixture(scope="module")
def pages():
    """The help of everything and the modules that it loads, from one fresh interpreter."""
    script = (
        "import contextlib, io, json, sys\n"
        "from isrlearn.cli import app\n"
        "pages = {}\n"
        "for page in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as text:\n"
        "        try: app([*page.split(), '--help'])\n"
        "        except SystemExit: pass\n"
        "    pages[page] = text.getvalue()\n"
        "print(json.dumps([pages, sorted(sys.modules)]))"
    )
    command = [sys.executable, "-I", "-c", script, json.dumps(PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_every_command_has_a_call_in_these_tests():
    assert set(COMMANDS) == set(CALLS)


def test_help_loads_nothing_heavy(pages):
    assert not HEAVY & set(pages[1])


@pytest.mark.parametrize("page", PAGES)
def test_help_teaches_by_an_example(pages, page):
    text = " ".join(pages[0][page].split())
    words = page if page.startswith("-") else page.partition(" ")[0]
    assert f"Example: isrlearn {words}".strip() in text


def test_help_ends_with_where_to_start_and_exit_codes(pages, capsys):
    text = " ".join(pages[0][""].split())
    end = text.partition("Where to start: isrlearn demo")[2]
    assert re.search(r"Exit codes: 0 .* 2 .* 130 ", end)
    for group in ("Your data", "Networks", "The paper"):
        assert f"─ {group} ─" in text
    assert all("Exit codes" not in text for page, text in pages[0].items() if page)
    assert run() == 0
    assert "Where to start" in capsys.readouterr().out


def options_of(command):
    for argument in command.assemble_argument_collection(parse_docstring=True):
        for name in argument.names:
            if name.startswith("--"):
                yield name, argument


def test_an_option_says_the_same_everywhere():
    texts = defaultdict(set)
    for command in APPS.values():
        for name, argument in options_of(command):
            texts[name].add(argument.parameter.help)
    assert None not in set().union(*texts.values())
    assert {name: texts[name] for name in EVERYWHERE_THE_SAME if len(texts[name]) != 1} == {}
    assert all(re.match("(File|Folder) for ", text) for text in texts["--out"])
    assert all(text.startswith("Where the rows are") for text in texts["--data"])


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_one_document_with_all_files(command, world, tmp_path, capfd):
    skip_without_torch(command)
    out = tmp_path / "out"
    code = run(*arguments(command, world, out=out), "--json")
    shown = capfd.readouterr()
    assert code == 0, shown.err
    found = json.loads(shown.out, parse_constant=pytest.fail)
    assert len(found) > 1  # figures beside the files
    files = [Path(path) for path in found["files"].values()]
    assert all(path.is_absolute() and path.exists() for path in files)
    for path in out.rglob("*"):
        listed = path.is_dir() or any(path == f or f in path.parents for f in files)
        assert listed, f"{path} is not among the files"
        assert not path.name.startswith(".")


@pytest.mark.parametrize(
    "command", ["predict", "diagnose", "bench status", "bench table", "bench plot", "bench export"]
)
def test_without_json_people_read_the_same_files(command, world, tmp_path, capsys):
    skip_without_torch(command)
    words = arguments(command, world, out=tmp_path / "out")
    assert run(*words) == 0
    text = capsys.readouterr().out
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    force = ["--force"] if "{out}" in CALLS[command] else []
    assert run(*words, *force, "--json") == 0
    for path in json.loads(capsys.readouterr().out)["files"].values():
        assert path in text


def test_json_has_null_for_what_is_not_a_number():
    import numpy as np

    from isrlearn._cli_support import Result

    figures = {"a": [np.nan, np.inf, 1.5], "b": np.array([[1, 2]]), "c": np.float64("nan")}
    figures |= {"d": (np.int64(3), None, True, "ü"), 5: Path("x")}
    found = json.loads(Result(figures).as_json(), parse_constant=pytest.fail)
    files = found.pop("files")
    assert found == {
        **{"a": [None, None, 1.5], "b": [[1, 2]], "c": None},
        **{"d": [3, None, True, "ü"], "5": "x"},
    }
    assert files == {}


def test_what_a_method_of_the_user_prints_is_not_in_the_json(world, tmp_path, capsys):
    Path("loud.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "class Loud(LogisticRegression):\n"
        "    def fit(self, X, y, *, environments=None):\n"
        "        print('here I am')\n"
        "        return super().fit(X, y)\n",
        encoding="utf-8",
    )
    words = arguments("compare", world, out=tmp_path / "out")
    words[words.index("erm")] = "loud:Loud"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path.cwd())
        assert run(*words, "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["methods"]
    assert "here I am" in shown.err


def test_a_warning_of_a_library_is_a_note(world, tmp_path, capsys, monkeypatch):
    import warnings

    from isrlearn import io

    def warn_and_stop(*rows, **how):
        warnings.warn("few\nrows", UserWarning, stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr(io, "read_data", warn_and_stop)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(*arguments("diagnose", world, out=tmp_path / "out")) == 2
    assert capsys.readouterr().err.splitlines() == ["note: few rows", "isrlearn: enough"]


def test_what_takes_long_says_how_far_it_is_in_a_pipe(world, tmp_path, capsys, monkeypatch):
    words = arguments("predict", world, out=tmp_path / "out")
    assert run(*words) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_cli_progress, "PATIENCE", 0.0)
    assert run(*words, "--force", "--json") == 0
    shown = capsys.readouterr()
    assert "Predicting: 160 of 160" in shown.err.splitlines()
    assert json.loads(shown.out)["rows"] == 160


def refused(capsys, tmp_path, *words):
    """Assert that a call is refused as it should be, and return the line."""
    before = snapshot(tmp_path)
    code = run(*words)
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, ""), shown.err
    assert re.fullmatch(r"isrlearn: [^\n]+\n", shown.err)
    assert snapshot(tmp_path) == before
    return shown.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_option_is_refused(command, tmp_path, capsys):
    words = arguments(command, dict.fromkeys(INPUTS, "some"), out=tmp_path / "out")
    assert "--no-such" in refused(capsys, tmp_path, *words, "--no-such")


@pytest.mark.parametrize("group", ["", "--install-completion", "bench", "reproduce"])
def test_a_wrong_word_is_refused(group, tmp_path, capsys):
    for word in ("--no-such", "no-such"):
        assert "no-such" in refused(capsys, tmp_path, *group.split(), word)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_argument_is_refused(command, tmp_path, capsys):
    known = APPS[command]
    needed = [a for a in known.assemble_argument_collection() if a.required]
    if needed or command == "bench export":
        refused(capsys, tmp_path, *command.split())
    valued = [n for n, a in options_of(known) if a.hint is Path or a.hint is int]
    for name in valued:
        refused(capsys, tmp_path, *command.split(), name)


@pytest.mark.parametrize("command", [c for c in COMMANDS if inputs(c)])
def test_a_file_that_is_not_there_is_refused(command, world, tmp_path, capsys):
    skip_without_torch(command)
    for name in inputs(command):
        ends = {"rows": ".csv", "model": ".safetensors", "plan": ".toml"}.get(name, "")
        words = arguments(command, world, **{name: f"nowhere{ends}"}, out=tmp_path / "out")
        assert "nowhere" in refused(capsys, tmp_path, *words)


def write_wrong_files(folder, name):
    """Write files that are not what they are called, and a folder."""
    junk = bytes(range(256)) * 8
    texts = {"rows": ("text.npz", "empty.csv", "junk.csv", "junk.safetensors", "junk.parquet")}
    texts |= {"model": ("junk.safetensors", "text.safetensors", "text.csv"), "plan": ("junk.toml",)}
    texts |= {"images": ("empty.csv", "junk.csv", "text.txt"), "store": ("junk.sqlite", "text.csv")}
    texts |= {"features": ("text.npz", "junk.npz", "text.csv"), "network": ("text.csv",)}
    texts |= {"result": ("junk.json", "text.json", "empty.json")}
    content = {"junk": junk, "text": b"some words\n", "empty": b""}
    for file in texts[name]:
        (folder / file).write_bytes(content[file.partition(".")[0]])
        yield folder / file
    ends = {"rows": ".csv", "model": ".safetensors", "plan": ".toml", "store": ".sqlite"}
    (folder / f"folder{ends.get(name, '')}").mkdir()
    yield folder / f"folder{ends.get(name, '')}"


@pytest.mark.parametrize("command", [c for c in COMMANDS if inputs(c)])
def test_a_file_of_the_wrong_kind_is_refused(command, world, tmp_path, capsys):
    skip_without_torch(command)
    for name in inputs(command):
        (tmp_path / name).mkdir()
        for wrong in write_wrong_files(tmp_path / name, name):
            words = arguments(command, world, **{name: wrong}, out=tmp_path / "out")
            refused(capsys, tmp_path, *words)


@pytest.mark.parametrize("command", [c for c in COMMANDS if "{out}" in CALLS[c]])
def test_a_place_that_cannot_be_written_is_refused(command, world, tmp_path, capsys):
    skip_without_torch(command)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert "is a file" in refused(capsys, tmp_path, *arguments(command, world, out=out))


@pytest.mark.parametrize("command", ["fit", "predict", "diagnose", "bench plot", "bench export"])
def test_a_folder_in_the_place_of_a_file_is_refused(command, world, tmp_path, capsys):
    skip_without_torch(command)
    words = arguments(command, world, out=tmp_path / "out")
    Path(next(word for word in words if word.startswith(str(tmp_path / "out")))).mkdir(parents=True)
    assert "is a folder" in refused(capsys, tmp_path, *words, "--force")


@pytest.mark.parametrize("command", [c for c in COMMANDS if "--force" in dict(options_of(APPS[c]))])
def test_nothing_is_overwritten_without_force(command, world, tmp_path, capsys):
    skip_without_torch(command)
    words = arguments(command, world, out=tmp_path / "out")
    assert run(*words) == 0
    capsys.readouterr()
    assert "--force" in refused(capsys, tmp_path, *words)


def put(source, place):
    place.parent.mkdir(exist_ok=True)
    shutil.copy(source, place)


def put_features(folder, n=80):
    pytest.importorskip("safetensors")
    from isrlearn.io import Features, FeatureWriter

    y, e = np.arange(n) % 2, np.arange(n) // 2 % 2
    X = np.random.default_rng(0).normal(size=(n, 3)) + np.stack([2 * y, 2 * e, y * e], axis=1)
    with FeatureWriter(folder, {"network": "a"}) as writer:
        writer.add(Features(X, y, e))


SHARD = "shard-00000.safetensors"
OVER_AN_INPUT = {
    "compare": f"rows=o/table.csv: compare o/table.csv {COLUMNS} --methods erm --out o --force",
    "compare features": "shard=table.csv: compare f --methods erm --out f --force",
    "fit": f"shard={SHARD}: fit f --out f/{SHARD} --force",
    "fit by another way": f"shard={SHARD}: fit f --out f/../f/{SHARD} --force",
    "fit in chunks": f"shard={SHARD}: fit f --stream --out f/{SHARD} --force",
    "predict": "rows=r.csv: predict m.safetensors r.csv --out r.csv --force",
    "report": "result=r.html: report r.html --out r.html --force",
    "repair": "rows=o/result.json: repair net --data o/result.json --out o --force",
    "bench plot": "store=s.png: bench plot --store s.png --out s.png --force",
    "bench plot page": "store=s.html: bench plot --store s.html --html s.html --force",
    "bench complexity": "store=s.png: bench complexity --store s.png --out s.png --force",
    "bench complexity anew": "rows=r: bench complexity --store s.png --out s.png",
    "table1": "rows=o/table1.csv: reproduce table1 --data o/table1.csv --out o",
    "table1 by a plan": "rows=o/table1.md: reproduce table1 --data r --config o/table1.md --out o",
    "table2": "rows=o/table2.csv: reproduce table2 --data o/table2.csv --out o",
    "partial-labels": (
        "rows=o/partial-labels.csv: reproduce partial-labels --data o/partial-labels.csv --out o"
    ),
}


@pytest.mark.parametrize("case", OVER_AN_INPUT)
def test_no_input_is_overwritten_even_with_force(case, world, tmp_path, capsys):
    given, call = OVER_AN_INPUT[case].split(": ", 1)
    name, place = given.split("=")
    if name == "shard":
        put_features(tmp_path / "here" / "f")
        rename_shard(tmp_path / "here" / "f", place)
    else:
        put(world[name], tmp_path / "here" / place)
    shown = refused(capsys, tmp_path, *call.split())
    assert "which is read: name another place, also with --force" in shown


def rename_shard(folder, name):
    """Give the shard of a folder another name."""
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(SHARD, name))
    (folder / SHARD).rename(folder / name)


def test_what_lies_beside_the_shards_is_overwritten_with_force(tmp_path, capsys):
    """A folder of features may hold other things, such as a model that is fitted anew."""
    put_features(tmp_path / "here" / "f")
    for force in ([], ["--force"]):
        assert run("fit", "f", "--out", "f/m.safetensors", *force) == 0


def test_weights_of_another_program_are_not_trained_over(world, tmp_path, capsys):
    """A network may begin with those of a folder, and then be named into the same folder."""
    put(world["model"], tmp_path / "here" / "bert" / "model.safetensors")
    words = ("--data", world["rows"], "--backbone", "bert", "--out", "bert")
    assert "bert would overwrite" in refused(capsys, tmp_path, "train", *words)


def test_rows_in_the_folder_of_sums_are_not_removed(world, tmp_path, capsys):
    folder = tmp_path / "here" / ".m.safetensors.passes"
    folder.mkdir()
    arrays = {"features": np.eye(8), "labels": np.arange(8) % 2, "environments": np.arange(8) // 4}
    np.savez(folder / "rows.npz", **arrays)
    words = ("fit", ".m.safetensors.passes/rows.npz", "--stream", "--out", "m.safetensors")
    assert "name another --out" in refused(capsys, tmp_path, *words)


def environment(**changes):
    """Return the variables of a wide terminal with colours."""
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    return {**kept, "TERM": "xterm-256color", "PYTHONWARNINGS": "ignore", **changes}


@pytest.mark.parametrize("command", ["demo", "compare", "bench table", "bench run"])
def test_pipes_get_no_control_codes(command, world, tmp_path):
    words = [sys.executable, "-m", "isrlearn", *arguments(command, world, out=tmp_path / "out")]
    done = subprocess.run(words, capture_output=True, env=environment(), check=True)
    assert done.stdout
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
@pytest.mark.parametrize("words", [["--help"], ["no-such"], ["predict"]])
@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_without_colour_gets_no_control_codes(words, colour, world, tmp_path):
    import pty

    if words == ["predict"]:
        words = arguments("predict", world, out=tmp_path / "out")
    ours, theirs = pty.openpty()
    variables = environment() if colour else environment(NO_COLOR="1")
    process = subprocess.Popen(
        [sys.executable, "-m", "isrlearn", *words], stdout=theirs, stderr=theirs, env=variables
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so that the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    process.wait()
    assert shown
    if words != ["no-such"]:
        assert (b"\x1b" in shown) == colour
    else:
        assert b"\x1b" not in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_in_the_home_of_the_user(shell, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert run("--install-completion", "--shell", shell) == 0
    script = Path(capsys.readouterr().out.removeprefix("Completion: ").strip())
    assert script.is_relative_to(tmp_path)
    text = script.read_text(encoding="utf-8")
    for word in {word for command in COMMANDS for word in command.split()}:
        assert word in text
    for option in ("--environment", "--n-environments", "--json"):
        assert option in text or option.removeprefix("--") in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options(tmp_path):
    script = tmp_path / "isrlearn.bash"
    script.write_text(app.generate_completion(shell="bash"), encoding="utf-8")
    for words, expected in (
        (["isrlearn", "dia"], "diagnose"),
        (["isrlearn", "fit", "--la"], "--label"),
    ):
        line = " ".join(words)
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; name=$(complete -p isrlearn | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "
            f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; "
            f"COMP_POINT={len(line)}; $name isrlearn '{words[-1]}' '{words[-2]}' 2>/dev/null; "
            "printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
        assert [word.strip() for word in done.stdout.split()] == [expected], done.stderr


def test_a_shell_that_is_not_known_is_refused(tmp_path, capsys, monkeypatch):
    from cyclopts.completion import detect

    def nothing():
        raise detect.ShellDetectionError

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(detect, "detect_shell", nothing)
    assert "--shell bash" in refused(capsys, tmp_path, "--install-completion")


def test_names_in_a_file_command_no_terminal(tmp_path, capsys, random):
    hostile = "ward \x1b[2J\x1b]0;mine\x07 \x9b31m"
    y, e = random.integers(0, 2, 200), random.integers(0, 2, 200)
    places = np.array(["north", hostile])[e]
    X = random.normal(size=(200, 2)) + np.stack([y, 3 * e], axis=1)
    np.savez(tmp_path / "rows.npz", features=X, labels=y, environments=places)
    assert run("diagnose", tmp_path / "rows.npz") == 0
    assert run("diagnose", "no \x1b[31mfile.npz") == 2
    shown = capsys.readouterr()
    assert not set("\x1b\x9b\x07") & set(shown.out + shown.err)
    assert "\\x1b[2J" in shown.out


def test_brackets_in_a_file_name_are_no_markup(monkeypatch):
    import io

    from rich.console import Console

    from isrlearn import _cli_progress

    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(_cli_progress, "terminal", lambda **_: console)
    with _cli_progress.working("Reading [/q][red].csv ..."):
        pass
    with _cli_progress.watching() as watch:
        watch("Reading [/q].csv", 1, 2)
    assert "[/q][red].csv" in screen.getvalue()
