"""Data: exact moments against samples, and what the real rows are."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from isrlearn import CellMoments
from isrlearn.datasets import (
    PENGUIN_FEATURES,
    load_colored_digits,
    load_penguins,
    make_linear_gaussian,
)


def test_samples_have_the_population_moments(random):
    model = make_linear_gaussian(3, 2, 2, eta=0.3, random_state=random.integers(2**31))
    n = 40_000
    X, y, e = model.sample(n, random_state=random.integers(2**31))
    sample, exact = CellMoments.from_rows(X, y, e), model.population_moments()
    np.testing.assert_array_equal(sample.classes, exact.classes)
    np.testing.assert_array_equal(sample.environments, exact.environments)
    covariances = exact.covariances()
    for cell, count in enumerate(sample.counts):
        # Hotelling's statistic of the mean: chi-square with 4 degrees of freedom.
        delta = sample.means[cell] - exact.means[cell]
        assert count * delta @ np.linalg.solve(covariances[cell], delta) < 45
        spread = np.sqrt(2 / count) * np.trace(covariances[cell])
        assert np.abs(sample.covariances()[cell] - covariances[cell]).max() < 7 * spread
        share = count / n
        expected = exact.weights[cell] / 1_000_000
        assert abs(share - expected) < norm.isf(1e-7) * np.sqrt(expected * (1 - expected) / n)


def test_the_generator_takes_any_part_as_given(random):
    R = random.normal(size=(5, 5))
    model = make_linear_gaussian(
        4, 2, 3, eta=0.7, mu_c=[1, 2], mu_e=[0, 1, 2], sigma_c=0.5, sigma_e=0.1, R=R
    )
    np.testing.assert_array_equal(model.mu_e, np.tile([0, 1, 2], (4, 1)))
    np.testing.assert_array_equal(model.sigma_e, [0.1] * 4)
    np.testing.assert_array_equal(np.hstack([model.A, model.B]), R)
    a, b = (make_linear_gaussian(random_state=3).sample(5, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(a.X, b.X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta": 1.0}, "eta=1.0"),
        ({"sigma_c": 0.0}, "must be positive"),
        ({"R": np.ones((4, 4))}, "R is singular"),
        ({"R": np.eye(3)}, "R has shape"),
        ({"sigma_e": np.ones(2)}, "sigma_e has shape"),
    ],
)
def test_models_that_make_no_sense(change, message):
    with pytest.raises(ValueError, match=message):
        replace(make_linear_gaussian(3, 2, 2, random_state=0), **change)


def test_penguins():
    X, y, species = load_penguins()
    assert X.shape == (333, len(PENGUIN_FEATURES))
    counts = Counter(zip(species.tolist(), y.tolist(), strict=True))
    assert counts["Adelie", "female"] == counts["Adelie", "male"] == 73
    assert counts["Chinstrap", "female"] == counts["Chinstrap", "male"] == 34
    assert (counts["Gentoo", "female"], counts["Gentoo", "male"]) == (58, 61)


def test_colored_digits_follow_their_description(random):
    train, test = load_colored_digits(
        label_noise=0.2,
        agreement_train=0.9,
        agreement_test=0.2,
        random_state=int(random.integers(99)),
    )
    assert len(train.X) + len(test.X) == 1797
    for rows, agreement in ((train, 0.9), (test, 0.2)):
        green = rows.environments == "green"
        assert abs(np.mean(green == (rows.y == 1)) - agreement) < 0.07
        # The image is in one colour only, and that is its environment.
        assert not rows.X[green, :64].any()
        assert not rows.X[~green, 64:].any()
        assert rows.X.max() <= 1


def test_colored_digits_repeat_with_their_seed():
    a, b, c = (load_colored_digits(random_state=s)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(a.X, b.X)
    assert not np.array_equal(a.X, c.X)


def test_arguments_out_of_range_are_named():
    for bad in ({"label_noise": 3}, {"agreement_test": -0.1}, {"test_size": 1.5}):
        with pytest.raises(ValueError, match=f"{next(iter(bad))}=.* from 0 to 1"):
            load_colored_digits(**bad)
    with pytest.raises(ValueError, match=r"mu_e has shape \(3,\), expected \(3, 2\)"):
        make_linear_gaussian(3, 2, 2, mu_e=[1, 2, 3])
    with pytest.raises(ValueError, match="n_environments=0 must be a whole number from 1"):
        make_linear_gaussian(0, 2, 2)
