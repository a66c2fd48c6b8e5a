"""What all commands share: their results, mistakes of the user, and files that stay whole."""

import functools
import inspect
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from isrlearn._cli_signals import Interrupted, uninterrupted
from isrlearn._files import blaming, put_in_place, staging
from isrlearn.display import visible

USAGE_ERROR = 2
READER_GONE = 141  # as shells tell of a program that SIGPIPE ended
WIDE = 118


class UserError(Exception):
    """A mistake of the user: one line on standard error, exit code 2."""


class ReaderGone(Exception):
    """Nobody reads standard output any more, as after ``| head``: there is nothing to tell."""


class _Terminal(Console):
    def on_broken_pipe(self) -> None:
        raise ReaderGone


def terminal(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console; one without colour and control codes in a pipe and with NO_COLOR."""
    plain = False if os.environ.get("NO_COLOR") else None
    return _Terminal(stderr=stderr, width=width, force_terminal=plain)


def say(text: str) -> None:
    """Print text on standard output as it is: nothing is wrapped, coloured or replaced."""
    with _standard_output():
        _print(terminal(), text)


def note(text: str) -> None:
    """Print text on standard error as it is."""
    with suppress(OSError, ReaderGone):  # a log that is full is no reason to stop
        _print(terminal(stderr=True), text)


@contextmanager
def _standard_output() -> Iterator[None]:
    """Let what is printed go out now, and tell errors of it from those of files."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        mute()
        raise UserError(
            f"standard output cannot be written: {error.strerror}. Files of this command are not "
            "concerned: look for them before you run it again."
        ) from error


def mute() -> None:
    """Let nothing more get to standard output: Python would try once more at its end."""
    with suppress(OSError, AttributeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(console: Console, text: str) -> None:
    # Names come from files: they must not command the terminal.
    console.print(visible(text), soft_wrap=True, highlight=False, markup=False, emoji=False)


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
            with _standard_output():  # a file has no edge to wrap at
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
        if not as_json:
            result.show()
        elif sys.stdout is not None:
            with _standard_output():
                sys.stdout.write(result.as_json() + "\n")

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


def may_write(
    path: Path, force: bool, *suffixes: str, option: str = "--out", reads: Iterable[Path] = ()
) -> Path:
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
    reads : iterable of Path, default=()
        Files that the command reads. They cannot be given up: what is made of them is no copy.
    """
    if path.name in suffixes:
        raise UserError(f"{option} {path} must have a name before {path.name}.")
    if suffixes and path.suffix not in suffixes:
        raise UserError(f"{option} {path} must end in {_either(suffixes)}.")
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: name a file.")
    _refuse_inputs(path, option, reads)
    if path.exists() and not force:
        raise UserError(f"{path} exists: name another with {option}, or add --force.")
    folder = _existing(may_fill(path.parent, option=option))
    if not os.access(folder, os.W_OK | os.X_OK):  # better now than after hours of work
        raise UserError(
            f"{option} {path} cannot be written: {folder} is read-only for you. All is as it was: "
            "look at the rights of the folder, or name another place."
        )
    return path


def _refuse_inputs(path: Path, option: str, reads: Iterable[Path]) -> None:
    for read in reads:
        if _is_same(path, read):
            raise UserError(
                f"{option} {path} would overwrite {read}, which is read: name another place, "
                "also with --force."
            )


def _is_same(path: Path, read: Path) -> bool:
    # The first holds also of a file that is yet to be made.
    if os.path.realpath(path) == os.path.realpath(read):
        return True
    return path.exists() and read.exists() and path.samefile(read)


def files_read(data: Path) -> list[Path]:
    """Return the files that reading rows reads: the one named, or those of a folder of features.

    Parameters
    ----------
    data : Path
        A file, or a folder. Of one that cannot be read, what is known.
    """
    if not data.is_dir():
        return [data]
    from isrlearn._json import read_json

    manifest = data / "manifest.json"
    names: list[str] = []
    with suppress(OSError, ValueError, KeyError, TypeError):  # its reader will say what is wrong
        names = [str(shard["name"]) for shard in read_json(manifest)["shards"]]
    return [manifest, *(data / name for name in names)]


def may_fill(folder: Path, *, option: str = "--out") -> Path:
    """Return `folder` unless the way to it runs through a file."""
    existing = _existing(folder)
    if not existing.is_dir():
        raise UserError(f"{option} {folder}: {existing} is a file; name a folder.")
    return folder


def _existing(folder: Path) -> Path:
    """Return a folder, or the first above it that is there."""
    return next(p for p in (folder, *folder.absolute().parents) if p.exists())


def _either(suffixes: Sequence[str]) -> str:
    *first, last = suffixes
    return f"{', '.join(first)} or {last}" if first else last


@contextmanager
def folder_in_use(*folders: Path, option: str = "--out") -> Iterator[None]:
    """Create folders and those above them; what is empty at the end is removed again."""
    ways = [(folder, *folder.absolute().parents) for folder in folders]
    missing = [path for way in ways for path in way if not path.exists()]
    try:
        for folder in folders:
            _make(folder, option)
        yield
    finally:
        with uninterrupted():
            for made in missing:
                with suppress(OSError):  # it holds something
                    made.rmdir()


def _make(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {folder} cannot be created: {error.strerror}.") from error


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
    with folder_in_use(*folders, option=option):
        held = ExitStack()
        try:
            with blaming(*paths):
                with uninterrupted(heeding=True):  # no folder is made that nobody knows of
                    stages = {folder: held.enter_context(staging(folder)) for folder in folders}
                places = [stages[path.parent] / path.name for path in paths]
                yield places
                with uninterrupted():
                    put_in_place(dict(zip(places, paths, strict=True)))
        finally:
            with uninterrupted():
                held.close()


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print what libraries warn of as a note, without the place in their code."""

    def show(message: Warning | str, *where: Any, **other: Any) -> None:
        note(f"note: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
