"""Parts of the leaderboard: bootstrap, preparation of features, division of rows."""

import numpy as np
import pytest
from leaderboard_support import draw

from isrlearn.leaderboard import _bootstrap
from isrlearn.leaderboard._bootstrap import interval, worst_group_draws
from isrlearn.leaderboard._preparation import prepare
from isrlearn.leaderboard._splits import rounds

NAMES = tuple("abcdefgh")


def columns(random, n=120, m=3, n_groups=4):
    """Return right, tested and codes; some rows are of no group."""
    right = random.random((n, m)) < random.uniform(0.3, 0.9, size=m)
    tested = random.random((n, m)) < 0.8
    return right, tested, np.arange(n) % (n_groups + 1) - 1


def test_draws_agree_with_a_slow_loop(random, monkeypatch):
    right, tested, codes = columns(random)
    drawn = []
    original = _bootstrap._resampled

    def record(*arguments):
        drawn.append(original(*arguments))
        return drawn[-1]

    monkeypatch.setattr(_bootstrap, "_resampled", record)
    found = worst_group_draws(right, tested, codes, n_draws=15, random_state=3)
    used = np.flatnonzero(codes >= 0)
    for b, weights in enumerate(np.concatenate(drawn)):
        for c in range(right.shape[1]):
            accuracies = []
            for group in range(4):
                own = [(i, w) for i, w in zip(used, weights, strict=True) if codes[i] == group]
                assert sum(w for _, w in own) == len(own)
                count = sum(w for i, w in own if tested[i, c])
                hits = sum(w for i, w in own if tested[i, c] and right[i, c])
                accuracies += [hits / count] if count else []
            assert found[b, c] == pytest.approx(min(accuracies))


def test_draws_of_one_group_spread_as_a_share_does(random):
    n, p = 400, random.uniform(0.3, 0.8)
    right = random.random((n, 1)) < p
    draws = worst_group_draws(right, np.ones((n, 1), bool), np.zeros(n, int), n_draws=4000)
    share = right.mean()
    assert draws.mean() == pytest.approx(share, abs=0.005)
    assert draws.std() == pytest.approx(np.sqrt(share * (1 - share) / n), rel=0.08)


def test_intervals_of_many_rows_hold_the_estimate(random):
    codes = np.repeat(np.arange(3), 200)
    right = random.random((600, 1)) < np.array([0.6, 0.9, 0.9])[codes][:, None]
    draws = worst_group_draws(right, np.ones_like(right), codes)[:, 0]
    value = right[codes == 0].mean()
    found = interval(value, draws)
    assert found.low < found.value < found.high
    assert found.value == value
    assert np.mean((draws >= found.low) & (draws <= found.high)) == pytest.approx(0.95, abs=0.02)


def test_equal_columns_have_equal_draws_and_seeds_matter(random):
    right, tested, codes = columns(random, m=1)
    twice = worst_group_draws(np.hstack([right] * 2), np.hstack([tested] * 2), codes, n_draws=50)
    np.testing.assert_array_equal(twice[:, 0], twice[:, 1])
    once, again, other = (
        worst_group_draws(right, tested, codes, n_draws=50, random_state=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


def test_rows_of_no_group_do_not_count(random):
    right, tested, codes = columns(random)
    there = codes >= 0
    changed = np.where(there[:, None], right, ~right)
    wanted = worst_group_draws(right, tested, codes, n_draws=30)
    for parts in ((changed, tested, codes), (right[there], tested[there], codes[there])):
        np.testing.assert_array_equal(worst_group_draws(*parts, n_draws=30), wanted)


def test_draws_in_pieces_are_as_good(random, monkeypatch):
    right, tested, codes = columns(random, n=300)
    one_group = np.where(codes >= 0, 0, -1)
    whole = worst_group_draws(right, tested, codes), worst_group_draws(right, tested, one_group)
    monkeypatch.setattr(_bootstrap, "BYTES", 7 * 8 * 240)
    pieces = worst_group_draws(right, tested, codes), worst_group_draws(right, tested, one_group)
    assert pieces[0].shape == whole[0].shape
    shares = [0.025, 0.5, 0.975]
    np.testing.assert_allclose(
        *(np.quantile(p[0], shares, axis=0) for p in (whole, pieces)), atol=0.04
    )
    np.testing.assert_array_equal(whole[1], pieces[1])
    monkeypatch.setattr(_bootstrap, "BYTES", 1)
    assert worst_group_draws(right, tested, codes, n_draws=11).shape == (11, 3)


def test_few_features_are_standardised_with_constant_ones_at_zero(random):
    X = random.normal(size=(50, 4)) * [1, 10, 0, 1e-3] + [0, 5, 0.5, 1]
    found = prepare(X, NAMES[:4], whiten=False)
    wanted = (X - X.mean(axis=0)) / np.where([1, 1, 0, 1], X.std(axis=0), np.inf)
    np.testing.assert_allclose(found.apply(X), wanted, atol=1e-9)
    np.testing.assert_array_equal(found.apply(X + 3)[:, 2], 0)


def test_few_features_of_many_rows_are_whitened_unless_told_not_to(random):
    X = random.normal(size=(200, 4)) @ random.normal(size=(4, 4)) + 7
    X = np.column_stack([X, np.full(200, 0.5), X[:, 0] - X[:, 1]])
    Z = prepare(X, NAMES[:6]).apply(X)
    np.testing.assert_allclose(np.cov(Z.T, ddof=0), np.eye(4), atol=1e-6)
    centred = X[:, :4] - X[:, :4].mean(axis=0)
    distances = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(np.cov(centred.T, ddof=0)), centred)
    np.testing.assert_allclose(np.sum(Z**2, axis=1), distances, rtol=1e-5)
    assert prepare(X[:59], NAMES[:6]).matrix.ndim == 1  # fewer than ten rows for each feature
    assert prepare(X[:60], NAMES[:6]).matrix.ndim == 2


@pytest.mark.parametrize("whiten", [False, True])
def test_a_feature_that_is_constant_in_training_does_not_count_elsewhere(random, whiten):
    for n in (20, 50, 100, 203, 600):
        for constant in (0.1, 0.3, 1 / 3, 7.7):
            X = random.normal(size=(n, 2))
            X[:, 1] = constant
            found = prepare(X, NAMES[:2], whiten=whiten)
            np.testing.assert_allclose(found.apply(X + [0, 1]), found.apply(X), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_keep_their_precision(random, dtype):
    X = random.normal(size=(30, 3)).astype(dtype)
    assert prepare(X, NAMES[:3]).apply(X).dtype == dtype
    assert prepare(X, NAMES[:3], pca=2).apply(X).dtype == dtype


@pytest.mark.parametrize("with_units", [False, True])
def test_components_are_those_of_a_singular_value_decomposition(random, with_units):
    X = random.normal(size=(60, 8)) @ random.normal(size=(8, 8)) + random.normal(size=8)
    centred = X - X.mean(axis=0)
    centred = centred / centred.std(axis=0) if with_units else centred
    U, S, _ = np.linalg.svd(centred, full_matrices=False)
    found = prepare(X, NAMES, pca=3, with_units=with_units)
    Z = found.apply(X)
    unit = np.sqrt(np.mean(S[:3] ** 2) / (len(X) - 1))
    np.testing.assert_allclose(Z @ Z.T, (U[:, :3] * (S[:3] / unit) ** 2) @ U[:, :3].T, atol=1e-8)
    assert Z.var(axis=0, ddof=1).mean() == pytest.approx(1)
    assert "3 principal components of 8 features" in found.words


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    "options", [{"whiten": True}, {"whiten": False}, {"pca": 3}, {"pca": 3, "with_units": True}]
)
def test_a_folded_head_gives_the_same_decision_values(random, options, k):
    X = random.normal(size=(90, 8)) * 3 + 2
    X[:, 5] = 0.5
    X[random.random(X.shape) < 0.1] = np.nan
    found = prepare(X, NAMES, impute="median", **options)
    Z = found.apply(X)
    weight, bias = random.normal(size=(k, Z.shape[1])), random.normal(size=k)
    wide, moved = found.fold_into(weight, bias)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    np.testing.assert_allclose(filled @ wide.T + moved, Z @ weight.T + bias, atol=1e-9)


def test_missing_values_take_the_median_of_the_training_rows(random):
    X, new = random.normal(size=(2, 41, 4)) + 5
    X[random.random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.nan
    gaps = new.copy()
    gaps[::2, 1] = np.nan
    found = prepare(X, NAMES[:4], impute="median")
    filled = gaps.copy()
    seen = X[~np.isnan(X[:, 1]), 1]
    filled[::2, 1] = np.quantile(seen, 0.5)
    np.testing.assert_array_equal(found.apply(gaps), found.apply(filled))
    moved = np.where(np.arange(4) == 3, 99.0, gaps)  # of which training rows have no value
    np.testing.assert_array_equal(found.apply(gaps), found.apply(moved))
    assert "median" in found.words


def test_missing_values_without_a_filling_are_named(random):
    X = random.normal(size=(20, 8))
    X[3, [1, 4]] = np.nan
    with pytest.raises(ValueError, match=r"missing in b, e: fill them with impute='median'"):
        prepare(X, NAMES)
    X[5] = np.nan
    with pytest.raises(ValueError, match="missing in a, b, c, d, e and 3 more"):
        prepare(X, NAMES)
    with pytest.raises(ValueError, match="impute='mean' must be None or 'median'"):
        prepare(X, NAMES, impute="mean")


@pytest.mark.parametrize("rule", ["worst-group", "leave-one-environment-out"])
@pytest.mark.parametrize("test", ["split", "random", "leave-one-environment-out"])
def test_rounds_divide_the_rows_and_repeat(random, test, rule):
    _, y, e, split = draw(random)
    e = np.where(random.random(len(y)) < 0.05, None, e.astype(object))
    parts, again = (rounds(y, e, split, test, 2, rule) for _ in range(2))
    for part, same in zip(parts, again, strict=True):
        rows = np.concatenate([part.training, part.validation, part.test])
        assert sorted(rows) == list(range(len(y)))
        assert part.rows == same.rows
        assert (part.name, part.seed) == (same.name, same.seed)
    assert {part.seed for part in parts} == {0, 1}


@pytest.mark.parametrize("given", [True, False])
def test_every_group_is_left_out_of_training_and_validation_once(random, given):
    _, y, e, split = draw(random, n=300)
    e = np.where(random.random(len(y)) < 0.05, None, e.astype(object))
    split = split if given else None
    test = "leave-one-group-out"
    parts = rounds(y, e, split, test, 2, "worst-group")
    whole = {
        p.seed: p for p in rounds(y, e, split, "split" if given else "random", 2, "worst-group")
    }
    assert [part.left_out for part in parts] == 2 * [(c, v) for c in (0, 1) for v in range(3)]
    for part in parts:
        c, v = part.left_out
        assert part.name == f"{c}, {v}"
        gone = np.flatnonzero((y == c) & (e == v))
        np.testing.assert_array_equal(part.test, whole[part.seed].test)
        for name in ("training", "validation"):
            everything = getattr(whole[part.seed], name)
            np.testing.assert_array_equal(getattr(part, name), np.setdiff1d(everything, gone))
            assert len(getattr(part, name)) < len(everything)
    some = rounds(y, e, split, test, 1, "worst-group", ["1, 2", (0, 1)])
    assert [part.left_out for part in some] == [(1, 2), (0, 1)]


def test_groups_whose_names_are_alike_are_told_apart(random):
    _, y, e, split = draw(random, n=300)
    labels = np.array(["a, b", "a"], dtype=object)[y].astype(str)
    places = np.array(["c", "b, c", "d"], dtype=object)[e]
    parts = rounds(labels, places, split, "leave-one-group-out", 1, "worst-group")
    assert len({part.name for part in parts}) == len({part.rows for part in parts}) == 6
    (one,) = rounds(labels, places, split, "leave-one-group-out", 1, "worst-group", [("a", "b, c")])
    assert (one.name, one.left_out) == ("'a', 'b, c'", ("a", "b, c"))


def test_groups_that_cannot_be_left_out_are_named(random):
    _, y, e, split = draw(random, n=300)
    alone = np.where(y == 1, 0, e)  # class 1 comes from one environment
    arguments = "leave-one-group-out", 1, "worst-group"
    parts = rounds(y, alone, split, *arguments)
    assert [part.name for part in parts] == ["0, 0", "0, 1", "0, 2"]
    with pytest.raises(ValueError, match="cannot leave out '1, 0': its class has training rows in"):
        rounds(y, alone, split, *arguments, ["1,0"])
    with pytest.raises(ValueError, match=r"group 3 is not there"):
        rounds(y, e, split, *arguments, [3])
    with pytest.raises(ValueError, match="groups is an empty list"):
        rounds(y, e, split, *arguments, [])
    with pytest.raises(ValueError, match=r"group '1, 7' is not there: choose from 0, 0; 0, 1"):
        rounds(y, e, split, *arguments, ["1, 7"])
    with pytest.raises(
        ValueError, match="groups names the groups to leave out: it needs .* not test='random'"
    ):
        rounds(y, e, None, "random", 1, "worst-group", ["1, 0"])


def groups(y, e, rows):
    return np.bincount(y[rows] * 3 + e[rows], minlength=3 * (y.max() + 1))


def test_random_rounds_take_a_fifth_of_every_group_and_differ_by_seed(random):
    _, y, e, _ = draw(random, n=300, k=3)
    parts = rounds(y, e, None, "random", 3, "worst-group")
    every = groups(y, e, slice(None))
    for part in parts:
        np.testing.assert_array_equal(groups(y, e, part.test), np.round(every / 5))
        rest = every - groups(y, e, part.test)
        np.testing.assert_array_equal(groups(y, e, part.validation), np.round(rest / 4))
    assert len({part.rows for part in parts}) == 3


def test_every_environment_is_the_test_once(random):
    _, y, e, _ = draw(random, n=300)
    e = np.where(random.random(len(y)) < 0.05, None, e.astype(object))
    for rule, share in (("worst-group", 0.2), ("leave-one-environment-out", 0.0)):
        parts = rounds(y, e, None, "leave-one-environment-out", 1, rule)
        assert [part.name for part in parts] == ["0", "1", "2"]
        for code, part in enumerate(parts):
            np.testing.assert_array_equal(part.test, np.flatnonzero(e == code))
            others = len(y) - len(part.test)
            assert len(part.validation) == pytest.approx(share * others, abs=4)


def test_the_split_of_the_file_is_kept_and_validation_set_apart_where_it_has_none(random):
    _, y, e, split = draw(random, n=300)
    part, same = rounds(y, e, split, "split", 2, "worst-group")
    assert part.rows == same.rows
    for s, rows in enumerate(part[2:]):
        np.testing.assert_array_equal(rows, np.flatnonzero(split == s))
    split = np.where(split == 1, 0, split)
    part, _ = rounds(y, e, split, "split", 2, "worst-group")
    np.testing.assert_array_equal(part.test, np.flatnonzero(split == 2))
    every = groups(y, e, split == 0)
    np.testing.assert_array_equal(groups(y, e, part.validation), np.round(every / 5))
