"""Run the commands and examples of the pages: python docs/page_blocks.py writes what they print.

With ``--check PAGE ...`` nothing is written, and the first difference ends it.

A ``python`` block is run in the namespace of the blocks before it; the ``text`` block that follows
is what it prints. After ``<!-- file: NAME -->`` a block is saved under that name instead. A
``console`` block has commands after ``$`` with what they print below. ``<!-- not run -->`` leaves a
block out, ``<!-- not compared -->`` allows it to print something else.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RUN = ("start.md", "method.md", "fails.md", "environments.md", "recipes/*.md")
YOUR_FOLDER = "/your/folder"
MISSING = -1  # line of an output that a page does not show
FENCE = re.compile(r"^```(\S*)\s*$")
MARK = re.compile(r"^<!-- (?:file: (?P<file>\S+)|(?P<how>not run|not compared)) -->$")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What may differ from one machine, and one run, to the next.
MASKS = (
    (re.compile(r"(?<!\S)(?:[~.]|[A-Za-z]:)?[\\/]\S*[\\/]"), ""),  # folders
    (re.compile(r"\d+(?:\.\d+)? ?(?:s|seconds?|minutes?)\b"), "TIME"),
    (re.compile(r"[─━]{2,}"), "-"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Block:
    """A fenced part of a page: lines first to last, fences not included."""

    language: str
    text: str
    first: int
    last: int
    file: str | None
    how: str | None


@dataclass(frozen=True)
class Printed:
    """What a page shows at some lines, and what was printed when it was run."""

    place: str
    shown: str
    printed: str
    first: int
    last: int
    exact: bool = True


def pages() -> list[Path]:
    """Return the pages whose blocks are run."""
    return sorted(path for pattern in RUN for path in HERE.glob(pattern))


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page that begin at the left edge."""
    found, lines, begin, language = [], text.splitlines(), None, ""
    for i, line in enumerate(lines):
        match = FENCE.match(line)
        if match and begin is None:
            begin, language = i, match.group(1)
        elif line.rstrip() == "```" and begin is not None:
            body = "\n".join(lines[begin + 1 : i])
            found.append(Block(language, body, begin + 1, i, *_mark(lines[:begin])))
            begin = None
    return found


def _mark(before: list[str]) -> tuple[str | None, str | None]:
    """Return the name of the file and how to treat it, from the last line that is not empty."""
    last = next((line.strip() for line in reversed(before) if line.strip()), "")
    match = MARK.match(last)
    return (match["file"], match["how"]) if match else (None, None)


def run_page(path: Path, folder: Path) -> Iterator[Printed]:
    """Run a page in an empty folder; yield what it shows beside what is printed."""
    namespace: dict[str, Any] = {"__name__": path.stem}
    found = blocks(path.read_text(encoding="utf-8"))
    with contextlib.chdir(folder):
        for block, after in zip_longest(found, found[1:]):
            place = f"{path.name}:{block.first}"
            if block.how == "not run":
                continue
            if block.file:
                Path(block.file).write_text(block.text + "\n", encoding="utf-8")
            elif block.language == "python":
                yield _shown_after(block, after, run_python(block.text, namespace, place), place)
            elif block.language == "console":
                yield Printed(place, block.text, run_console(block.text), block.first, block.last)


def _shown_after(block: Block, after: Block | None, printed: str, place: str) -> Printed:
    if after is None or after.language != "text":
        return Printed(place, "", printed, MISSING, MISSING)
    exact = block.how != "not compared"
    return Printed(place, after.text, printed, after.first, after.last, exact)


def run_python(source: str, namespace: dict[str, Any], place: str) -> str:
    """Run a block and return what it prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(source, place, "exec"), namespace)
    return text.getvalue().rstrip()


def run_console(text: str) -> str:
    """Run the commands of a console block; return them with what they print."""
    result = []
    for command in re.findall(r"^\$ (.*(?:\n> .*)*)", text, flags=re.MULTILINE):
        result += [f"$ {command}", *_output(command.replace("\n> ", "\n")).splitlines()]
    return "\n".join(line.rstrip() for line in result)


def _output(command: str) -> str:
    """Return the standard output of a command; this interpreter's folder is first on the path."""
    here = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    plain = {"COLUMNS": "120", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, shell=True, capture_output=True, encoding="utf-8", env=os.environ | here | plain
    )
    if done.returncode:
        raise RuntimeError(f"{command}\nended with {done.returncode}:\n{done.stderr}")
    return done.stdout.replace(str(Path.cwd()), YOUR_FOLDER).strip("\n")


def difference(result: Printed) -> str | None:
    """Return the first line in which a page and a run disagree; None if there is none."""
    if not result.exact and result.shown:
        return None
    left, right = _masked(result.shown), _masked(result.printed)
    for mine, theirs in zip(left, right, strict=False):
        if not _alike(mine, theirs):
            return f"the page shows\n  {mine}\nbut printed was\n  {theirs}"
    if len(left) != len(right):
        return f"the page shows {len(left)} lines, but printed were {len(right)}:\n{result.printed}"
    return None


def _masked(text: str) -> list[str]:
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _alike(shown: str, printed: str) -> bool:
    """Tell whether lines agree, numbers to about the digits that are shown."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= _tolerance(a) for a, b in pairs)


def _tolerance(number: str) -> float:
    """Return a unit of the last digit, or the third; whole numbers are counts, and exact."""
    if "." not in number:
        return 0.0
    return max(1.001 * 10.0 ** -len(number.partition(".")[2]), 0.002 * float(number))


def write_outputs(path: Path) -> bool:
    """Put what a page prints into it; return whether that changed anything."""
    lines = path.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        results = list(run_page(path, Path(folder)))
    stale = [result for result in results if difference(result)]
    for result in reversed(stale):
        if result.first == MISSING:
            raise ValueError(f"{result.place} prints, but no text block follows:\n{result.printed}")
        lines[result.first : result.last] = result.printed.splitlines()
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return bool(stale)


def check(path: Path) -> None:
    """Run a page, and end with a message if it prints something else than it shows."""
    with tempfile.TemporaryDirectory() as folder:
        for result in run_page(path, Path(folder)):
            wrong = difference(result)
            if wrong:
                sys.exit(f"{result.place}: {wrong}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        for name in sys.argv[2:]:
            check(HERE / name)
            sys.stdout.write(f"{name}: as shown\n")
        sys.exit()
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        sys.stdout.write(f"{page.name}: {'written anew' if write_outputs(page) else 'as shown'}\n")
