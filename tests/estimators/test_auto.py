"""ISR: theorems, laws, the size of its tests, and hard inputs."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from conftest import draw_rows, seeds
from hypothesis import given, strategies as st
from scipy.linalg import null_space
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from isrlearn import ISR, CellMoments, ISRClassifier, ISRCov, ISRMean
from isrlearn.datasets import LinearUnitTest, make_linear_gaussian
from isrlearn.exceptions import TinyCellWarning
from isrlearn.moments import _nulls
from isrlearn.moments._evidence import CellEvidence, given_classes, mean_evidence, noise_frame
from isrlearn.moments._nulls import PermuteEnvironments, TargetRows
from isrlearn.rows._validation import check_rows
from isrlearn.subspace._joint import shrinkage
from isrlearn.subspace._recovery import subspace_from_both

SHAPES = [(1, 1), (5, 5), (3, 7), (10, 3), (5, 1)]


def seed_of(random):
    return int(random.integers(2**31))


def kept_of_B(subspace, B):
    """How much of span(B) is kept, relative to its size."""
    return np.abs(subspace.kept @ B).max() / np.abs(B).max()


# --- theorems: with exact moments the subspace is exact


@pytest.mark.parametrize(("d_c", "d_s"), SHAPES)
@pytest.mark.parametrize("what", ["means", "covariances", "both"])
def test_exact_moments_give_the_exact_subspace(random, d_c, d_s, what):
    E = d_s + 1 if what == "means" else 2
    given = {"means": {"sigma_e": 0.7}, "covariances": {"mu_e": random.normal(size=d_s)}}
    model = make_linear_gaussian(E, d_c, d_s, random_state=seed_of(random), **given.get(what, {}))
    subspace, _, _ = subspace_from_both(model.population_moments(), d_s)
    assert kept_of_B(subspace, model.B) < 1e-6
    # What the noise does not explain is removed: the functionals see nothing of A.
    assert np.abs(subspace.functionals @ model.A).max() < 1e-5


def test_more_directions_than_differ_are_refused(random):
    model = make_linear_gaussian(3, 4, 3, sigma_e=0.7, random_state=seed_of(random))
    with pytest.raises(ValueError, match="at most 2, the directions in which the means and cov"):
        subspace_from_both(model.population_moments(), 3)


# --- laws


@given(seed=seeds, n_spurious=st.sampled_from([1, 2, "auto"]))
def test_any_invertible_map_of_the_features_carries_over(seed, n_spurious):
    X, y, e = draw_rows(seed, per_cell=60)
    G = np.random.default_rng(seed).normal(size=(5, 5)) + 3 * np.eye(5)
    isr = ISR(n_spurious, random_state=0)
    here = isr.fit(X, y, environments=e).transform(X) @ G
    there = isr.fit(X @ G, y, environments=e).transform(X @ G)
    np.testing.assert_allclose(here, there, atol=1e-6 * np.abs(here).max())


@pytest.mark.parametrize("method", [ISR, ISRMean, ISRCov])
def test_the_rank_found_and_given_remove_the_same(random, method):
    X, y, e = LinearUnitTest("3s'", 7, seed=seed_of(random)).sample(400)
    found = method("auto", random_state=0).fit(X, y, environments=e)
    given = method(found.n_spurious_).fit(X, y, environments=e)
    assert found.n_spurious_ > 0
    np.testing.assert_allclose(found.transform(X), given.transform(X), atol=1e-9)
    assert given.rank_choice_ is None
    steps = found.rank_choice_.steps
    assert sum(step.block for step in steps) == found.n_spurious_
    assert np.isnan([step.p_mean for step in steps]).all() == (method is ISRCov)
    assert np.isnan([step.p_covariance for step in steps]).all() == (method is ISRMean)


def test_one_seed_one_result(random):
    X, y, e = draw_rows(seed_of(random), per_cell=60)
    a, b = (ISR(random_state=5).fit(X, y, environments=e) for _ in range(2))
    np.testing.assert_array_equal(a.rank_choice_.p_values, b.rank_choice_.p_values)
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@given(seed=seeds, r=st.integers(2, 5), scale=st.floats(1, 100))
def test_a_common_change_is_shrunk_to_its_trace(seed, r, scale):
    assert shrinkage(scale * np.stack([np.eye(r), -np.eye(r)])) == 0.0
    noise = np.random.default_rng(seed).normal(size=(3, r, r))
    mixed = noise + np.swapaxes(noise, 1, 2)
    assert 0 <= shrinkage(mixed) <= shrinkage(10 * mixed) <= 1


# --- the null


def test_the_null_of_the_means_is_that_of_all_permutations(random):
    """Six rows in two environments: all 20 ways to share them out, against many draws."""
    X = random.normal(size=(12, 2))
    y, e = np.repeat([0, 1], 6), np.tile([0, 0, 0, 1, 1, 1], 2)
    cells = CellMoments.from_rows(X, y, e)
    cond = given_classes(cells)
    frame = noise_frame(cond, np.zeros(2))
    evidence = CellEvidence(cells, cond, frame, None, len(X))
    permute = PermuteEnvironments(evidence, 20_000, np.random.default_rng(seed_of(random)))
    null = permute(check_rows(X, y, e))
    drawn = (null.means**2).sum(axis=(1, 2)).mean()

    def scatter(labels):
        moments = given_classes(CellMoments.from_rows(X[:6], y[:6], labels))
        return np.sum((mean_evidence(moments) @ frame.forward) ** 2)

    def scatter_other(labels):
        moments = given_classes(CellMoments.from_rows(X[6:], y[6:], labels))
        return np.sum((mean_evidence(moments) @ frame.forward) ** 2)

    ways = {*permutations(e[:6].tolist())}
    exact = np.mean([scatter(w) for w in ways]) + np.mean([scatter_other(w) for w in ways])
    assert drawn == pytest.approx(exact, rel=0.05)


def test_units_of_rows_have_the_null_of_rows(random, monkeypatch):
    X, y, e = draw_rows(seed_of(random), per_cell=400)
    weights = random.uniform(0.5, 1.5, size=len(X))
    cells = CellMoments.from_rows(X, y, e, weights)
    evidence, checked = CellEvidence.of(cells, given_classes(cells)), check_rows(X, y, e, weights)
    null = {}
    for most in (10**6, 100):
        monkeypatch.setattr(_nulls, "MOST_UNITS", most)
        permute = PermuteEnvironments(evidence, 300, np.random.default_rng(0))
        null[most] = [np.mean(part**2) for part in permute(checked)]
    np.testing.assert_allclose(null[100], null[10**6], rtol=0.25)


def test_sizes_of_cells_survive_permutation(random):
    X, y, e = draw_rows(seed_of(random), per_cell=37)
    cells = CellMoments.from_rows(X, y, e)
    rows = TargetRows.of(check_rows(X, y, e), cells, np.random.default_rng(0))
    counts = np.zeros(len(cells.means))
    for units, owners in _nulls._units(rows, given_classes(cells), np.random.default_rng(0)):
        counts += np.bincount(owners, minlength=len(counts)) * units.shape[1]
    np.testing.assert_array_equal(counts, cells.counts)


def noise_of(random, kind, shape):
    draws = {
        "t": lambda: random.standard_t(4, size=shape),
        "exp": lambda: random.exponential(size=shape),
    }
    return draws.get(kind, lambda: random.normal(size=shape))()


@pytest.mark.parametrize("kind", ["gauss", "t", "exp"])
@pytest.mark.parametrize("sizes", [[200, 200, 200], [480, 78, 42]], ids=["equal", "80/13/7 %"])
@pytest.mark.parametrize(
    "isr", [ISR(), ISRMean("auto"), ISRCov("auto"), ISR(rank_test="moments")], ids=str
)
def test_nothing_is_removed_where_nothing_differs(random, isr, kind, sizes):
    """At alpha = 0.1 and 30 runs: more than 14 removals have a chance below one in 10 000."""
    removed, y, e = 0, np.arange(600) % 2, np.repeat([0, 1, 2], sizes)
    for _ in range(30):
        X = noise_of(random, kind, (600, 4))
        found = isr.set_params(alpha=0.1, n_permutations=49, random_state=seed_of(random))
        removed += found.fit(X, y, environments=e).n_spurious_ > 0
    assert removed <= binom.ppf(1 - 1e-5, 30, 0.12)


@pytest.mark.parametrize("test", ["permutation", "moments"])
@pytest.mark.parametrize("case", ["weights by environment", "weights by feature", "tiny cells"])
def test_weights_and_tiny_cells_are_no_difference(random, test, case):
    removed = 0
    for _ in range(30):
        sizes = [40, 150, 150, 150] if case[0] == "w" else [6] * 8 + [200] * 3
        e = np.repeat(np.arange(len(sizes)), sizes)
        y, X = np.arange(len(e)) % 2, random.standard_t(4, size=(len(e), 3))
        weights = {
            "weights by environment": np.where(e == 0, 5.0, 1.0),
            "weights by feature": 1 + np.abs(X[:, 0]),
        }.get(case)
        isr = ISR(alpha=0.1, n_permutations=49, rank_test=test, random_state=seed_of(random))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TinyCellWarning)
            isr.fit(X, y, environments=e, sample_weight=weights)
        removed += isr.n_spurious_ > 0
    assert removed <= binom.ppf(1 - 1e-5, 30, 0.15)


@pytest.mark.parametrize(("d", "n", "ratio"), [(10, 400, 3.0), (20, 1000, 2.5), (50, 2000, 3.0)])
def test_one_direction_that_changes_is_not_taken_for_a_block(random, d, n, ratio):
    found = []
    for _ in range(4):
        e, y = np.repeat([0, 1], n), random.integers(0, 2, 2 * n)
        X = random.normal(size=(2 * n, d)) @ np.linalg.qr(random.normal(size=(d, d)))[0]
        X[e == 1, 0] *= np.sqrt(ratio)
        isr = ISR(random_state=seed_of(random)).fit(X, y, environments=e)
        found.append(isr.n_spurious_)
    assert np.median(found) == 1
    assert max(found) <= 3


def test_nothing_is_removed_at_a_p_value_above_the_level(random):
    for _ in range(60):
        X, y = random.normal(size=(120, 4)), random.integers(0, 2, 120)
        e = random.integers(0, 2, 120)
        isr = ISR(alpha=0.2, n_permutations=19, random_state=seed_of(random))
        isr.fit(X, y, environments=e)
        first = isr.rank_choice_.steps[0]
        assert (isr.n_spurious_ > 0) == (first.p_value <= first.level)


def test_permutations_that_change_nothing_show_nothing(random):
    """Single precision of the nulls must not look like a difference."""
    p = [p_value_of_ties(random) for _ in range(20)]
    assert min(p) > 0.05  # 36 ways to share out two rows of two classes, and their mirror images


def p_value_of_ties(random):
    y, e = np.repeat([0, 1], 4), np.tile([0, 0, 1, 1], 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TinyCellWarning)
        isr = ISRMean("auto", random_state=seed_of(random))
        isr.fit(random.normal(size=(8, 2)), y, environments=e)
    return isr.rank_choice_.steps[0].p_value


def test_only_the_pair_that_is_compared_is_tested(random):
    e, y = np.repeat([0, 1, 2], 2000), np.tile([0, 1], 3000)
    X = random.normal(size=(6000, 6))
    X[e == 1, 0] *= 2
    X[e == 2, 1:3] *= 3
    isr = ISRCov("auto", pairs=(0, 1), alpha=0.001, n_permutations=999, random_state=0)
    assert isr.fit(X, y, environments=e).n_spurious_ == 1
    assert isr.set_params(pairs="all").fit(X, y, environments=e).n_spurious_ >= 3


def test_pairs_are_chosen_once(random):
    """Chosen again among fewer environments, they would be other pairs, or too few rows."""
    e, y = np.repeat([0, 1, 2], 36), np.tile([0, 1], 54)
    X = random.normal(size=(108, 10))
    X[e == 1, 0] *= 30
    given = ISRCov(1, pairs="distinct").fit(X, y, environments=e)
    found = ISRCov("auto", pairs="distinct", random_state=0).fit(X, y, environments=e)
    assert found.n_spurious_ == 0 or found.subspace_.rank >= given.subspace_.rank


@pytest.mark.parametrize("unit", [1e-200, 1e-4, 1e8, 1e200])
def test_weights_of_any_unit_count_as_rows(random, unit):
    X, y, e = LinearUnitTest("3s'", 4, seed=seed_of(random)).sample(1000)
    plain = ISR(random_state=0).fit(X, y, environments=e)
    scaled = clone(plain).fit(X, y, environments=e, sample_weight=np.full(len(y), unit))
    assert scaled.n_spurious_ == plain.n_spurious_
    assert scaled.subspace_.angles_to(plain.subspace_).max() < 1e-6


@pytest.mark.parametrize("test", ["permutation", "moments"])
@pytest.mark.parametrize(("example", "E"), [("3s'", 4), ("3s", 8), ("3'", 6)])
def test_the_rank_is_found_where_it_can_be(random, test, example, E):
    right = 0
    for _ in range(5):
        problem = LinearUnitTest(example, E, seed=seed_of(random))
        X, y, e = problem.sample(3000)
        isr = ISR(rank_test=test, random_state=0).fit(X, y, environments=e)
        right += isr.n_spurious_ == 5
    assert right >= 3


def test_the_default_classifier_is_at_the_oracle(random):
    """Nothing is given; five draws, since one may have three nearly equal environments."""
    excess = []
    for _ in range(5):
        problem = LinearUnitTest("3s'", 5, seed=seed_of(random))
        X, y, e = problem.sample(5000)
        test = problem.sample(5000, "test")
        clf = ISRClassifier().fit(X, y, environments=e)
        kept = null_space(problem.B.T)
        head = type(clf.head_)().fit(X @ kept, y)
        excess.append(head.score(test.X @ kept, test.y) - clf.score(test.X, test.y))
    assert np.median(excess) < 0.01


# --- streams


def test_a_stream_finds_what_a_fit_finds(random):
    problem = LinearUnitTest("3s'", 4, seed=seed_of(random))
    X, y, e = problem.sample(3000)
    order = random.permutation(len(X))
    stream = ISR(random_state=0)
    for part in np.array_split(order, 7):
        stream.partial_fit(X[part], y[part], environments=e[part])
    whole = ISR(stream.n_spurious_).fit(X, y, environments=e)
    np.testing.assert_allclose(stream.moments_.scatters, whole.moments_.scatters, rtol=1e-8)
    np.testing.assert_allclose(stream.transform(X), whole.transform(X), atol=1e-6)
    assert stream.subspace_.angles_to(problem.B.T).max() < 0.5


def test_a_stream_may_follow_a_fit(random):
    X, y, e = LinearUnitTest("3s'", 4, seed=seed_of(random)).sample(1000)
    first, second = np.arange(len(X)) % 2 == 0, np.arange(len(X)) % 2 == 1
    isr = ISR(random_state=0).fit(X[first], y[first], environments=e[first])
    isr.partial_fit(X[second], y[second], environments=e[second])
    whole = CellMoments.from_rows(X, y, e)
    np.testing.assert_allclose(isr.moments_.means, whole.means)
    assert isr.n_spurious_ >= 1


def test_a_change_of_mind_in_a_stream_loses_no_rows(random):
    X, y, e = LinearUnitTest("3s'", 4, seed=seed_of(random)).sample(500)
    isr = ISR(random_state=0)
    for n_spurious in ("auto", 1, "auto"):
        isr.set_params(n_spurious=n_spurious).partial_fit(X, y, environments=e)
    assert isr.moments_.counts.sum() == 3 * len(X)
    late = ISR(1).partial_fit(X, y, environments=e).set_params(n_spurious="auto")
    with pytest.raises(NotFittedError, match="Set it before the first partial_fit"):
        late.transform(X)
    means = ISRMean(1).partial_fit(X, y, environments=e).set_params(n_spurious="auto")
    with pytest.raises(ValueError, match="needs covariances"):
        means.partial_fit(X, y, environments=e)


def test_a_chunk_that_is_refused_leaves_a_stream_as_it_was(random):
    X, y, e = draw_rows(seed_of(random), per_cell=40)
    isr = ISR(random_state=0).partial_fit(X, y, environments=e)
    before = isr.moments_.counts.copy()
    worse = X.copy()
    worse[-1, 0] = 1e200
    with pytest.raises(ValueError, match="overflow"):
        isr.partial_fit(worse, y, environments=e)
    np.testing.assert_array_equal(isr.moments_.counts, before)
    isr.partial_fit(X, y, environments=e)
    np.testing.assert_array_equal(isr.moments_.counts, 2 * before)
    smooth = ISR(random_state=0).partial_fit(X, y, environments=e).partial_fit(X, y, environments=e)
    np.testing.assert_array_equal(isr.rank_choice_.p_values, smooth.rank_choice_.p_values)
    np.testing.assert_array_equal(isr.spurious_components_, smooth.spurious_components_)
    for part, expected in zip(isr._parts.parts, smooth._parts.parts, strict=True):
        np.testing.assert_array_equal(part.means, expected.means)


def test_a_stream_that_would_not_fit_in_memory_is_refused():
    X = np.zeros((8, 2000))
    with pytest.raises(ValueError, match="more than 2 GiB.*IncrementalPCA"):
        ISR().partial_fit(X, [0, 1] * 4, environments=[0, 0, 1, 1] * 2)


# --- hard inputs; warnings are errors in these tests


def hard(random, name):
    X, y, e = LinearUnitTest("3s'", 3, seed=seed_of(random)).sample(300)
    if name == "constant column":
        X = np.hstack([X, np.full((len(X), 1), 7.0)])
    if name == "equal columns":
        X = np.hstack([X, X[:, :3], X[:, :1] + X[:, 1:2]])
    if name == "more features than rows":
        X, y, e = X[::3], y[::3], e[::3]
        X = np.hstack([X, random.normal(size=(len(X), 400))])
    if name == "an environment as a feature":
        X = np.hstack([X, (e == 1)[:, None].astype(float)])
    if name == "units of 1e-3 and 1e3":
        X = X * np.repeat([1e-3, 1e3], 5)
    if name == "float32 far from zero":
        X = (X + 100).astype(np.float32)
    return X, y, e


@pytest.mark.parametrize(
    "name",
    [
        "constant column",
        "equal columns",
        "more features than rows",
        "an environment as a feature",
        "units of 1e-3 and 1e3",
        "float32 far from zero",
    ],
)
@pytest.mark.parametrize("test", ["permutation", "moments"])
def test_hard_inputs_are_fitted_in_silence(random, name, test):
    X, y, e = hard(random, name)
    isr = ISR(rank_test=test, random_state=0).fit(X, y, environments=e)
    assert isr.n_spurious_ >= 1
    Z = isr.transform(X)
    assert Z.dtype == X.dtype
    assert np.isfinite(Z).all()
    # Along the removed directions the functionals see nothing any more.
    left = (Z - isr.subspace_.centre) @ isr.subspace_.functionals.T
    before = (X - isr.subspace_.centre) @ isr.subspace_.functionals.T
    assert np.abs(left).max() <= 1e-3 * np.abs(before).max()


def test_scales_beyond_rounding_are_refused(random):
    X, y, e = LinearUnitTest("3s'", 3, seed=seed_of(random)).sample(300)
    with pytest.raises(ValueError, match="scale the features first"):
        ISR(3).fit(X * np.repeat([1e-9, 1e9], 5), y, environments=e)


def test_features_that_never_vary_leave_nothing_to_find():
    y, e = np.tile([0, 1], 40), np.repeat([0, 1], 40)
    X = np.ones((80, 3))
    with pytest.raises(ValueError, match="no class out of"):
        ISR().fit(X, y, environments=e)


def test_a_direction_that_is_the_environment_is_removed(random):
    X, y, e = hard(random, "an environment as a feature")
    isr = ISR(random_state=0).fit(X, y, environments=e)
    assert np.ptp(isr.transform(X)[:, -1]) < 1e-3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0}, "alpha=0 must be a number between 0 and 1"),
        ({"alpha": "low"}, "alpha='low'"),
        ({"rank_test": "bootstrap"}, "rank_test='bootstrap' must be one of"),
        ({"n_permutations": 50}, "n_permutations=50 cannot give a p-value of alpha=0.01.*least 99"),
        ({"n_permutations": 99.5}, "n_permutations=99.5 must be an integer"),
        ({"n_spurious": "all"}, "n_spurious='all' must be an integer >= 0 or 'auto'"),
    ],
)
@pytest.mark.parametrize("method", [ISR, ISRMean, ISRCov])
def test_wrong_parameters_are_named(method, wrong, message, random):
    X, y, e = draw_rows(seed_of(random))
    with pytest.raises(ValueError, match=message):
        method(**wrong).fit(X, y, environments=e)
