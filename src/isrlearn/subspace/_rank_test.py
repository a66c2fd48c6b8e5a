"""How many directions differ: a sequence of tests against a null, each on what is left.

After r directions are removed the question is whether the environments still differ in the rest.
Means and covariances are tested apart, because in their sum the noise of one drowns the other, and
the more extreme of the two decides: the one that fewer permutations reach.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh

from isrlearn.display import figure, table
from isrlearn.moments import CellEvidence, Evidence, Frame
from isrlearn.subspace._joint import Workings
from isrlearn.subspace._rank_statistics import (
    block_size,
    complement,
    contrast,
    mean_scores,
    more_extreme,
    p_value,
    partial_traces,
    standardise,
)
from isrlearn.typing import Float64Array

LEAST_NOISE: Final = 1e-8


@dataclass(frozen=True)
class RankStep:
    """One test of the sequence.

    Parameters
    ----------
    n_removed : int
        Directions removed before this test.
    p_value : float
        Of the hypothesis that nothing differs in the rest.
    p_mean, p_covariance : float
        The same from means and from covariances alone; NaN where they were not tested.
    level : float
        The largest p-value that counts as a difference.
    block : int
        Directions removed after this test; 0 ends the sequence.

    Examples
    --------
    >>> step = RankStep(0, 0.005, 0.005, float("nan"), level=0.05, block=1)
    >>> step.figures()
    ['0.005', '0.005', '–', '0.05', '1']
    """

    n_removed: int
    p_value: float
    p_mean: float
    p_covariance: float
    level: float
    block: int

    def figures(self) -> list[str]:
        """Return the p-values, the level and the block as text, a dash where not tested."""
        numbers = self.p_value, self.p_mean, self.p_covariance, self.level
        return [*(figure(number, ".3g") for number in numbers), str(self.block)]


@dataclass(frozen=True)
class RankChoice:
    """Outcome of the sequence of tests; a fitted estimator has it as ``rank_choice_``.

    Parameters
    ----------
    rank : int
        Directions that differ.
    alpha : float
        Level of each test.
    n_permutations : int
        Data sets without differences that each test compares with.
    steps : tuple of RankStep
        The tests.

    Examples
    --------
    >>> from isrlearn import ISR
    >>> from isrlearn.datasets import make_linear_gaussian
    >>> mu_e = [[-3.0], [0.0], [3.0]]
    >>> model = make_linear_gaussian(3, d_c=2, d_s=1, mu_e=mu_e, random_state=0)
    >>> X, y, environments = model.sample(200, random_state=0)
    >>> choice = ISR(random_state=0).fit(X, y, environments=environments).rank_choice_
    >>> choice.rank, bool(choice.p_values[0] <= choice.alpha)
    (1, True)
    """

    rank: int
    alpha: float
    n_permutations: int
    steps: tuple[RankStep, ...]

    @property
    def p_values(self) -> Float64Array:
        """P-value of each step, (number of steps,)."""
        return np.array([step.p_value for step in self.steps])

    def _repr_html_(self) -> str:
        return table(
            f"{self.rank} direction(s) differ, by {self.n_permutations} permutations",
            ["p", "p of means", "p of covariances", "level", "removed after"],
            [(step.n_removed, step.figures()) for step in self.steps],
            corner="removed before",
        )


def choose_rank(
    observed: Evidence,
    null: Evidence,
    frame: Frame,
    directions: Callable[[int], Float64Array],
    *,
    alpha: float,
    most: int,
    n_rows: float,
    orders: str = "both",
) -> RankChoice:
    r"""Remove directions until the rest shows no significant difference.

    Where nothing differs, something is removed with probability at most `alpha`; after all true
    directions one too many is removed more rarely still. Differences of covariances may show in a
    whole block of directions at once, which none of them shows alone: then the block is removed in
    one step.

    Parameters
    ----------
    observed, null : Evidence
        The differences in the data, and in B data sets without any.
    frame : Frame
        Their coordinates.
    directions : callable
        Rows (r, q), in the frame, of the r directions that the method would remove.
    alpha : float
        Level of each test.
    most : int
        Largest number of directions.
    n_rows : float
        Weight of all rows.
    orders : {"both", "means", "covariances"}
        What to test.
    """
    tests = _Tests.of(observed, null, frame, n_rows, orders)
    nothing = np.zeros((0, frame.forward.shape[1]))
    steps: list[RankStep] = []
    rank = shown = 0
    shown_again = nothing
    while True:
        removed = directions(rank) if rank else nothing
        test = tests.of_rest(removed, shown_again, alpha)
        if rank == 0 and test.p_covariance <= alpha and test.p_value <= alpha:
            shown = test.shared
        level, size = _verdict(test, rank, shown, alpha, 1 / (1 + len(null.means)))
        taken = min(size, most - rank)  # none where no more can be removed; the test is kept
        steps.append(RankStep(rank, *test[:3], level, taken))
        if taken == 0:
            break
        shown_again = nothing if test.p_mean <= alpha else tests.with_block(removed, taken)
        rank += taken
    return RankChoice(rank, alpha, len(null.means), tuple(steps))


def _verdict(
    test: "_Test", rank: int, shown: int, alpha: float, finest: float
) -> tuple[float, int]:
    """Return the level of a test and how many directions to remove after it; 0 to stop.

    Means name their directions one by one. The block that covariances showed in the first test is
    completed, also when the directions that the means took of it leave too little to show it again.
    In the first test only: one more chance of an error, not one for each step.

    Beyond that block a direction that covariances alone show stands against the model, in which
    all of them change together. It must be shown for itself, and so clearly that no permutation
    reaches it: a direction too many can cost all that the removal has won.
    """
    by_means, within = test.p_mean <= alpha, rank < max(shown, 1)
    level = alpha if by_means or within else finest
    if test.p_value > level:
        return level, max(0, shown - rank)
    if by_means or not within:
        return level, 1
    return level, max(test.shared, shown - rank)


class _Test(NamedTuple):
    """Outcome of one test."""

    p_value: float
    p_mean: float
    p_covariance: float
    shared: int
    """How many directions share the change of covariances."""


class _Tests(NamedTuple):
    """The data, first, and its nulls, in the coordinates of each test."""

    means: tuple[Float64Array, Float64Array]
    """(1, m, q) and (B, m, q), white for the total covariance: permutation leaves it as it is."""
    covariances: Float64Array
    """(1 + B, E, p, p), white for the noise within cells."""
    whiten: Float64Array
    """(p, p) from leading coordinates of the frame to those of `covariances`."""
    orders: str
    """What to test."""

    @classmethod
    def of(
        cls, observed: Evidence, null: Evidence, frame: Frame, n_rows: float, orders: str
    ) -> "_Tests":
        leading = observed.means[:, : frame.n_leading]
        values, vectors = eigh(np.eye(frame.n_leading) - leading.T @ leading / n_rows)
        whiten = (vectors / np.sqrt(np.maximum(values, LEAST_NOISE))) @ vectors.T
        both = observed.covariances[None], null.covariances
        covariances = np.concatenate([whiten @ part @ whiten for part in both])
        return cls((observed.means[None], null.means), covariances, whiten, orders)

    def of_rest(self, removed: Float64Array, otherwise: Float64Array, alpha: float) -> _Test:
        """Test what is left after some directions, rows (r, q) in the frame, are removed.

        The directions that the method removes need not be those that the last test was about: if
        that one was an error it would show again and again. So a difference must be significant
        also when the latter, rows (r, q) of `otherwise`, are removed instead.
        """
        test = self._of(removed)
        if len(otherwise) == 0 or test.p_value > alpha:
            return test
        return max(test, self._of(otherwise), key=lambda test: test.p_value)

    def with_block(self, removed: Float64Array, size: int) -> Float64Array:
        """Return rows (r + size, q): those removed and the block that changes most in the rest."""
        left = complement(removed[:, : len(self.whiten)] @ self.whiten)
        values, vectors = np.linalg.eigh(contrast(left @ self.covariances[:1] @ left.T)[0])
        if values[-size:].sum() < -values[:size].sum():
            vectors = vectors[:, ::-1]
        block = np.zeros((min(size, len(left)), removed.shape[1]))
        block[:, : len(self.whiten)] = np.linalg.solve(self.whiten, left.T @ vectors[:, -size:]).T
        return np.vstack([removed, block])

    def _of(self, removed: Float64Array) -> _Test:
        p_mean = p_covariance = float("nan")
        shared, scores = 1, []
        if self.orders != "covariances":
            scores.append(mean_scores(self.means, removed))
            p_mean = p_value(scores[-1])
        if self.orders != "means":
            left = complement(removed[:, : len(self.whiten)] @ self.whiten)
            if len(left):
                traces = partial_traces(left @ self.covariances @ left.T)
                scores.append(standardise(traces).max(axis=1))
                p_covariance = p_value(scores[-1])
                shared = block_size(traces[0])
        return _Test(more_extreme(scores), p_mean, p_covariance, shared)


class RankTest(NamedTuple):
    """What finds a rank: evidence, its null, and a level."""

    evidence: CellEvidence
    null: Evidence
    alpha: float

    def choose(
        self, directions: Callable[[int], Float64Array], *, most: int, orders: str = "both"
    ) -> tuple[RankChoice, Workings | None]:
        """Test how many of a method's own directions, rows (r, q) in the frame, to remove."""
        if self.evidence.frame.n_leading == 0:
            return RankChoice(0, self.alpha, 0, ()), None
        _, _, frame, observed, n_rows, _ = self.evidence
        choice = choose_rank(
            observed,
            self.null,
            frame,
            directions,
            alpha=self.alpha,
            most=most,
            n_rows=n_rows,
            orders=orders,
        )
        # In single precision, for a fitted estimator to keep.
        null = Evidence(*(part.astype(np.float32) for part in self.null))  # type: ignore[arg-type]
        return choice, Workings(observed, null, frame, n_rows, orders)
