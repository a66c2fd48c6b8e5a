"""The problems of the Linear Unit-Tests, and the head that does not depend on units."""

import numpy as np
import pytest

from isrlearn.datasets import LinearUnitTest
from isrlearn.datasets._unit_tests import EXAMPLES, SPLITS


def seed_of(random):
    return int(random.integers(2**31))


@pytest.mark.parametrize("example", EXAMPLES)
def test_streams_are_own_and_repeatable(random, example):
    seed = seed_of(random)
    first, again = (LinearUnitTest(example, 4, seed=seed).sample(50) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    problem = LinearUnitTest(example, 4, seed=seed)
    assert not np.array_equal(first.X, problem.sample(50, "validation").X)
    assert not np.array_equal(first.X, LinearUnitTest(example, 4, seed=seed + 1).sample(50).X)
    assert first.X.shape == (200, 10)
    assert np.bincount(first.environments).tolist() == [50] * 4


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_test_split_cuts_the_cue_from_the_target(random, example):
    problem = LinearUnitTest(example, 3, seed=seed_of(random))
    correlation = {}
    for split in ("validation", "test"):
        X, y, e = problem.sample(4000, split)
        cue = (X @ problem.R)[:, 5:]
        own = [np.corrcoef(cue[e == k].T, y[e == k])[-1, :-1] for k in range(3)]
        correlation[split] = np.abs(own).max()
    assert correlation["test"] < min(0.12, correlation["validation"])


def test_moments_are_those_of_the_published_constants(random):
    X, y, e = LinearUnitTest("2", 3, seed=seed_of(random)).sample(20_000)
    sign = 2 * y - 1
    np.testing.assert_allclose((X[:, :5] * sign[:, None]).mean(axis=0), 0.01, rtol=0.05)
    np.testing.assert_allclose([y[e == k].mean() for k in range(3)], [0.3, 0.5, 0.7], atol=0.02)
    usual = np.sign(X[:, 5:].mean(axis=1)) == sign
    shares = [usual[e == k].mean() for k in range(3)]
    np.testing.assert_allclose(shares, [0.95, 0.97, 0.99], atol=0.01)
    paper = LinearUnitTest("2", 3, seed=0, constants="paper").sample(5000)
    assert np.abs(paper.X[:, :5]).mean() == pytest.approx(0.02, rel=0.1)
    problem = LinearUnitTest("3'", 6, seed=seed_of(random))
    X, y, e = problem.sample(5000)
    for k in range(6):
        own = X[(e == k) & (y == 0)]
        np.testing.assert_allclose(own[:, :5].mean(axis=0), 0.1, atol=0.02)
        np.testing.assert_allclose(
            own[:, 5:].mean(axis=0), problem.parameters["mu_e"][k], atol=0.04
        )
        np.testing.assert_allclose(
            own[:, 5:].std(axis=0), problem.parameters["sigma_e"][k], rtol=0.1
        )


@pytest.mark.parametrize("example", EXAMPLES)
def test_shuffling_moves_the_cue_of_a_split_and_nothing_else(random, example):
    problem = LinearUnitTest(example, 3, seed=seed_of(random))
    for split in SPLITS:
        default = problem.sample(60, split)
        left, moved = (problem.sample(60, split, shuffled=s) for s in (False, True))
        for a, b in zip(default, moved if split == "test" else left, strict=True):
            np.testing.assert_array_equal(a, b)
        # The stream is the same until the first environment is shuffled.
        np.testing.assert_array_equal(left.y[:60], moved.y[:60])
        before, after = ((rows.X @ problem.R)[:60] for rows in (left, moved))
        np.testing.assert_allclose(before[:, :5], after[:, :5], atol=1e-10)
        assert not np.allclose(before[:, 5:], after[:, 5:])
        before, after = (z[z[:, 5].argsort(), 5:] for z in (before, after))
        np.testing.assert_allclose(before, after, atol=1e-10)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_shuffled_cue_says_nothing_about_the_target(random, example):
    problem, n = LinearUnitTest(example, 3, seed=seed_of(random)), 4000
    cut, whole = problem.sample(n, shuffled=True), problem.sample(n, "test", shuffled=False)

    def correlations(rows, e):
        own = rows.environments == e
        return np.abs(np.corrcoef((rows.X @ problem.R)[own, 5:].T, rows.y[own])[-1, :-1])

    for e in range(3):
        assert correlations(cut, e).max() < 6 / np.sqrt(n - 1)
        one, other = (rows.y[rows.environments == e] for rows in (cut, whole))
        for a, b in ((one, other), (one**2, other**2)):
            error = np.sqrt((a.var() + b.var()) / n)
            np.testing.assert_allclose(a.mean(), b.mean(), rtol=0, atol=6 * error)
    if example[0] != "1":  # there the cue may be weak by chance
        assert max(correlations(whole, e).max() for e in range(3)) > 0.3


@pytest.mark.parametrize("example", ["1", "1s"])
def test_second_moments_of_the_first_example_are_those_of_its_formula(random, example):
    problem, n = LinearUnitTest(example, 4, 3, 4, seed=seed_of(random)), 20_000
    x_to_y, y_to_z = problem.parameters["x_to_y"], problem.parameters["y_to_z"]
    assert problem.parameters["spread"][:3].tolist() == [0.1, 1.5, 2.0]
    X, y, e = problem.sample(n)
    for k, spread in enumerate(problem.parameters["spread"]):
        y_part = x_to_y.T @ x_to_y + np.eye(3)
        x_z, x_t = x_to_y @ y_to_z, x_to_y.sum(axis=1)[:, None]
        z_z, z_t = y_to_z.T @ y_part @ y_to_z, (y_to_z.T @ y_part).sum(axis=1)[:, None]
        expected = spread**2 * np.block(
            [[np.eye(3), x_z, x_t], [x_z.T, z_z, z_t], [x_t.T, z_t.T, y_part.sum()]]
        )
        expected[3:7, 3:7] += np.eye(4)
        turn = np.eye(8)
        turn[:7, :7] = problem.R
        expected = turn @ expected @ turn.T
        rows = np.column_stack([X, y])[e == k]
        sizes = np.diag(expected)
        error = np.sqrt((np.outer(sizes, sizes) + expected**2) / n)
        assert (np.abs(rows.T @ rows / n - expected) < 6 * error).all()
        assert (np.abs(rows.mean(axis=0)) < 6 * np.sqrt(sizes / n)).all()


def test_weights_of_the_first_example_are_divided_by_the_dimension_they_lead_to(random):
    parameters = LinearUnitTest("1", 3, 60, 90, seed=seed_of(random)).parameters
    for name, shape in (("x_to_y", (60, 60)), ("y_to_z", (60, 90))):
        scaled = parameters[name] * shape[1]
        assert scaled.shape == shape
        assert abs(scaled.mean()) < 6 / np.sqrt(scaled.size)
        assert abs(scaled.std() - 1) < 6 / np.sqrt(2 * scaled.size)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"example": "4"}, "example='4' must be one of"),
        ({"example": "2", "n_environments": 1}, "n_environments=1 must .* at least 2"),
        ({"example": "2", "n_environments": 2.0}, "n_environments=2.0 must be a whole number"),
        ({"example": "3", "d_c": 0}, "d_c=0 must be a whole number of at least 1"),
        ({"example": "3", "seed": None}, "seed=None must be a whole number of at least 0"),
        ({"example": "2", "constants": "mine"}, "constants='mine'"),
    ],
)
def test_wrong_problems_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        LinearUnitTest(**wrong)
    with pytest.raises(ValueError, match="split='both'"):
        LinearUnitTest("2").sample(5, "both")
    with pytest.raises(ValueError, match="n_per_environment=0 must"):
        LinearUnitTest("2").sample(0)


@pytest.mark.parametrize("example", ["3", "3s", "3'", "3s'"])
def test_classes_of_example_3_are_balanced_as_published_or_drawn_as_in_the_paper(random, example):
    seed = seed_of(random)
    for split in SPLITS:
        _, y, e = LinearUnitTest(example, 3, seed=seed).sample(1000, split)
        assert [y[e == k].sum() for k in range(3)] == [500] * 3
    _, y, e = LinearUnitTest(example, 3, seed=seed).sample(7)
    assert {int(y[e == k].sum()) for k in range(3)} == {3}
    coin = LinearUnitTest(example, 20, seed=seed, constants="paper").sample(1000)
    heads = np.array([coin.y[coin.environments == k].sum() for k in range(20)])
    assert 5 < heads.std() < 40 and abs(heads.mean() - 500) < 25  # binomial: 15.8
