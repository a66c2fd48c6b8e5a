"""``isrlearn diagnose``, and what commands on a file of rows share."""

import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from isrlearn._cli_options import Count, Data, Force, Names, Seed
from isrlearn._cli_pages import Html, made_here, page_file
from isrlearn._cli_progress import working
from isrlearn._cli_support import (
    Result,
    all_or_nothing,
    answering,
    files_read,
    must_exist,
    tell,
    written_together,
)


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """What is what in the file.

    Parameters
    ----------
    label
        Column of the class labels; in .npz and .safetensors another array than labels.
    environment
        Column of the environments, such as the hospital; given more than once, the columns are
        crossed. In .npz and .safetensors another array than environments.
    split
        Column that says train, validation or test; a column called split is found by itself.
    drop
        A column that is not a feature, such as an ID; may be given more than once.
    impute
        median: replace missing values by the median of the training rows.
    pca
        Keep at most so many principal components of the features.
    """

    label: str | None = None
    environment: Names = None
    split: str | None = None
    drop: Names = None
    impute: Literal["median"] | None = None
    pca: Count = 100

    def words(self, file: Path) -> str:
        """Return the words by which a command finds the same rows."""
        given = [("label", self.label), *(("environment", name) for name in self.environment or ())]
        given += [("split", self.split), *(("drop", name) for name in self.drop or ())]
        given += [("impute", self.impute), ("pca", None if self.pca == 100 else str(self.pca))]
        return shlex.quote(str(file)) + option_words(given)

    def read(self, file: Path) -> Any:
        """Read the file."""
        from isrlearn.io import read_data

        return read_data(
            file,
            label=self.label,
            environment=self.environment or (),
            split=self.split,
            drop=self.drop or (),
        )

    def open(self, file: Path) -> Any:
        """Open the file to be read in chunks."""
        from isrlearn.io._open import open_file
        from isrlearn.io._roles import asked_for

        asked = asked_for(self.label, self.environment or (), self.split, self.drop or ())
        return open_file(file, asked)


AS_FOUND = Columns()


def option_words(given: Iterable[tuple[str, str | None]]) -> str:
    """Return options as they are typed; a value that begins with a dash is joined to its name."""
    words = (
        f" --{name}={shlex.quote(value)}"
        if value.startswith("-")
        else f" --{name} {shlex.quote(value)}"
        for name, value in given
        if value
    )
    return "".join(words)


@answering
def diagnose(
    data: Data,
    /,
    *,
    columns: Columns = AS_FOUND,
    seed: Seed = 0,
    html: Html = None,
    force: Force = False,
) -> Result:
    """Say what differs between environments, how sure it is, and which assumption fails.

    Example: isrlearn diagnose patients.csv --label disease --environment hospital

    Example: isrlearn diagnose features.npz --html diagnosis.html
    """
    must_exist(data)
    page = page_file(html, Path(f"{data.stem}-diagnosis"), force, files_read(data))
    begin = time.monotonic()
    with working("Loading ..."):
        from isrlearn.leaderboard._fit import tests_on
    with all_or_nothing():
        with working(f"Reading {data} ..."):
            rows = columns.read(data)
        tell(rows.notes)
        with working("Testing ..."):
            tested = tests_on(rows, pca=columns.pca, impute=columns.impute, seed=seed)
            found = tested.isr.diagnose()
        if page is not None:
            with written_together(page, option="--html") as (place,):
                notes = [f"Features: {tested.prepared}. Values of rows are shown after that."]
                made = made_here(begin, seed=str(seed), notes=notes)
                _write_diagnosis(tested, place, data, made)
    figures = {**diagnosis_figures(found), "prepared": tested.prepared}
    files = {} if page is None else {"report": page}
    return Result(figures, [str(found), f"Features: {tested.prepared}."], files)


def _write_diagnosis(tested: Any, place: Path, data: Path, made: Any) -> None:
    from isrlearn.reporting import report

    title = f"What differs between environments in {data.name}"
    page = report(
        tested.isr,
        tested.X,
        tested.y,
        environments=tested.environments,
        title=title,
        made=made,
        rows=tested.rows,
    )
    place.write_text(page.html, encoding="utf-8")


def diagnosis_figures(found: Any) -> dict[str, Any]:
    """Return a diagnosis for machines."""
    names = "verdict method n_features n_spurious most_by_means classes environments counts angle"
    shares = found.feature_shares_removed
    tests = {name: getattr(found, name) for name in ("tests", "means", "covariances")}
    return {
        **{name: getattr(found, name) for name in names.split()},
        "target_share_removed": found.target_share_removed,
        "warnings": found.warnings,
        "findings": [asdict(finding) for finding in found.findings],
        **{
            name: None if t is None else {"rank": t.rank, "alpha": t.alpha, "p_values": t.p_values}
            for name, t in tests.items()
        },
        "feature_shares_removed": None
        if shares is None
        else dict(zip(found.feature_names, shares.tolist(), strict=True)),
    }
