"""What the tests of all commands share: small files, and a call of every command that works."""

import importlib.util
import shlex
from pathlib import Path

import numpy as np
import pytest

from isrlearn.cli import app, main

TESTS = Path(__file__).parent
COLUMNS = "--label label --environment environment"
BENCH = "--methods oracle isr-mean --n-environments 2 3 --seeds 1 --jobs 1 --store {out}/s.sqlite"
TRUST = "--trust networks.tiny:backbone"
CALLS = {
    "demo": "--out {out}",
    "compare": f"{{rows}} {COLUMNS} --methods erm isr --seeds 1 --jobs 1 --out {{out}}",
    "fit": f"{{rows}} {COLUMNS} --out {{out}}/m.safetensors --html",
    "predict": "{model} {rows} --out {out}/p.csv",
    "export": "{model} --out {out}/m.onnx",
    "diagnose": f"{{rows}} {COLUMNS} --html {{out}}/d.html",
    "report": "{result} --out {out}/r.html",
    "train": "--data {images} --config {plan} --out {out}",
    "extract": f"{{network}} --data {{images}} {TRUST} --out {{out}}",
    "repair": f"{{network}} --data {{images}} {TRUST} --n-spurious 1 --out {{out}}",
    "bench run": f"--examples 3 {BENCH}",
    "bench status": "--store {store}",
    "bench table": "--store {store}",
    "bench plot": "--store {store} --out {out}/f.svg --html",
    "bench export": "--store {store} --csv {out}/a.csv --parquet {out}/a.parquet",
    "bench complexity": f"--d-s 1 {BENCH} --out {{out}}/c.png",
    "reproduce table1": "--data {images} --config {plan} --seeds 1 --objectives erm --out {out}",
    "reproduce table2": "--data {features} --config {plan} --seeds 1 --out {out}",
    "reproduce partial-labels": "--data {images} --config {plan} --seeds 1 --out {out}",
}
"""A call of each command: {out} is a folder that is not there yet, others are in the world."""
NEED_TORCH = ("train", "extract", "repair", "reproduce")
INPUTS = ("rows", "model", "result", "images", "plan", "network", "features", "store")


def walk(group=app, path=()):
    """Yield the words and the app of each command and each group of commands."""
    for name in group:
        if name.startswith("-"):
            continue
        command = group[name]
        yield (*path, name), command
        yield from walk(command, (*path, name))


def is_group(command):
    return command.default_command is None


APPS = {" ".join(path): command for path, command in walk() if not is_group(command)}
COMMANDS = list(APPS)
PAGES = ["", "--install-completion", *(" ".join(path) for path, _ in walk())]


def skip_without_torch(command):
    if command.split()[0] in NEED_TORCH and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    if "parquet" in CALLS[command]:
        pytest.importorskip("pyarrow", exc_type=ImportError)
    if command == "export":
        pytest.importorskip("onnx", exc_type=ImportError)


def arguments(command, files, **other):
    """Return the words of the call of a command."""
    return [*command.split(), *shlex.split(CALLS[command].format(**{**files, **other}))]


def inputs(command):
    return [name for name in INPUTS if f"{{{name}}}" in CALLS[command]]


def run(*words):
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    return end.value.code


def snapshot(folder):
    """Return the contents of all files below a folder; None for folders."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def make_world(folder):
    """Write a small file of each kind that a command reads."""
    files = {"rows": _rows(folder / "rows.csv"), "store": _store(folder / "store.sqlite")}
    files["model"] = folder / "model.safetensors"
    assert run("fit", files["rows"], *shlex.split(COLUMNS), "--out", files["model"]) == 0
    files["result"] = folder / "compared" / "result.json"
    assert run(*arguments("compare", files, out=folder / "compared")) == 0
    if importlib.util.find_spec("torch") is not None:
        files |= _networks(folder)
    return files


def _rows(path, n=160):
    random = np.random.default_rng(0)
    y, e = random.integers(0, 2, n), random.integers(0, 2, n)
    X = random.normal(size=(n, 3)) + np.stack([2 * y, 2 * e, 2 * y * e], axis=1)
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{t},{p}" for (a, b, c), t, p in zip(X, y, e, strict=True)]
    path.write_text("\n".join(["a,b,c,label,environment", *lines]) + "\n", encoding="utf-8")
    return path


def _store(path):
    from isrlearn.benchmark import Store, grid, run as run_jobs

    store = Store(path).create()
    run_jobs(grid(("oracle", "isr-mean"), ("3",), (2, 3), range(1)), store)
    return path


def _networks(folder):
    from networks.test_commands import PLAN, write_images

    files = {name: folder / name for name in ("images", "network", "features")}
    write_images(files["images"])
    files["plan"] = folder / "plan.toml"
    files["plan"].write_text(PLAN, encoding="utf-8")
    for command, name in (("train", "network"), ("extract", "features")):
        assert run(*arguments(command, files, out=files[name])) == 0
    return files
