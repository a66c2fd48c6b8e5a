"""Where results are kept: one SQLite file that can be stopped, resumed, grown and copied."""

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isrlearn import __version__
from isrlearn._files import staging, sweep, sync
from isrlearn.benchmark.execution import JobResult
from isrlearn.benchmark.spec import PROTOCOL, Job
from isrlearn.exceptions import StoreError

APPLICATION: Final = 0x49535242  # "ISRB": marks the file as ours
WAIT_SECONDS: Final = 60.0
SPEC_COLUMNS: Final = {
    "example": "TEXT",
    "method": "TEXT",
    "n_environments": "INTEGER",
    "seed": "INTEGER",
    "d_c": "INTEGER",
    "d_s": "INTEGER",
    "rows": "INTEGER",
    "constants": "TEXT",
    "rule": "TEXT",
    "trials": "INTEGER",
    "steps": "INTEGER",
}
RESULT_COLUMNS: Final = {
    "trial": "INTEGER",
    "hyperparameters": "TEXT",
    "error_train": "REAL",
    "error_validation": "REAL",
    "error_test": "REAL",
    "error_test_worst": "REAL",
    "seconds": "REAL",
    "version": "TEXT",
}
SEAL: Final = "seal"
_KINDS: Final = {**SPEC_COLUMNS, **RESULT_COLUMNS}
COLUMNS: Final = tuple(_KINDS)
_NAMES_AND_TYPES: Final = ", ".join(f"{name} {kind}" for name, kind in _KINDS.items())
_BEGIN: Final = f"CREATE TABLE results (job TEXT NOT NULL, {_NAMES_AND_TYPES}"
_END: Final = "PRIMARY KEY (job, trial))"
_UNSEALED_TABLE: Final = f"{_BEGIN}, {_END}"
_TABLE: Final = f"{_BEGIN}, {SEAL} TEXT, {_END}"  # the same when the seal is added to one of before
_ADD_SEAL: Final = f"ALTER TABLE results ADD COLUMN {SEAL} TEXT"
_LONGEST: Final = 2**20  # bytes of a value or a statement
_BESIDE: Final = ("-journal", "-wal", "-shm")  # what SQLite looks for beside a file
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")


@dataclass(frozen=True)
class Store:
    """A file of finished jobs, one row per job and trial.

    A job is written in one transaction with all its trials: it is there wholly or not at all.
    The journal is SQLite's rollback journal, not its write-ahead log: a commit per second needs no
    log, and between two commits there is one file and nothing beside it.

    Parameters
    ----------
    path : path-like
        The file. `create` makes it, `check` says what is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.benchmark import Store, grid, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/results.sqlite").create()
    ...     n_written = run(grid(["oracle"], ["2"], [2], seeds=[0, 1], rows=50), store)
    ...     print([(row["method"], row["seed"]) for row in store.records()])
    [('oracle', 0), ('oracle', 1)]
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    def create(self) -> "Store":
        """Make the file if there is none; check that it is a store that can be written."""
        if not self.path.exists() and not self.path.is_symlink():
            self._make()
        else:
            sweep(self.path.parent)
        self.check()
        with self._transaction() as connection:
            if not _is_sealed(connection):  # made before rows had seals
                connection.execute(_ADD_SEAL)
        return self

    def check(self) -> "Store":
        """Raise `StoreError` unless this is a whole store of this protocol."""
        if self.path.is_dir():
            raise StoreError(f"{self.path} is a folder: name a file with --store.")
        if not self.path.exists():
            raise StoreError(f"there is no store {self.path}: isrlearn bench run makes one.")
        if self.path.stat().st_size == 0:
            raise self._damaged("it is empty")
        # Not opened by hand: closing a file drops the locks that SQLite has on it in this process.
        with self._connection() as connection:
            self._check_contents(connection)
        return self

    def finished(self) -> set[str]:
        """Return the keys of all finished jobs."""
        with self._connection() as connection:
            return {key for (key,) in connection.execute("SELECT DISTINCT job FROM results")}

    def has(self, key: str) -> bool:
        """Return whether a job is finished."""
        with self._connection() as connection:
            return _has(connection, key)

    def add(self, results: Iterable[JobResult], *, instead_of: Iterable[str] = ()) -> int:
        """Write finished jobs, all or none, and leave alone what is there; return how many are new.

        Parameters
        ----------
        results : iterable of JobResult
            Finished jobs.
        instead_of : iterable of str, default=()
            Keys of jobs that are dropped when these are written, and only then.
        """
        with self._transaction() as connection:
            _drop(connection, instead_of)
            return sum(_insert(connection, result) for result in results)

    def forget(self, keys: Iterable[str]) -> None:
        """Drop jobs, all or none.

        Parameters
        ----------
        keys : iterable of str
            Keys of the jobs.
        """
        with self._transaction() as connection:
            _drop(connection, keys)

    def records(self) -> list[dict[str, Any]]:
        """Return all rows in a fixed order, each as a dictionary."""
        names = ", ".join(COLUMNS)
        order = ", ".join([*SPEC_COLUMNS, "trial"])
        with self._connection() as connection:
            rows = connection.execute(f"SELECT {names} FROM results ORDER BY {order}")
            return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def _make(self) -> None:
        # Made aside and linked into place: no one ever sees half a store, and none is overwritten.
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with staging(self.path.parent) as stage:
                _write_empty(stage / self.path.name)
                _put_in_place(stage / self.path.name, self.path)
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(
                f"--store {self.path} cannot be made: {reason}. Make room, look at the rights of "
                "the folder, or name another place."
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # A connection per use: they must not be shared between threads or outlive a fork.
        real = Path(os.path.realpath(self.path))  # SQLite looks beside it, not beside a link
        for end in _BESIDE:
            _refuse_beside(Path(f"{real}{end}"))
        address = f"{real.as_uri()}?mode=rw"  # never makes a file
        connection = None
        try:
            connection = sqlite3.connect(
                address, uri=True, timeout=WAIT_SECONDS, isolation_level=None
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.OperationalError as error:
            raise StoreError(
                f"{self.path} cannot be used now: {error}. What it has is safe; look at the "
                "folder, its rights and the space on the disk."
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error
        finally:
            if connection is not None:
                connection.close()

    def _check_contents(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise self._damaged("it is an SQLite file of another program")
        self._refuse_other_contents(connection)
        # Not quick_check: what an index says counts, too.
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise self._damaged(f"it is damaged ({' '.join(state.split())})")
        # SQLite takes a last page that is cut short for one that ends in zeros.
        (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        if self.path.stat().st_size < n_pages * page_size:
            raise self._damaged("its end is missing")
        (protocol,) = connection.execute("PRAGMA user_version").fetchone()
        if protocol != PROTOCOL:
            newer = "; install a newer isrlearn to use it" if protocol > PROTOCOL else ""
            raise self._damaged(
                f"it has protocol {protocol}, and this version writes {PROTOCOL}{newer}"
            )
        self._refuse_other_types(connection)
        self._check_rows(connection)

    def _check_rows(self, connection: sqlite3.Connection) -> None:
        """Refuse rows whose values are not those written, which SQLite cannot see."""
        if not _is_sealed(connection):
            return
        names = ", ".join((SEAL, "job", *COLUMNS))
        for found, *values in connection.execute(f"SELECT {names} FROM results"):
            if found is not None and found != _seal(values):
                raise self._damaged(f"a row of job {values[0]!r:.40} is not what was written")

    def _refuse_other_contents(self, connection: sqlite3.Connection) -> None:
        """Refuse views, triggers and tables that are not ours: SQLite would run what they say."""
        found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL LIMIT 2")
        if [sql for (sql,) in found] not in ([_TABLE], [_UNSEALED_TABLE]):
            raise self._damaged("it holds other things than the table of results")

    def _refuse_other_types(self, connection: sqlite3.Connection) -> None:
        """Refuse values of another type than that of their column, which SQLite would take."""
        wrong = " OR ".join(
            f"typeof({name}) NOT IN ('{kind.lower()}', 'null')" for name, kind in _KINDS.items()
        )
        (count,) = connection.execute(f"SELECT count(*) FROM results WHERE {wrong}").fetchone()
        if count:
            raise self._damaged(f"{count} of its rows hold values of another type")

    def _damaged(self, why: str) -> StoreError:
        return StoreError(
            f"{self.path} cannot be used as a store: {why}. It was left as it is; name another "
            "file with --store, or restore this one from a copy."
        )


def _refuse_beside(path: Path) -> None:
    """Refuse a file beside a store by which SQLite would change or delete a third one."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            why = "is no regular file, and SQLite would write to it"
        elif path.name.endswith(_BESIDE[0]) and _names_another(path):
            why = "names another file, which SQLite would delete"
        else:
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}): look at its rights."
        ) from error
    raise StoreError(
        f"{path} {why}: isrlearn writes no such file. All was left as it is; if it comes from "
        "somebody else, delete it."
    )


def _names_another(journal: Path) -> bool:
    """Return whether a journal ends in the name of a super-journal, which SQLite deletes.

    Its last 16 bytes are then the length of the name, a checksum and the mark of journals. Only a
    commit to several attached files writes them.
    """
    with journal.open("rb") as file:  # unlike the store, it has no locks that closing would drop
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_JOURNAL_MAGIC)))
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC


def _write_empty(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {PROTOCOL}")
        connection.execute(_TABLE)
        connection.commit()  # on disk, too: SQLite waits for it


def _put_in_place(unfinished: Path, path: Path) -> None:
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return  # another process was faster; its store is as good
    except OSError:  # a file system without hard links: no rename, which could overwrite
        with suppress(FileExistsError):
            _copy_to_new(unfinished, path)
    sync(path.parent)


def _copy_to_new(source: Path, path: Path) -> None:
    with path.open("xb") as file:
        try:
            file.write(source.read_bytes())
            file.flush()
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _insert(connection: sqlite3.Connection, result: JobResult) -> int:
    key = result.job.key
    if _has(connection, key):
        return 0
    marks = ", ".join("?" * (2 + len(COLUMNS)))
    names = ", ".join(("job", *COLUMNS, SEAL))
    rows = [(key, *row.values()) for row in records_of(result)]
    rows = [(*row, _seal(row)) for row in rows]
    connection.executemany(f"INSERT INTO results ({names}) VALUES ({marks})", rows)
    return 1


def _drop(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    connection.executemany("DELETE FROM results WHERE job = ?", [(key,) for key in keys])


def _seal(values: Sequence[Any]) -> str:
    """Return a hash of the values of a row, as SQLite gives them back."""
    return hashlib.sha256(repr([_as_stored(v) for v in values]).encode()).hexdigest()[:16]


def _as_stored(value: Any) -> Any:
    """Return a value as SQLite gives it back: whole numbers may be floats, and NaN is nothing."""
    if not isinstance(value, int | float):
        return value
    return None if value != value else float(value)


def _is_sealed(connection: sqlite3.Connection) -> bool:
    columns = connection.execute("PRAGMA table_info(results)")
    return SEAL in {name for _, name, *_ in columns}


def _has(connection: sqlite3.Connection, key: str) -> bool:
    found = connection.execute("SELECT 1 FROM results WHERE job = ? LIMIT 1", (key,))
    return found.fetchone() is not None


def records_of(result: JobResult) -> list[dict[str, Any]]:
    """Return the rows of a finished job, in the order of `COLUMNS`."""
    spec = _spec_values(result.job)
    rows = []
    for trial in result.trials:
        values = {
            **spec,
            "trial": trial.trial,
            "hyperparameters": json.dumps(trial.hyperparameters, sort_keys=True),
            "error_train": trial.error_train,
            "error_validation": trial.error_validation,
            "error_test": trial.error_test,
            "error_test_worst": trial.error_test_worst,
            "seconds": result.seconds,
            "version": __version__,
        }
        rows.append({name: values[name] for name in COLUMNS})
    return rows


def _spec_values(job: Job) -> dict[str, Any]:
    flat = job.as_dict()
    return {name: flat[name] for name in SPEC_COLUMNS}
