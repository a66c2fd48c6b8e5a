"""What a case may do: raise what is documented, in bounded time and memory; nothing else."""

import atexit
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from fuzz.mutation import Source
from isrlearn import exceptions

SECONDS = 20.0
FREE_BYTES = 128 * 2**20
TIMES = 512
"""Memory that reading may take: 128 MiB and 512 times the bytes of the files."""

LARGEST: dict[str, int] = {}
"""Memory that a case of each entry took at most, in bytes."""

OUR_WARNINGS = tuple(
    found for found in vars(exceptions).values()
    if isinstance(found, type) and issubclass(found, Warning)
)  # fmt: skip


class Finding(BaseException):
    """What no user may see; not an `Exception`, so that nothing catches it by mistake."""


@dataclass(frozen=True)
class Entry:
    """Something that takes what is not ours.

    `run` makes input out of a source, in an empty folder, and gives it to the entry. It may raise
    the `documented` exceptions alone.
    """

    name: str
    run: Callable[[Source, Path], object]
    documented: tuple[type[Exception], ...]

    def __call__(self, data: bytes) -> bool:
        """Run a case; return whether the input was accepted. `Finding` if all is not well."""
        _warmed(self)
        with _empty(workplace() / self.name) as folder:
            before = _reset_peak()
            began = time.process_time()
            try:
                with _limited_time(), _only_our_warnings():
                    self.run(Source(data), folder)
                accepted = True
            except self.documented as error:
                _refuse_bare(self, error)
                accepted = False
            except Exception as error:
                raise Finding(f"{self.name}: {type(error).__name__}: {error}") from error
            self._refuse_memory(before, folder)
            if time.process_time() - began > SECONDS:
                raise Finding(f"{self.name}: {time.process_time() - began:.0f} seconds")
        return accepted

    def _refuse_memory(self, before: int, folder: Path) -> None:
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        taken = peak_bytes() - before
        LARGEST[self.name] = max(taken, LARGEST.get(self.name, 0))
        if taken > FREE_BYTES + TIMES * size:
            raise Finding(f"{self.name}: {taken >> 20} MiB of memory for {size} bytes")


@cache
def _warmed(entry: Entry) -> None:
    """Run a case that is not measured: what is imported stays in memory."""
    with _empty(workplace() / entry.name) as folder, suppress(Exception):
        entry.run(Source(b"\x01"), folder)


def _refuse_bare(entry: Entry, error: Exception) -> None:
    """Refuse a message that is empty: a user is told what is wrong."""
    if not str(error).strip():
        raise Finding(f"{entry.name}: {type(error).__name__} without a word") from error


@cache
def workplace() -> Path:
    """Return a folder in memory, where there is one."""
    shared = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="fuzz", dir=shared if shared.is_dir() else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@contextmanager
def _empty(folder: Path):
    folder.mkdir(exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _only_our_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in (*OUR_WARNINGS, ConvergenceWarning, DataConversionWarning, LinAlgWarning):
            warnings.simplefilter("ignore", category)
        # What a head says of the rows that it was given is its own affair.
        warnings.filterwarnings("ignore", module=r"sklearn\.(linear_model|utils)|scipy\.")
        yield


@contextmanager
def _limited_time():
    def stop(*_):
        raise Finding(f"not done after {SECONDS:g} seconds")

    # Of the processor, not of the clock: another program may have the machine for a while.
    earlier = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def _reset_peak() -> int:
    """Begin to measure; return the memory that is taken now, in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not on Linux: nothing is measured
        return 0
    return peak_bytes()


def peak_bytes() -> int:
    """Return the largest memory that this process held since it was reset, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
