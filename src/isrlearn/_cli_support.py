"""What all commands share: their results, mistakes of the user, and files that stay whole."""

import functools
import inspect
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

USAGE_ERROR = 2
INTERRUPTED = 130
WIDE = 118


class UserError(Exception):
    """A mistake of the user: one line on standard error, exit code 2."""


class Interrupted(Exception):
    """Ctrl-C, with a line about what is saved; exit code 130."""


def terminal(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console; one without colour and control codes in a pipe and with NO_COLOR."""
    plain = False if os.environ.get("NO_COLOR") else None
    return Console(stderr=stderr, width=width, force_terminal=plain)


def say(text: str) -> None:
    """Print text on standard output as it is: nothing is wrapped, coloured or replaced."""
    terminal().print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def note(text: str) -> None:
    """Print text on standard error as it is."""
    console = terminal(stderr=True)
    console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def tell(notes: Sequence[str]) -> None:
    """Print notes on standard error."""
    for text in notes:
        note(f"note: {text}")


@dataclass(frozen=True)
class Result:
    """What a command found; `answering` prints it.

    Parameters
    ----------
    figures : mapping
        For machines: what --json prints.
    text : sequence
        For people: strings, and tables of rich.
    files : mapping of str to Path
        What was written, by what it is: model, table, picture, page, ...
    """

    figures: Mapping[str, Any]
    text: Sequence[Any] = ()
    files: Mapping[str, Path] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return figures and files as one document."""
        files = {name: str(path.resolve()) for name, path in self.files.items()}
        return json.dumps(plain({**self.figures, "files": files}), indent=1, allow_nan=False)

    def show(self) -> None:
        """Print the text, and where the files are."""
        for part in self.text:
            if isinstance(part, str):
                say(part)
                continue
            console = terminal()
            # A file has no edge to wrap at.
            (console if console.is_terminal else terminal(width=WIDE)).print(part)
        for name, path in self.files.items():
            say(f"{name.capitalize()}: {path.resolve()}")


Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative="",
        show_default=False,
        help="Print the result as one json document, and everything else on standard error.",
    ),
]


def answering(command: Callable[..., Result]) -> Callable[..., None]:
    """Give a command the option --json, and print the `Result` that it returns."""

    @functools.wraps(command)
    def run(*values: Any, as_json: bool = False, **options: Any) -> None:
        # What libraries and methods of the user print must not get between.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            result = command(*values, **options)
        if as_json:
            sys.stdout.write(result.as_json() + "\n")
        else:
            result.show()

    asked = inspect.signature(command)
    kind = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter("as_json", kind, default=False, annotation=Json)
    parameters = [*asked.parameters.values(), option]
    run.__signature__ = asked.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "as_json": Json, "return": None}
    del run.__wrapped__
    return run


def plain(value: Any) -> Any:
    """Return what json can hold: arrays as lists, paths as text; NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy, which is not imported here
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def mistakes_of_the_user() -> Iterator[None]:
    """Turn errors that the library raises about its arguments into `UserError`."""
    from isrlearn.exceptions import JobError, TrainingError

    try:
        yield
    except (ValueError, JobError, TrainingError) as error:
        raise UserError(str(error)) from error


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """As `mistakes_of_the_user`, for a command that writes at its end: Ctrl-C leaves nothing."""
    try:
        with mistakes_of_the_user():
            yield
    except KeyboardInterrupt:
        raise Interrupted("nothing was written.") from None


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """As `mistakes_of_the_user`, for a command that goes on: after Ctrl-C it tells how."""
    try:
        with mistakes_of_the_user():
            yield
    except KeyboardInterrupt:
        raise Interrupted(f"the same command goes on from {folder}.") from None


def must_exist(data: Path) -> Path:
    """Refuse a path that is not there before anything heavy is imported."""
    if not data.exists():
        raise UserError(f"{data} does not exist: check the path.")
    return data


def may_write(path: Path, force: bool, *suffixes: str, option: str = "--out") -> Path:
    """Return `path` if writing a file there would destroy nothing that the user did not give up.

    Parameters
    ----------
    path : Path
        The file.
    force : bool
        Whether the user gives up what is there.
    *suffixes : str
        How its name may end, such as ".csv"; none are any.
    option : str, default="--out"
        Where the user named it.
    """
    if suffixes and path.suffix not in suffixes:
        raise UserError(f"{option} {path} must end in {_either(suffixes)}.")
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: name a file.")
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another with {option}, or add --force.")
    may_fill(path.parent, option=option)
    return path


def may_fill(folder: Path, *, option: str = "--out") -> Path:
    """Return `folder` unless the way to it runs through a file."""
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not existing.is_dir():
        raise UserError(f"{option} {folder}: {existing} is a file; name a folder.")
    return folder


def _either(suffixes: Sequence[str]) -> str:
    *first, last = suffixes
    return f"{', '.join(first)} or {last}" if first else last


@contextmanager
def folder_in_use(folder: Path, *, option: str = "--out") -> Iterator[Path]:
    """Create a folder and those above it; what is empty at the end is removed again."""
    missing = [p for p in (folder, *folder.absolute().parents) if not p.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{option} {folder} cannot be created: {error.strerror}.") from error
        yield folder
    finally:
        for made in missing:
            with suppress(OSError):  # it holds something
                made.rmdir()


@contextmanager
def written_together(*paths: Path, option: str = "--out") -> Iterator[list[Path]]:
    """Yield places to write files to; all of them get to `paths` at the end, or none does.

    Parameters
    ----------
    *paths : Path
        Where the files are wanted; what is there is replaced. Folders are created.
    option : str, default="--out"
        Where the user named them.
    """
    folders = list(dict.fromkeys(path.parent for path in paths))
    with _all_in_use(folders, option) as stages:
        places = [stages[path.parent] / path.name for path in paths]
        yield places
        with uninterrupted():
            for place, path in zip(places, paths, strict=True):
                place.replace(path)


@contextmanager
def _all_in_use(folders: list[Path], option: str) -> Iterator[dict[Path, Path]]:
    """Yield for each folder one inside it, which is gone at the end."""
    if not folders:
        yield {}
        return
    first, *others = folders
    with folder_in_use(first, option=option):
        stage = Path(tempfile.mkdtemp(prefix=".isrlearn-", suffix=".part", dir=first))
        try:
            with _all_in_use(others, option) as stages:
                yield {first: stage, **stages}
        finally:
            with uninterrupted():
                shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Leave Ctrl-C out of account: for steps that belong together and take no time."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: None)  # not SIG_IGN: it is inherited
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
