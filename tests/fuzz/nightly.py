"""Many cases of every entry, guided by coverage (atheris); stops at the first finding.

``python tests/fuzz/nightly.py`` runs each entry in a process of its own and writes a table. What
is found lies in the folder of the corpus, and is run again with ``--again NAME FILE``.
"""

import argparse
import json
import os
import pkgutil
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

CASES = 50_000
CORPUS = Path(os.environ.get("ISRLEARN_FUZZ", Path.home() / ".cache" / "isrlearn-fuzz"))
TABLE = HERE.parents[2] / "benchmarks" / "results" / "fuzz.txt"
FOUND = HERE.parent / "found"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--only", nargs="*", help="names of entries")
    parser.add_argument("--entry", help="run this one here, by atheris")
    parser.add_argument("--again", nargs=2, metavar=("NAME", "FILE"), help="run one case")
    asked = parser.parse_args()
    if asked.again:
        return again(*asked.again)
    if asked.entry:
        return fuzz(asked.entry, asked.cases, asked.corpus)
    return run_all(asked)


def run_all(asked: argparse.Namespace) -> int:
    from fuzz.targets import ENTRIES

    wanted = asked.only or list(ENTRIES)
    rows = read_table(asked.table)
    for name in wanted:
        rows[name] = run_one(name, asked)
        print(rows[name], flush=True)
        asked.table.write_text(as_table(rows, asked.cases), encoding="utf-8")
        if rows[name]["findings"]:
            return 1
    return 0


def run_one(name: str, asked: argparse.Namespace) -> dict:
    began = time.monotonic()
    command = [sys.executable, HERE, "--entry", name, "--cases", str(asked.cases)]
    done = subprocess.run(
        [*command, "--corpus", asked.corpus], stderr=subprocess.PIPE, text=True, check=False
    )
    counts = re.findall(r"Done (\d+) runs|^#(\d+)", done.stderr, re.MULTILINE)
    if done.returncode:
        print(done.stderr[-6000:], file=sys.stderr)
    notes = json.loads(notes_of(asked.corpus, name).read_text())
    return {
        "entry": name,
        "cases": max((int(a or b) for a, b in counts), default=0),
        "accepted": notes["accepted"],
        "findings": int(done.returncode != 0),
        "seconds": round(time.monotonic() - began),
        "MiB": notes["peak"] >> 20,
    }


def fuzz(name: str, cases: int, corpus: Path) -> int:
    import atheris

    with atheris.instrument_imports(include=["isrlearn"], enable_loader_override=False):
        import isrlearn

        for module in pkgutil.walk_packages(isrlearn.__path__, "isrlearn."):
            if not module.name.rpartition(".")[2].startswith(("__main__", "_cli")):
                __import__(module.name)
    from fuzz.guard import LARGEST
    from fuzz.targets import ENTRIES

    folder = prepared(corpus, name)
    counts = {"accepted": 0, "peak": 0}
    written = time.monotonic()

    def one(data: bytes) -> None:
        nonlocal written
        counts["accepted"] += ENTRIES[name](data)
        if LARGEST.get(name, 0) > counts["peak"] or time.monotonic() - written > 2:
            counts["peak"], written = LARGEST.get(name, 0), time.monotonic()
            notes_of(corpus, name).write_text(json.dumps(counts))

    options = [f"-runs={cases}", "-max_len=96", "-timeout=1200", "-rss_limit_mb=4096"]
    options += ["-len_control=0", f"-artifact_prefix={folder.parent}/finding-"]
    atheris.Setup([sys.argv[0], *options, str(folder)], one)
    atheris.Fuzz()
    return 0


def prepared(corpus: Path, name: str) -> Path:
    """Return the folder of an entry's corpus, with a few inputs of any length."""
    folder = corpus / name.replace(" ", "-") / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    notes_of(corpus, name).write_text(json.dumps({"accepted": 0, "peak": 0}))
    for length in (4, 12, 24, 48, 72, 96):
        for i in range(8):
            (folder / f"begin-{length}-{i}").write_bytes(os.urandom(length))
    return folder


def notes_of(corpus: Path, name: str) -> Path:
    return corpus / name.replace(" ", "-") / "notes.json"


def again(name: str, file: str) -> int:
    from fuzz.targets import ENTRIES

    print("accepted" if ENTRIES[name](Path(file).read_bytes()) else "refused, as documented")
    return 0


COLUMNS = ("entry", "cases", "accepted", "findings", "seconds", "MiB")


def as_table(rows: dict[str, dict], cases: int) -> str:
    from fuzz.guard import FREE_BYTES, SECONDS, TIMES

    lines = [
        f"# make fuzz: {cases} cases of each entry by atheris, guided by the coverage of isrlearn.",
        f"# A finding is an exception that is not documented, a case of more than {SECONDS:g}",
        f"# seconds, or one that takes more memory than {FREE_BYTES >> 20} MiB and {TIMES} times",
        "# the bytes of its files; MiB is what a case took at most.",
        "",
        f"{'entry':28s}{'cases':>8s}{'accepted':>10s}{'findings':>10s}{'seconds':>9s}{'MiB':>6s}",
    ]
    for row in rows.values():
        numbers = zip((8, 10, 10, 9, 6), COLUMNS[1:], strict=True)
        lines.append(f"{row['entry']:28s}" + "".join(f"{row[n]:>{w}d}" for w, n in numbers))
    return "\n".join(lines) + "\n"


def read_table(path: Path) -> dict[str, dict]:
    """Return the rows of a table that is there: entries that are not run again stay in it."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isalpha()]
    rows = [(line[:28].strip(), *map(int, line[28:].split())) for line in lines[1:]]
    return {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in rows}


if __name__ == "__main__":
    sys.exit(main())
