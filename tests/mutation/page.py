"""Write docs/mutants.md from what `mutmut run` left in mutants/ and from survivors.toml.

A survivor without a reason, or a reason without its survivor, is named and nothing is written.
"""

import os
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REASONS = Path(__file__).parent / "survivors.toml"
PAGE = ROOT / "docs" / "mutants.md"
KILLED = {"killed", "timeout"}
SURVIVED = {"survived", "no tests"}
HEAD = """\
# Mutants

A test is worth what it would notice. [mutmut](https://mutmut.readthedocs.io) changes one thing at a
time in the modules below, a *mutant*, and runs their tests: a mutant is killed if one fails, or if
they do not end, and else it survives.

    make mutants    # about ten minutes; writes this page anew

Tests run with a fixed seed and with five examples of each law that hypothesis draws, always the
same: no mutant is killed by luck in one run and not in the next. `make mutants SEED=2` tries
another seed. `[tool.mutmut]` in `pyproject.toml` lists the modules and the tests. Properties are
not mutated, nor are the words of a formatted message: mutmut leaves both alone.

Mutants of strings change the letters of a message or of an option. The last column leaves them out.

| module | mutants | killed | survivors | killed | killed without strings |
|---|---|---|---|---|---|
"""
SURVIVORS = """
## Survivors

Each is listed below the reason why it is left alive, as `was` → `is`.
`tests/mutation/survivors.toml` holds the reasons.
"""


@dataclass(frozen=True)
class Mutant:
    """One change, as the lines that it replaces and those that it puts there."""

    module: str
    function: str
    before: str
    after: str
    killed: bool

    @property
    def name(self) -> str:
        """What survivors.toml calls it: no number, which any edit would change."""
        return f"{self.module}.{self.function}: {self.after}"

    @property
    def of_string(self) -> bool:
        """Whether it changes letters of a string and nothing else."""
        same_letters = self.before.lower() == self.after.lower()
        return same_letters or self.before == self.after.replace("XX", "")


def results() -> Iterator[Mutant]:
    """Yield the mutants of the last run, by module."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key

    os.chdir(ROOT)
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for key, exit_code in data.exit_code_by_key.items():
            status = status_by_exit_code[exit_code]
            if status not in KILLED | SURVIVED:
                sys.exit(f"{key} is {status!r}: run `mutmut run` to its end first.")
            function, owner = orig_function_and_class_names_from_key(key)
            changed = get_diff_for_mutant(key, path=path).splitlines()[2:]
            before, after = (_joined(changed, sign) for sign in "-+")
            where = f"{owner}.{function}" if owner else function
            yield Mutant(path.stem, where, before, after, status in KILLED)


def _joined(diff: list[str], sign: str) -> str:
    return " ".join(line[1:].strip() for line in diff if line.startswith(sign))


def reasons() -> dict[str, str]:
    """Return the reason of each survivor, by its name."""
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"]
    return {name: entry["why"] for entry in listed for name in entry["mutants"]}


def page(mutants: Iterable[Mutant], why: dict[str, str]) -> str:
    """Return the page: a row for each module and for all, then survivors by reason."""
    mutants = list(mutants)
    by_module = {name: [m for m in mutants if m.module == name] for name in _modules(mutants)}
    rows = [_row(f"`{name}.py`", own) for name, own in by_module.items()]
    text = HEAD + "".join([*rows, _row("all", mutants)]) + SURVIVORS
    survivors = [m for m in mutants if not m.killed]
    for reason in dict.fromkeys(why.values()):
        text += f"\n{reason}\n\n"
        text += "".join(_line(m) for m in survivors if why[m.name] == reason)
    return text


def _modules(mutants: list[Mutant]) -> list[str]:
    return list(dict.fromkeys(m.module for m in mutants))


def _row(name: str, mutants: list[Mutant]) -> str:
    killed = sum(m.killed for m in mutants)
    counts = f"{len(mutants)} | {killed} | {len(mutants) - killed}"
    others = [m for m in mutants if not m.of_string]
    return f"| {name} | {counts} | {_share(mutants)} | {_share(others)} |\n"


def _share(mutants: list[Mutant]) -> str:
    return f"{100 * sum(m.killed for m in mutants) / len(mutants):.1f} %"


def _line(mutant: Mutant) -> str:
    return f"- `{mutant.module}.{mutant.function}`: `{mutant.before}` → `{mutant.after}`\n"


def main() -> None:
    """Write the page, or say what is missing."""
    mutants, why = list(results()), reasons()
    survivors = {m.name for m in mutants if not m.killed}
    for name in sorted(survivors - why.keys()):
        print(f"no reason for {name!r}")
    for name in sorted(why.keys() - survivors):
        print(f"no survivor {name!r}")
    if survivors != why.keys():
        sys.exit(f"mend {REASONS.relative_to(ROOT)}, or add a test.")
    PAGE.write_text(page(mutants, why), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
