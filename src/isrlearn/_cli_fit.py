"""``isrlearn fit``: one model from a file, in memory, in chunks, or on a cluster."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from isrlearn._cli_data import AS_FOUND, Columns
from isrlearn._cli_options import Data, Flag, Force, Number, Rule, Scheduler
from isrlearn._cli_pages import Html, made_here, page_file
from isrlearn._cli_progress import watching, working
from isrlearn._cli_signals import Interrupted
from isrlearn._cli_support import (
    Result,
    UserError,
    all_or_nothing,
    answering,
    files_read,
    folder_in_use,
    may_write,
    mistakes_of_the_user,
    must_exist,
    tell,
    written_together,
)
from isrlearn._files import only_user

SLOWEST_SHOWN = 1e4  # rows per second
LOOKS, BLOCK = 1024, 4096  # blocks and their bytes by which a file is known again
LARGE = 2**30  # bytes of a file that is read in chunks if nothing else is said


@answering
def fit(
    data: Data,
    /,
    *,
    columns: Columns = AS_FOUND,
    out: Path,
    rule: Rule | None = None,
    method: str | None = None,
    n_spurious: Number = None,
    prior: Literal["train"] | None = None,
    stream: Annotated[bool | None, Parameter(negative="--no-stream")] = None,
    distributed: Annotated[bool, Flag] = False,
    scheduler: Scheduler = None,
    html: Html = None,
    force: Force = False,
) -> Result:
    """Fit ISR on your data and save the model as one file.

    Fits the default estimator and the one that validation rows choose, keeps the default unless
    neither removes anything, and says where the two disagree. The result is one linear map of the
    features, saved without pickle.

    A file of more than 1 GiB is read in chunks: what is chosen is chosen on a sample of 20 000 rows
    and fitted on all, in bounded memory. After a stop, run the same command to go on.

    Example: isrlearn fit patients.csv --label disease --environment hospital --out m.safetensors

    Example: isrlearn fit patients.csv --label disease --environment hospital --out m.safetensors
    --method group-dro

    Example: isrlearn fit patients.csv --label disease --environment hospital --out m.safetensors
    --html

    Example: isrlearn fit features.safetensors --out m.safetensors --distributed

    Parameters
    ----------
    out
        File for the model, ending in .safetensors.
    rule
        Choose removal and head by the worst group of validation rows, by their average, or by the
        training environments, left out one by one; ship what was chosen.
    method
        Ship another linear method: erm, class-reweighted, group-reweighted, subsampled, group-dro,
        dfr, leace, leace-class, inlp, coral, v-rex, irm, isr, isr-chosen, or my_module:MyEstimator.
    n_spurious
        Remove so many directions, 0 for none.
    prior
        train: probabilities are of classes as frequent as in the training rows, which moves
        predictions towards frequent classes. If left out: as the method counts classes; ISR counts
        them as equally frequent.
    stream
        Read the file in chunks, whatever its size (.npz, .safetensors, .parquet, folder), or not.
    distributed
        Read it in chunks by the workers of a Dask cluster: processes of this machine, or those of
        the scheduler, which must see the file.
    """
    must_exist(data)
    inputs = files_read(data)
    may_write(out, force, ".safetensors", reads=inputs)
    if scheduler is not None and not distributed:
        raise UserError(f"--scheduler {scheduler} needs --distributed.")
    page = page_file(html, out, force, inputs)
    files = {"model": out} if page is None else {"model": out, "report": page}
    begin = time.monotonic()
    wanted: dict[str, Any] = {
        "rule": rule,
        "method": method,
        "n_spurious": n_spurious,
        "prior": prior,
    }

    def save(done: Any) -> None:
        with written_together(*files.values()) as (model, *pages):
            done.model.save(model)
            for place in pages:
                _write_page(done, place, data, begin)

    with working("Loading ..."):
        from isrlearn.leaderboard import fit_data
    if distributed or (stream if stream is not None else _size(data) > LARGE):
        with folder_in_use(out.parent):
            how = distributed, scheduler, page is not None
            done = _fit_in_chunks(data, columns, out, save, wanted, *how)
    else:
        with all_or_nothing():
            with working(f"Reading {data} ..."):
                rows = columns.read(data)
            tell(rows.notes)
            with watching() as watch:
                done = fit_data(
                    rows,
                    **wanted,
                    pca=columns.pca,
                    impute=columns.impute,
                    watch=lambda i, n: watch("Choosing", i, n),
                )
            save(done)
    return Result(_figures(done), list(_text(done)), files)


def _write_page(done: Any, place: Path, data: Path, begin: float) -> None:
    from isrlearn.reporting import report

    with working("Writing the report ..."):
        title = f"ISR fitted on {data.name}"
        place.write_text(report(done, title=title, made=made_here(begin)).html, encoding="utf-8")


def _fit_in_chunks(
    data: Path,
    columns: Columns,
    out: Path,
    save: Callable[[Any], None],
    wanted: dict[str, Any],
    distributed: bool,
    scheduler: str | None,
    with_scene: bool,
) -> Any:
    from isrlearn.leaderboard import fit_chunks

    begun = out.with_name(f".{out.name}.passes")
    if begun.resolve() in (data.resolve(), *data.resolve().parents):  # it is removed at the end
        raise UserError(f"{data} is where --out {out} keeps its sums: name another --out.")
    try:
        with mistakes_of_the_user(), _alone(begun, out), _rows_watched() as watch:
            file = columns.open(data)
            tell(file.notes)
            with _parts(data, columns, file, distributed, scheduler, watch) as open_part:
                done = fit_chunks(
                    file,
                    _resumed(open_part, data, begun),
                    **wanted,
                    pca=columns.pca,
                    impute=columns.impute,
                    with_scene=with_scene,
                    watch=lambda i, n: watch("Choosing", i, n),
                )
            save(done)
            shutil.rmtree(begun, ignore_errors=True)
    except KeyboardInterrupt:
        kept = f"finished passes are kept in {begun}: run the same command to go on, or remove it."
        raise Interrupted(kept if begun.exists() else "nothing was written.") from None
    return done


@contextmanager
def _alone(folder: Path, out: Path) -> Iterator[None]:
    """Hold the folder of the sums: whoever ends first removes it."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as held:
        ours = False
        with suppress(FileNotFoundError):  # the other one ends just now
            ours = held.enter_context(only_user(folder))
        if not ours:
            raise UserError(
                f"--out {out} is being fitted by another process: wait for it, or name another."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # it holds sums, or is gone
                folder.rmdir()


def _resumed(open_part: Any, data: Path, folder: Path) -> Any:
    """Return the same parts, with sums that are kept."""
    from isrlearn._resume import digest
    from isrlearn.io import Resumed

    name = f"{data.resolve()} {_identity(data)}"

    def open_and_keep(part: int, prepare: Any) -> Any:
        inside = getattr(prepare, "preparation", prepare)
        return Resumed(open_part(part, prepare), folder, f"{name} {part} {digest(inside)}")

    return open_and_keep


def _identity(data: Path) -> str:
    """Return a hash of sizes, times and some of the content of a file, or of those in a folder.

    Times alone are not enough: clocks jump, and copies may keep the time of what they replace.
    """
    files = sorted(data.iterdir()) if data.is_dir() else [data]
    found = hashlib.sha256()
    for path in files:
        about = path.stat()
        found.update(f"{path.name} {about.st_size} {about.st_mtime_ns};".encode())
        if path.is_file():
            _feed_some(found, path, about.st_size, max(1, LOOKS // len(files)))
    return found.hexdigest()


def _feed_some(found: Any, path: Path, size: int, looks: int) -> None:
    """Feed blocks that are spread over a file, its first and its last among them."""
    with path.open("rb") as file:
        for look in range(looks):
            file.seek(max(0, size - BLOCK) * look // max(1, looks - 1))
            found.update(file.read(BLOCK))
            if size <= BLOCK:
                return


@contextmanager
def _parts(
    data: Path,
    columns: Columns,
    file: Any,
    distributed: bool,
    scheduler: str | None,
    watch: Any,
) -> Iterator[Any]:
    """Yield the function that opens a part of the rows, here or on a cluster."""
    if not distributed:
        yield lambda part, prepare: file.rows(part, prepare=prepare, watch=watch)
        return
    try:
        from isrlearn.distributed import DaskRows, cluster
    except ImportError as error:
        raise UserError(
            "--distributed needs the extra dask: pip install 'isrlearn[dask]'"
        ) from error
    with cluster(scheduler) as client:
        yield lambda part, prepare: DaskRows.from_files(
            data.resolve(),
            label=columns.label,
            environment=columns.environment or (),
            split=columns.split,
            drop=columns.drop or (),
            part=part,
            prepare=prepare,
            client=client,
            watch=watch,
        )


@contextmanager
def _rows_watched() -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a function of (what, done, all) that shows pass, rate and time left."""
    with watching() as watch:
        title, n_pass, last, first, begin = "", 0, 0, 0, 0.0

        def show(what: str, done: int, total: int | None) -> None:
            nonlocal title, n_pass, last, first, begin
            if what != title or done <= last:
                n_pass = n_pass + 1 if what == title else 1
                title, first, begin = what, done, time.monotonic()
            last = done
            rate = (done - first) / max(time.monotonic() - begin, 1e-3)
            # Of a cluster tasks are counted, not rows: there are too few for a rate.
            speed = f" ({rate / 1e6:.2f} million rows/s)" if rate > SLOWEST_SHOWN else ""
            name = f"{what} {n_pass}" if n_pass > 1 else what
            watch(f"{name}{speed}", done, total or done)

        yield show


def _size(data: Path) -> int:
    if data.suffix in (".csv", ".tsv"):
        return 0  # read as a whole: text cannot be cut at a row
    files = data.iterdir() if data.is_dir() else [data]
    return sum(file.stat().st_size for file in files)


def _shares_moved(classes: list[Any], made: dict[str, Any]) -> str:
    """Say how often the class that a prior moves away from most is predicted."""
    pairs = zip(made["class_shares"], made["predicted_shares"], classes, strict=True)
    share, predicted, name = max(pairs, key=lambda pair: pair[0] - pair[1])
    return (
        f"With the prior of the training rows, the model predicts {name} for "
        f"{100 * predicted:.1f} % of them; {100 * share:.1f} % are {name}."
    )


def _figures(done: Any) -> dict[str, Any]:
    test = None if done.test is None else _scores(done.test)
    differ = done.sentence if not done.validation.get("agree") else ""
    both = {"validation": dict(done.validation) or None, "disagreement": differ or None}
    return {**done.model.made, **both, "test": test}


def _scores(scores: Any) -> dict[str, Any]:
    label, environment = scores.worst_group
    return {
        "average": scores.average,
        "worst_group": scores.worst,
        "worst": {"label": label, "environment": environment},
    }


def _text(done: Any) -> Iterator[str]:
    made = done.model.made
    how = f" by {made['rule']}" if made["rule"] else ""
    score = f" ({100 * made['score']:.1f} % by that rule)" if made["rule"] else ""
    setting = f", {made['setting']}" if made["setting"] else ""
    yield f"Fitted: {done.title}{how}{setting}{score}."
    yield f"Removed: {done.removed}. Features: {made['prepared']}."
    if done.sentence:
        yield done.sentence
    if made["untrained"]:
        yield f"There are {made['untrained']}."
    if "predicted_shares" in made:
        yield _shares_moved(done.model.classes.tolist(), made)
    if done.test is not None:
        label, environment = done.test.worst_group
        yield (
            f"Test rows: average {100 * done.test.average:.1f} %, worst group "
            f"{100 * done.test.worst:.1f} % (label {label}, {environment})."
        )
