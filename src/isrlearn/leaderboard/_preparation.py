"""What is done to features before any method sees them: learned from training rows alone."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.decomposition import PCA

from isrlearn.display import brief
from isrlearn.moments import FEW_COORDINATES, ROWS_PER_COORDINATE, feature_scales, whitening
from isrlearn.rows import check_number, refuse_large_features
from isrlearn.typing import Float64Array, FloatArray

COMPONENTS: Final = 100
IMPUTATIONS: Final = (None, "median")
MOST_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class Preparation:
    r"""An affine map :math:`z = (x - c)M` after missing values are filled.

    Parameters
    ----------
    fill : ndarray of shape (d,)
        What takes the place of a missing value; NaN where none may be missing.
    centre : ndarray of shape (d,)
        The point c.
    matrix : ndarray of shape (d, p) or (d,)
        The map M, or its diagonal.
    words : str
        What it does.
    """

    fill: Float64Array
    centre: Float64Array
    matrix: Float64Array
    words: str

    def apply(self, X: FloatArray) -> FloatArray:
        """Return prepared rows, (n, p), in the precision of X.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Rows; NaN where a value is missing.
        """
        filled = self.filled(X) - self.centre
        mapped = filled * self.matrix if self.matrix.ndim == 1 else filled @ self.matrix
        return np.asarray(mapped, dtype=X.dtype)

    def filled(self, X: FloatArray) -> FloatArray:
        """Return rows with missing values filled, as the user knows them."""
        return np.where(np.isnan(X), self.fill, X)

    def fold_into(
        self, weight: Float64Array, bias: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the head that gives on filled x what the old one gives on prepared x.

        Parameters
        ----------
        weight : ndarray of shape (k, p)
            Weights of a head on prepared rows.
        bias : ndarray of shape (k,)
            Its bias.

        Returns
        -------
        weight, bias
            In the coordinates of the features.
        """
        wide = weight * self.matrix if self.matrix.ndim == 1 else weight @ self.matrix.T
        return np.asarray(wide), np.asarray(bias - wide @ self.centre)


def prepare(
    X: FloatArray,
    names: tuple[str, ...],
    *,
    pca: int = COMPONENTS,
    impute: str | None = None,
    with_units: bool = False,
    whiten: bool = True,
) -> Preparation:
    """Learn how features are prepared from training rows.

    With more than `pca` features the leading principal components are kept, divided by one number
    so that their mean variance is one. Columns of a table have units and are divided by their
    standard deviation before. With fewer features, each is divided by its standard deviation, and
    up to 20 features of at least ten rows each are whitened: then the penalty of a linear model
    does not depend on units or on how features are mixed, for no method.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Training rows; NaN where a value is missing.
    names : tuple of str
        Of the features, for messages.
    pca : int, default=100
        Largest number of components.
    impute : {None, "median"}, default=None
        What takes the place of missing values: the median of the training rows.
    with_units : bool, default=False
        Whether the features are columns of a table.
    whiten : bool, default=True
        Whether few features are whitened.

    Returns
    -------
    Preparation
    """
    check_number("pca", pca, 1, whole=True)
    fill = _fill(X, names, impute)
    refuse_large_features(X, names)
    filled = np.where(np.isnan(X), fill, X).astype(np.float64)
    centre = filled.mean(axis=0)
    words = [] if impute is None else ["missing values replaced by the median of training rows"]
    few = X.shape[1] <= pca
    scales = np.ones(X.shape[1])
    if few or with_units:
        rounding = np.finfo(X.dtype).eps * np.abs(filled).max(axis=0)
        spread, constant = feature_scales(filled.var(axis=0), rounding)
        constant |= np.ptp(filled, axis=0) == 0  # whatever the rounding of their mean
        scales = np.where(constant, 0.0, 1 / spread)
        words.append("features divided by their standard deviation")
    scaled = (filled - centre) * scales
    if few and not (whiten and _can_be_whitened(X)):
        return Preparation(fill, centre, scales, "; ".join(words))
    if few:
        rounding = np.finfo(X.dtype).eps * np.abs(scaled).max(axis=0)
        inner = whitening(scaled.T @ scaled / len(scaled), rounding)
        words[-1] = "features whitened"
        if inner.shape[1] == 0:
            raise ValueError(
                "no feature varies in the training rows beyond rounding, or the values are too "
                "large or too small to compute with: scale them."
            )
    else:
        inner = _components(scaled, pca)
        words.append(f"{inner.shape[1]} principal components of {X.shape[1]} features")
    return Preparation(fill, centre, scales[:, None] * inner, "; ".join(words))


def _can_be_whitened(X: FloatArray) -> bool:
    return X.shape[1] <= FEW_COORDINATES and len(X) >= ROWS_PER_COORDINATE * X.shape[1]


def refuse_missing(X: FloatArray, names: tuple[str, ...]) -> None:
    """Raise a ValueError that names the features with missing values.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    names : tuple of str
        Of the features.
    """
    columns = [names[j] for j in np.flatnonzero(np.isnan(X).any(axis=0))]
    if columns:
        more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
        raise ValueError(
            f"values are missing in {', '.join(columns[:MOST_NAMED])}{more}: fill them with "
            "impute='median' (--impute median), or leave the columns out."
        )


def _components(centred: Float64Array, pca: int) -> Float64Array:
    """Return directions, (d, p), along which the mean variance is one."""
    found = PCA(min(pca, *centred.shape), svd_solver="covariance_eigh").fit(centred)
    unit = float(np.sqrt(found.explained_variance_.mean())) or 1.0
    return np.asarray(found.components_.T / unit)


def _fill(X: FloatArray, names: tuple[str, ...], impute: Any) -> Float64Array:
    if impute not in IMPUTATIONS:
        raise ValueError(f"impute={brief(impute)} must be None or 'median'.")
    if impute is None:
        refuse_missing(X, names)
        return np.full(X.shape[1], np.nan)
    missing = np.isnan(X)
    found = np.zeros(X.shape[1])  # a column without any value says nothing: all zero
    some = ~missing.all(axis=0)
    found[some] = np.nanmedian(X[:, some], axis=0)
    return found
