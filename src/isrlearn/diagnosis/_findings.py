"""Which assumption fails, and what to do about it."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from isrlearn.diagnosis._diagnosis import Finding
from isrlearn.moments import TINY_CELL_ROWS
from isrlearn.subspace import RankChoice, RankStep
from isrlearn.typing import Float64Array, IntArray

WIDE_ANGLE: Final = np.pi / 6
WRONG_ANGLE: Final = np.pi / 4
LARGE_SHARE: Final = 0.5
LARGE_RATIO: Final = 1.5
LARGE_RATIO_OF_TWO: Final = 4.0
HIGH_CORRELATION: Final = 0.9


class Observations(NamedTuple):
    """What a diagnosis looks at."""

    n_features: int
    n_spurious: int
    n_environments: int
    most_by_means: int
    counts: IntArray
    """(k, E)"""
    tests: RankChoice | None
    means: RankChoice | None
    covariances: RankChoice | None
    angle: tuple[float, float, float] | None
    share: float | None
    spreads: Float64Array
    """(E, 2) of a continuous target: its variance, and that of x given it; else empty."""
    stability: float | None
    """P-value of equal regressions of a continuous target on all features."""
    orders: str
    """What the method looks at."""
    scale: float
    """What is left of the removed part."""

    @property
    def last(self) -> RankStep | None:
        """The last test."""
        return self.tests.steps[-1] if self.tests is not None and self.tests.steps else None


def judge(seen: Observations) -> tuple[str, tuple[Finding, ...]]:
    """Return the verdict in one sentence, and the findings, warnings first."""
    every = (_of_the_model, _of_the_environments, _of_the_tests)
    findings = [finding for look in every for finding in look(seen)]
    findings.sort(key=lambda finding: not finding.is_warning)
    return _verdict(seen, {finding.code for finding in findings}), tuple(findings)


def _verdict(seen: Observations, codes: set[str]) -> str:
    r = seen.n_spurious
    if "no_environments" in codes:
        return "no environments were given; nothing can be compared, and nothing is removed."
    done = "removed" if seen.scale == 0 else f"shrunk to {seen.scale:g}"
    removed = f"{r} direction{'s' if r != 1 else ''} {done}"
    if "target_is_an_effect" in codes or "nothing_is_invariant" in codes:
        return "these data do not fit the method; do not rely on the result."
    if "nothing_differs" in codes:
        what = {"both": ""}.get(seen.orders, f" of {seen.orders}")
        return (
            f"no difference{what} between the environments given the target could be shown; "
            "nothing is removed."
        )
    if "target_is_stable" in codes:
        return f"{removed}, but without removal a regression would look as stable here."
    if "too_few_environments" in codes:
        return f"{removed}, but there may be more that these environments cannot show."
    if "beyond_the_means" in codes:
        return f"{removed}, more than the means of these environments are sure to show."
    if "uncertain_directions" in codes:
        return f"{removed}, but these rows do not say well which."
    if seen.tests is None:
        return f"{removed}, the number given by n_spurious; it was not tested."
    if "hint_of_more" in codes:
        return f"{removed}; of a further difference between the environments there is a hint only."
    return f"{removed}; no further difference between the environments is seen."


def _of_the_model(seen: Observations) -> Iterator[Finding]:
    """Look whether the method fits the data at all."""
    r, last = seen.n_spurious, seen.last
    if seen.n_environments == 0:
        yield Finding(
            "no_environments",
            True,
            "The estimator was fitted without environments.",
            "Pass environments= to fit.",
        )
    # See Example 1 of the Linear Unit-Tests: all that is given the target moves with it.
    if len(seen.spreads) > 1 and r > seen.n_features / 2:
        # Causes of variance s^2 make both variances a + b s^2: not their logarithms move in line.
        moves = bool(np.all(np.ptp(seen.spreads, axis=0) > 0))
        together = float(np.corrcoef(*seen.spreads.T)[0, 1]) if moves else 0.0
        ratio = float(seen.spreads[:, 0].max() / max(seen.spreads[:, 0].min(), 1e-300))
        # Two environments always move together or against each other: ask for a large difference.
        least = LARGE_RATIO if len(seen.spreads) > 2 else LARGE_RATIO_OF_TWO
        if together >= HIGH_CORRELATION and ratio >= least:
            yield Finding(
                "target_is_an_effect",
                True,
                f"Given the target, the environments differ in {r} of {seen.n_features} "
                "directions, and the spread of the features moves with that of the target. This "
                "is how it looks when features cause the target: then no direction keeps its "
                "relation given the target.",
                "ISR removes the causes together with the effects. Use a method that conditions "
                "on the features, such as regression on the causes.",
            )
    # After a rejection tests go on while they can.
    if last is not None and last.p_value <= last.level:
        yield Finding(
            "nothing_is_invariant",
            True,
            f"The environments differ in all {r + 1} direction(s) that the features span, also in "
            "the last, which is kept because something must be: none keeps its relation to the "
            "target.",
            "Look whether features cause the target, whether rows are labelled alike in all "
            "environments, or whether a difference of scale should be taken out first.",
        )
    stable = seen.stability is not None and seen.tests is not None and r > 0
    if stable and seen.stability > seen.tests.alpha:  # type: ignore[operator,union-attr]
        yield Finding(
            "target_is_stable",
            True,
            "The regression of the target on all features is the same in all environments as far "
            f"as can be seen (p = {seen.stability:.3f}), although the features given the target "
            "differ. This is how it looks when features cause the target and only they shift.",
            "Compare with a plain regression (n_spurious=0) in an environment left out.",
        )


def _of_the_environments(seen: Observations) -> Iterator[Finding]:
    """Look whether there are enough environments, and rows in them."""
    r, E = seen.n_spurious, seen.n_environments
    # All that the means can show is seen, and covariances show nothing.
    all_by_means = r in (E - 1, *range(seen.most_by_means, seen.n_features))
    by_means_alone = seen.covariances is not None and seen.covariances.rank == 0
    if by_means_alone and all_by_means and r not in (0, seen.n_features - 1):
        yield Finding(
            "too_few_environments",
            True,
            f"The means differ in {r} direction(s), all that {E} environments are sure to show, "
            "and no difference of the covariances could be shown. A direction in which all "
            "training environments agree cannot be told from an invariant one.",
            f"With d_s spurious directions, d_s + 1 environments are needed: at least {E + 1} to "
            "see one more than now. Environments with another spread would do as well.",
        )
    if seen.tests is None and E > 0 and r > E - 1 and seen.orders != "covariances":
        others = {
            "both": "the others rest on differences of covariances, which were not tested",
            "means": "the others are there only if the classes differ in different directions, "
            "which was not tested",
        }[seen.orders]
        yield Finding(
            "beyond_the_means",
            True,
            f"{r} directions were asked for. The means of {E} environments are sure to show "
            f"{E - 1}; {others}.",
            f"From means alone {r} directions need {r + 1} environments. Fit with "
            "n_spurious='auto' to see how many can be shown.",
        )
    empty = int(np.sum(seen.counts == 0))
    tiny = int(np.sum((seen.counts > 0) & (seen.counts < TINY_CELL_ROWS)))
    if empty or tiny:
        few = {"no rows": empty, f"fewer than {TINY_CELL_ROWS} rows": tiny}
        parts = [f"{n} {'has' if n == 1 else 'have'} {what}" for what, n in few.items() if n]
        yield Finding(
            "bad_cells",
            True,
            f"Of {seen.counts.size} (class, environment) groups {' and '.join(parts)}: these say "
            "little or nothing about what differs.",
            "Add rows there, or merge environments.",
        )
    # The upper end too: where a part of the resamples takes another direction, the fit may have.
    if seen.angle is not None and (seen.angle[1] >= WIDE_ANGLE or seen.angle[2] >= WRONG_ANGLE):
        yield Finding(
            "uncertain_directions",
            True,
            f"The directions are known to about {np.degrees(seen.angle[1]):.0f} degrees only, and "
            f"may be wrong by {np.degrees(seen.angle[2]):.0f}.",
            "Add rows or environments: what is removed may leave a good part of the spurious cue.",
        )


def _of_the_tests(seen: Observations) -> Iterator[Finding]:
    """Look at what the tests say of what is left, and of what is removed."""
    last, tests, r = seen.last, seen.tests, seen.n_spurious
    if last is not None and tests is not None and last.level < last.p_value <= tests.alpha:
        yield Finding(
            "hint_of_more",
            False,
            f"In what is left the covariances differ at p = {last.p_value:.3f}. Where covariances "
            "alone speak for a further direction, it is removed only if no permutation reaches it "
            f"(p = {last.level:.3f}).",
            "More rows or more permutations (n_permutations) would decide it.",
        )
    if tests is not None and r == 0 and _first(tests) > tests.alpha:
        way_out = (
            "If a spurious cue is expected, check that the environments label it, or add rows."
        )
        other = {"means": seen.covariances, "covariances": seen.means}.get(seen.orders)
        if other is not None and other.rank > 0:
            means = seen.orders == "covariances"
            what, way = ("means", "ISRMean") if means else ("covariances", "ISR")
            way_out = (
                f"The {what} differ, and this method does not look at them: use {way}('auto')."
            )
        yield Finding(
            "nothing_differs",
            False,
            f"No difference is significant at level {tests.alpha:g} (p = {_first(tests):.3f}).",
            way_out,
        )
    if seen.orders == "both" and r > 0 and seen.means is not None and seen.covariances is not None:
        if seen.covariances.rank == 0:
            yield Finding(
                "no_covariance_difference",
                False,
                "No difference of the covariances could be shown "
                f"(p = {_first(seen.covariances):.3f}).",
                "What is removed comes from the means.",
            )
        elif seen.means.rank == 0:
            yield Finding(
                "no_mean_difference",
                False,
                f"No difference of the means could be shown (p = {_first(seen.means):.3f}).",
                "What is removed rests on the covariances.",
            )
    if seen.share is not None and r > 0 and seen.share >= LARGE_SHARE:
        yield Finding(
            "target_information_removed",
            False,
            f"{seen.share:.0%} of what tells the target in these rows lies along the removed "
            "directions.",
            "That is right for a strong spurious cue, and wrong if the environments differ in "
            "what causes the target. Leave one environment out and compare with n_spurious=0 "
            "there; if that is better, remove less (n_spurious) or shrink instead (scale).",
        )


def _first(choice: RankChoice) -> float:
    return float(choice.p_values[0]) if len(choice.steps) else 1.0
