"""Files that are there wholly or not at all, whoever else writes and whatever stops the process.

Whatever is written is made in a folder beside its place, put on disk, and renamed into place. Such
a folder is held by a lock that ends with its process: what a killed process left is swept away by
the next one that writes there, and what is being written is left alone. No clock is asked.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

try:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
except ImportError:  # Windows: nothing is locked there, so nothing is swept either
    flock = None  # type: ignore[assignment]

PREFIX: Final = ".isrlearn-"
SUFFIX: Final = ".part"


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a file aside, and put it in place when it is whole and on disk.

    Parameters
    ----------
    path : Path
        Where the file is wanted; what is there is replaced.
    write : callable
        Takes the path to write to.
    """
    with blaming(path), staging(path.parent) as stage:
        place = stage / path.name
        write(place)
        put_in_place({place: path})


@contextmanager
def blaming(*paths: Path) -> Iterator[None]:
    """Name the file that cannot be written: errors know the one aside, or none at all.

    Parameters
    ----------
    *paths : Path
        What is being written; all are named if the error does not tell which of them it is.
    """
    try:
        yield
    except OSError as error:
        aside = Path(os.fsdecode(error.filename)).name if error.filename else None
        named = [path for path in paths if path.name == aside] or paths
        whole = ", ".join(map(str, named))
        raise OSError(error.errno, error.strerror or str(error), whole) from error


def put_in_place(moves: Mapping[Path, Path]) -> None:
    """Move files that are finished to where they are wanted; what is there gives its rights.

    Parameters
    ----------
    moves : mapping of Path to Path
        By each file, in a folder that `staging` gave, where it is wanted on the same file system.
    """
    # All before the first is moved: a disk may say only now that it is full. And without it a crash
    # of the machine could leave a file of the right name and no content.
    for place in moves:
        sync(place)
    for place, path in moves.items():
        with suppress(OSError):  # a file that only its owner may read stays so
            shutil.copymode(path, place)
        place.replace(path)
    for folder in {path.parent for path in moves.values()}:
        sync(folder)


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Yield a new folder inside `folder`; it is gone in the end, with what is still in it.

    Parameters
    ----------
    folder : Path
        Where the files are wanted.
    """
    sweep(folder)
    with ExitStack() as held:
        stage = _new_stage(folder, held)
        try:
            yield stage
        finally:
            _remove(stage)


def _new_stage(folder: Path, held: ExitStack) -> Path:
    while True:
        stage = Path(tempfile.mkdtemp(SUFFIX, PREFIX, folder))
        try:
            with suppress(FileNotFoundError), ExitStack() as ours:
                # Else another process has swept it before it was held, or is about to.
                if ours.enter_context(only_user(stage)) and stage.exists():
                    held.push(ours.pop_all())
                    return stage
        except BaseException:
            _remove(stage)
            raise


def _remove(stage: Path) -> None:
    """Remove a folder, and do it again if Ctrl-C comes in between."""
    try:
        shutil.rmtree(stage, ignore_errors=True)
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


@contextmanager
def only_user(folder: Path) -> Iterator[bool]:
    """Hold a folder until the end, or until this process is gone; yield whether nobody else does.

    What killed processes left in it is removed.

    Parameters
    ----------
    folder : Path
        A folder that exists. Where it cannot be locked (Windows, some network file systems) the
        answer is always True.
    """
    with _locked(folder) as ours:
        if ours:
            sweep(folder)
        yield ours is not False


@contextmanager
def _locked(folder: Path) -> Iterator[bool | None]:
    """Lock a folder, if nobody else has; yield whether that worked, None if it cannot be known."""
    if flock is None:
        yield None
        return
    handle = os.open(folder, os.O_RDONLY)
    ours = None
    try:
        ours = _lock(handle)
        yield ours
    finally:
        if ours:  # closing is not enough: a process that was forked meanwhile has it open, too
            flock(handle, LOCK_UN)
        os.close(handle)


def _lock(handle: int) -> bool | None:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder, and nothing of those that live.

    Parameters
    ----------
    folder : Path
        Where files are written.
    """
    for stage in folder.glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError), _locked(stage) as ours:
            if ours:
                shutil.rmtree(stage, ignore_errors=True)


def sync(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk.

    Parameters
    ----------
    path : Path
        The file or folder.
    """
    if path.is_dir() and os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        with suppress(OSError) if path.is_dir() else ExitStack():
            os.fsync(handle)
    finally:
        os.close(handle)
