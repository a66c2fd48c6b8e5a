"""Coloured digits: real images with a cue that turns against the model."""

import numpy as np

from isrlearn.datasets._base import EnvironmentRows
from isrlearn.rows import check_number, seeded

COLORS = np.array(["red", "green"])


def load_colored_digits(
    *,
    label_noise: float = 0.1,
    agreement_train: float = 0.9,
    agreement_test: float = 0.1,
    test_size: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[EnvironmentRows, EnvironmentRows]:
    """Load scikit-learn's digits, painted so that colour predicts the label in training only.

    The label is whether the digit is 5 or more, flipped with probability `label_noise`. An image is
    painted in the colour of its label ("green" for 1, "red" for 0) with probability
    `agreement_train` in the training rows and `agreement_test` in the test rows. The environment is
    the colour.

    Parameters
    ----------
    label_noise : float, default=0.1
        Probability that a label is flipped.
    agreement_train, agreement_test : float, default=0.9, 0.1
        Probability that the colour agrees with the (noisy) label.
    test_size : float, default=0.5
        Share of the 1797 images in the test rows.
    random_state : int, RandomState or None, default=None
        Split, noise and colours.

    Returns
    -------
    train, test : EnvironmentRows
        X of shape (n, 128): the 64 pixels of the red image, then of the green one, in [0, 1]; the
        image of the other colour is zero. y 0 or 1; environments "red" or "green".

    Examples
    --------
    >>> from isrlearn.datasets import load_colored_digits
    >>> train, test = load_colored_digits(random_state=0)
    >>> train.X.shape, test.X.shape
    ((899, 128), (898, 128))
    """
    _check_share("label_noise", label_noise)
    _check_share("agreement_train", agreement_train)
    _check_share("agreement_test", agreement_test)
    _check_share("test_size", test_size)
    from sklearn.datasets import load_digits  # heavy: imported where it is used

    random = seeded(random_state)
    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels / 16
    y = (digits >= 5) ^ (random.uniform(size=len(digits)) < label_noise)
    is_test = np.zeros(len(digits), dtype=bool)
    is_test[random.permutation(len(digits))[: int(test_size * len(digits))]] = True
    agreement = np.where(is_test, agreement_test, agreement_train)
    green = np.where(random.uniform(size=len(digits)) < agreement, y, ~y)
    X = np.concatenate([pixels * ~green[:, None], pixels * green[:, None]], axis=1)
    rows = X, y.astype(np.intp), COLORS[green.astype(np.intp)]
    train, test = (EnvironmentRows(*(a[part] for a in rows)) for part in (~is_test, is_test))
    return train, test


def _check_share(name: str, value: float) -> None:
    check_number(name, value, 0, 1)
