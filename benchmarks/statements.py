"""The paper's statements on the Linear Unit-Tests, checked against a store.

    python benchmarks/statements.py isrlearn-bench.sqlite

A method "reaches the oracle" in a cell if its mean test error is within 0.01 of the oracle's. The
store must hold the profile `exact`; statements on rivals use their published errors.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from isrlearn.benchmark import Store
from isrlearn.benchmark.summary import frame_of, mean_errors, of_figure, published
from isrlearn.benchmark.tables import text_table

NEAR = 0.01
D_S = 5
ALL = range(2, 11)


class Results:
    """Mean test errors by example, method and number of environments."""

    def __init__(self, store: Path) -> None:
        means = mean_errors(of_figure(frame_of(Store(store).check())))
        self.ours = self._lookup(means)
        self.theirs = self._lookup(published())

    @staticmethod
    def _lookup(table: pd.DataFrame) -> dict[tuple[str, str, int], float]:
        keys = zip(table["example"], table["method"], table["n_environments"], strict=True)
        return dict(zip(keys, table["error_test"], strict=True))

    def excess(self, example: str, method: str, E: int) -> float:
        """Return by how much a method is worse than the oracle; a published one if not run."""
        key = (example, method, E)
        error = self.ours[key] if key in self.ours else self.theirs[key]
        return error - self.ours[example, "oracle", E]


def reaches(results: Results, method: str, examples: Iterable[str], Es: Iterable[int]) -> str:
    """Say in which cells a method reaches the oracle, and where it does not."""
    cells = [(x, E, results.excess(x, method, E)) for x in examples for E in Es]
    far = [(x, E, excess) for x, E, excess in cells if excess > NEAR]
    if not far:
        worst = max(cells, key=lambda cell: cell[2])
        return f"held: at most {worst[2]:+.4f} (Example {worst[0]}, E = {worst[1]})"
    named = ", ".join(f"{x} E = {E}: {excess:+.3f}" for x, E, excess in far[:6])
    more = f" and {len(far) - 6} more" if len(far) > 6 else ""
    verdict = "did not hold" if len(far) == len(cells) else "held in part"
    return f"{verdict}: {len(far)} of {len(cells)} cells are off ({named}{more})"


def rivals_need_more(results: Results) -> str:
    """Say from which E on the published rivals reach the oracle on 3 and 3s."""
    parts = []
    for method in ("irmv1", "iga", "erm-adam", "and-mask"):
        for example in ("3", "3s"):
            near = [E for E in ALL if results.excess(example, method, E) <= NEAR]
            parts.append(
                f"{method} {example}: {f'from E = {near[0]}' if near else 'not to E = 10'}"
            )
    return "held: " + ", ".join(parts)


def rivals_fail_on_2(results: Results) -> str:
    """Compare the rivals on 2 and 2s, published and solved exactly."""
    worst = [
        f"{method} {x}: {min(results.excess(x, method, E) for E in ALL):.3f} to "
        f"{max(results.excess(x, method, E) for E in ALL):.3f}"
        for method in ("erm-adam", "irmv1", "iga", "erm-whitened")
        for x in ("2", "2s")
    ]
    return "holds for the published runs only: excess of " + ", ".join(worst)


def alike_on_primed(results: Results) -> str:
    """Compare ERM, solved exactly, on the primed examples and those without."""
    differences = [
        results.ours[f"{x}'", method, E] - results.ours[x, method, E]
        for x in ("3", "3s")
        for method in ("erm-standardised", "erm-whitened")
        for E in ALL
    ]
    mean = sum(differences) / len(differences)
    return (
        f"for exact ERM the error is {mean:+.3f} higher on average ({max(differences):+.3f} most)"
    )


def reaching(method: str, examples: str, first: int) -> Callable[[Results], str]:
    """Return the check that a method reaches the oracle from `first` environments on."""
    return lambda results: reaches(results, method, examples.split(), range(first, 11))


SIX = "2 2s 3 3s 3' 3s'"
VARYING = "2 2s 3' 3s'"
STATEMENTS: dict[str, Callable[[Results], str]] = {
    "On 2/2s ISR-Mean reaches the oracle with few environments": reaching("isr-mean", "2 2s", 2),
    "On 2/2s ISR-Cov reaches the oracle with few environments": reaching("isr-cov", "2 2s", 2),
    "On 2/2s ISRs significantly outperform the others": rivals_fail_on_2,
    "On 3/3s ISR-Mean reaches the oracle for E > 5": reaching("isr-mean", "3 3s", D_S + 1),
    "On 3/3s ISR-Cov reaches the oracle for E > 5": reaching("isr-cov", "3 3s", D_S + 1),
    "On 3/3s IRM and others need more environments": rivals_need_more,
    "On 3'/3s' ISR-Cov matches the oracle for E >= 2": reaching("isr-cov", "3' 3s'", 2),
    "On 3'/3s' the other algorithms do as on 3/3s": alike_on_primed,
    "ISR-Mean matches the oracle for E > d_s": reaching("isr-mean", SIX, D_S + 1),
    "ISR-Cov matches the oracle for E >= 2 where variances differ": reaching("isr-cov", VARYING, 2),
    "(ours) ISR reaches the oracle where variances differ": reaching("isr", VARYING, 2),
    "(ours) ISR reaches the oracle for E > d_s": reaching("isr", SIX, D_S + 1),
}


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    results = Results(parser.parse_args().store)
    rows = [[text, check(results)] for text, check in STATEMENTS.items()]
    print(text_table(["statement", "in our runs"], rows, markdown=True))


if __name__ == "__main__":
    main()
