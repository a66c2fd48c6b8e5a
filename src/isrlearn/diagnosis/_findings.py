"""Which assumption fails, and what to do about it."""

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


class Seen(NamedTuple):
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


def judge(seen: Seen) -> tuple[str, tuple[Finding, ...]]:
    """Return the verdict in one sentence, and the findings, warnings first."""
    checks = (
        _no_environments,
        _target_is_an_effect,
        _nothing_is_invariant,
        _target_is_stable,
        _too_few_environments,
        _given_beyond_the_means,
        _bad_cells,
        _uncertain,
        _hint_of_more,
        _nothing_differs,
        _one_order_only,
        _target_information,
    )
    findings = [finding for check in checks if (finding := check(seen)) is not None]
    findings.sort(key=lambda finding: not finding.is_warning)
    return _verdict(seen, {finding.code for finding in findings}), tuple(findings)


def _verdict(seen: Seen, codes: set[str]) -> str:
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


def _no_environments(seen: Seen) -> Finding | None:
    if seen.n_environments > 0:
        return None
    return Finding(
        "no_environments",
        True,
        "The estimator was fitted without environments.",
        "Pass environments= to fit.",
    )


def _target_is_an_effect(seen: Seen) -> Finding | None:
    """See Example 1 of the Linear Unit-Tests: all that is given the target moves with it."""
    if len(seen.spreads) < 2 or seen.n_spurious <= seen.n_features / 2:
        return None
    # Causes of variance s^2 make both variances a + b s^2: not their logarithms move in line.
    moves = bool(np.all(np.ptp(seen.spreads, axis=0) > 0))
    together = float(np.corrcoef(*seen.spreads.T)[0, 1]) if moves else 0.0
    ratio = float(seen.spreads[:, 0].max() / max(seen.spreads[:, 0].min(), 1e-300))
    # Two environments always move together or against each other: ask for a large difference.
    least = LARGE_RATIO if len(seen.spreads) > 2 else LARGE_RATIO_OF_TWO
    if together < HIGH_CORRELATION or ratio < least:
        return None
    return Finding(
        "target_is_an_effect",
        True,
        f"Given the target, the environments differ in {seen.n_spurious} of {seen.n_features} "
        "directions, and the spread of the features moves with that of the target. This is how it "
        "looks when features cause the target: then no direction keeps its relation given the "
        "target.",
        "ISR removes the causes together with the effects. Use a method that conditions on the "
        "features, such as regression on the causes.",
    )


def _nothing_is_invariant(seen: Seen) -> Finding | None:
    last = _last(seen)
    if last is None or last.p_value > last.level:  # after a rejection tests go on while they can
        return None
    return Finding(
        "nothing_is_invariant",
        True,
        f"The environments differ in all {seen.n_spurious + 1} direction(s) that the features "
        "span, also in the last, which is kept because something must be: none keeps its relation "
        "to the target.",
        "Look whether features cause the target, whether rows are labelled alike in all "
        "environments, or whether a difference of scale should be taken out first.",
    )


def _hint_of_more(seen: Seen) -> Finding | None:
    last = _last(seen)
    if last is None or seen.tests is None or not last.level < last.p_value <= seen.tests.alpha:
        return None
    return Finding(
        "hint_of_more",
        False,
        f"In what is left the covariances differ at p = {last.p_value:.3f}. Where covariances "
        "alone speak for a further direction, it is removed only if no permutation reaches it "
        f"(p = {last.level:.3f}).",
        "More rows or more permutations (n_permutations) would decide it.",
    )


def _last(seen: Seen) -> RankStep | None:
    return seen.tests.steps[-1] if seen.tests is not None and seen.tests.steps else None


def _target_is_stable(seen: Seen) -> Finding | None:
    if seen.stability is None or seen.tests is None or seen.n_spurious == 0:
        return None
    if not seen.stability > seen.tests.alpha:
        return None
    return Finding(
        "target_is_stable",
        True,
        "The regression of the target on all features is the same in all environments as far as "
        f"can be seen (p = {seen.stability:.3f}), although the features given the target differ. "
        "This is how it looks when features cause the target and only they shift.",
        "Compare with a plain regression (n_spurious=0) in an environment left out.",
    )


def _too_few_environments(seen: Seen) -> Finding | None:
    """All that the means can show is seen, and covariances show nothing."""
    if seen.tests is None or seen.means is None or seen.covariances is None:
        return None
    E, r = seen.n_environments, seen.n_spurious
    if seen.covariances.rank > 0 or r == 0 or r == seen.n_features - 1:
        return None
    if r != E - 1 and r < seen.most_by_means:
        return None
    return Finding(
        "too_few_environments",
        True,
        f"The means differ in {r} direction(s), all that {E} environments are sure to show, and "
        "no difference of the covariances could be shown. A direction in which all training "
        "environments agree cannot be told from an invariant one.",
        f"With d_s spurious directions, d_s + 1 environments are needed: at least {E + 1} to see "
        "one more than now. Environments with another spread would do as well.",
    )


def _given_beyond_the_means(seen: Seen) -> Finding | None:
    E, r = seen.n_environments, seen.n_spurious
    if seen.tests is not None or E == 0 or r <= E - 1 or seen.orders == "covariances":
        return None
    others = {
        "both": "the others rest on differences of covariances, which were not tested",
        "means": "the others are there only if the classes differ in different directions, which "
        "was not tested",
    }[seen.orders]
    return Finding(
        "beyond_the_means",
        True,
        f"{r} directions were asked for. The means of {E} environments are sure to show {E - 1}; "
        f"{others}.",
        f"From means alone {r} directions need {r + 1} environments. Fit with n_spurious='auto' to "
        "see how many can be shown.",
    )


def _bad_cells(seen: Seen) -> Finding | None:
    empty = int(np.sum(seen.counts == 0))
    tiny = int(np.sum((seen.counts > 0) & (seen.counts < TINY_CELL_ROWS)))
    if not empty and not tiny:
        return None
    few = {"no rows": empty, f"fewer than {TINY_CELL_ROWS} rows": tiny}
    parts = [f"{n} {'has' if n == 1 else 'have'} {what}" for what, n in few.items() if n]
    return Finding(
        "bad_cells",
        True,
        f"Of {seen.counts.size} (class, environment) groups {' and '.join(parts)}: these say "
        "little or nothing about what differs.",
        "Add rows there, or merge environments.",
    )


def _uncertain(seen: Seen) -> Finding | None:
    if seen.angle is None:
        return None
    _, middle, high = seen.angle
    # The upper end too: where a part of the resamples takes another direction, the fit may have.
    if middle < WIDE_ANGLE and high < WRONG_ANGLE:
        return None
    return Finding(
        "uncertain_directions",
        True,
        f"The directions are known to about {np.degrees(middle):.0f} degrees only, and may be "
        f"wrong by {np.degrees(high):.0f}.",
        "Add rows or environments: what is removed may leave a good part of the spurious cue.",
    )


def _nothing_differs(seen: Seen) -> Finding | None:
    if seen.tests is None or seen.n_spurious > 0 or _first(seen.tests) <= seen.tests.alpha:
        return None
    return Finding(
        "nothing_differs",
        False,
        f"No difference is significant at level {seen.tests.alpha:g} "
        f"(p = {_first(seen.tests):.3f}).",
        _where_to_look(seen),
    )


def _where_to_look(seen: Seen) -> str:
    other = {"means": seen.covariances, "covariances": seen.means}.get(seen.orders)
    if other is not None and other.rank > 0:
        what, way = ("means", "ISRMean") if seen.orders == "covariances" else ("covariances", "ISR")
        return f"The {what} differ, and this method does not look at them: use {way}('auto')."
    return "If a spurious cue is expected, check that the environments label it, or add rows."


def _one_order_only(seen: Seen) -> Finding | None:
    if seen.means is None or seen.covariances is None or seen.n_spurious == 0:
        return None
    if seen.orders != "both":
        return None
    if seen.covariances.rank == 0:
        return Finding(
            "no_covariance_difference",
            False,
            "No difference of the covariances could be shown "
            f"(p = {_first(seen.covariances):.3f}).",
            "What is removed comes from the means.",
        )
    if seen.means.rank == 0:
        return Finding(
            "no_mean_difference",
            False,
            f"No difference of the means could be shown (p = {_first(seen.means):.3f}).",
            "What is removed rests on the covariances.",
        )
    return None


def _target_information(seen: Seen) -> Finding | None:
    if seen.share is None or seen.n_spurious == 0 or seen.share < LARGE_SHARE:
        return None
    return Finding(
        "target_information_removed",
        False,
        f"{seen.share:.0%} of what tells the target in these rows lies along the removed "
        "directions.",
        "That is right for a strong spurious cue, and wrong if the environments differ in what "
        "causes the target. Leave one environment out and compare with n_spurious=0 there; if that "
        "is better, remove less (n_spurious) or shrink instead (scale).",
    )


def _first(choice: RankChoice) -> float:
    return float(choice.p_values[0]) if len(choice.steps) else 1.0
