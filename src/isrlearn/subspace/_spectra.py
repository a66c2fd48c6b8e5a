r"""Kernels: from means and covariances of cells to spurious directions."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import svd

from isrlearn.moments import eigen_system
from isrlearn.subspace._subspace import fix_signs
from isrlearn.typing import Float64Array, IntArray


class Spectrum(NamedTuple):
    """Eigenvalues by descending absolute value, with eigenvectors as rows."""

    values: Float64Array
    """(d,), zero where no vector is stored."""
    vectors: Float64Array
    """(m, d), orthonormal rows for the first m values; the largest entry of each is positive."""


def mean_contrasts(
    means: Float64Array, weights: Float64Array, class_index: IntArray
) -> Float64Array:
    r"""Deviations of cell means from the mean of their class, scaled to be squared and summed.

    Parameters
    ----------
    means : ndarray of shape (m, d)
        Cell means.
    weights : ndarray of shape (m,)
        Weight of each cell; ones make every environment count once, as in the paper.
    class_index : ndarray of shape (m,)
        Class of each cell.

    Returns
    -------
    ndarray of shape (m, d)
        Rows :math:`\sqrt{w_{ce}/w}\,(m_{ce} - m_c)`, with :math:`m_c` the weighted mean of class c
        and w the sum of all weights.
    """
    # By a power of two, which costs no digit: the products with the means do not overflow.
    weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    totals = np.bincount(class_index, weights)
    sums = np.zeros((len(totals), means.shape[1]))
    np.add.at(sums, class_index, weights[:, None] * means)
    class_means = sums[class_index] / totals[class_index, None]
    return np.asarray(np.sqrt(weights / weights.sum())[:, None] * (means - class_means))


def mean_spectrum(contrasts: Float64Array) -> Spectrum:
    r"""Eigen-decompose the scatter of the contrasts (Algorithm 1, step II: PCA of the means).

    With one class and unit weights the scatter :math:`M^T M` is the paper's
    :math:`\frac1E \widetilde{\mathcal M}^T \widetilde{\mathcal M}`. It is never formed: its
    eigenvalues are the squared singular values of M.

    Parameters
    ----------
    contrasts : ndarray of shape (m, d)
        From `mean_contrasts`.

    Returns
    -------
    Spectrum
        With min(m, d) vectors.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.array([[1.0, 0.0], [1.0, 4.0]])  # the environments differ in the second feature
    >>> M = mean_contrasts(means, np.ones(2), np.zeros(2, dtype=int))
    >>> mean_spectrum(M).values
    array([4., 0.])
    """
    n_features = contrasts.shape[1]
    _, singular, vectors = svd(contrasts, full_matrices=False)
    values = np.zeros(n_features)
    values[: len(singular)] = singular**2
    return Spectrum(values, fix_signs(vectors))


def pair_spectrum(difference: Float64Array) -> Spectrum:
    """Eigen-decompose a covariance difference (Algorithm 2, step II).

    Parameters
    ----------
    difference : ndarray of shape (d, d)
        Symmetric.

    Returns
    -------
    Spectrum
        With d vectors, by descending absolute eigenvalue; values keep their sign.
    """
    values, vectors = eigen_system((difference + difference.T) / 2)
    order = np.argsort(-np.abs(values), kind="stable")
    return Spectrum(values[order], fix_signs(vectors.T[order]))


def flag_mean(bases: list[Float64Array]) -> Spectrum:
    r"""Flag mean of subspaces: the directions that most of them share (robust ISR-Cov).

    The paper averages the kept subspaces: left singular vectors of their concatenated bases. The
    projections on kept and removed parts add up to the identity, so the average of the removed
    parts has the same eigenvectors in reverse order, from smaller matrices.

    Parameters
    ----------
    bases : list of ndarray of shape (r_i, d)
        Orthonormal rows.

    Returns
    -------
    Spectrum
        Values are eigenvalues of the mean projection, in [0, 1]: the share of the subspaces that
        contain the direction.
    """
    stacked = np.concatenate(bases) / np.sqrt(len(bases))
    if len(stacked) == 0:
        return Spectrum(np.zeros(stacked.shape[1]), stacked)
    return mean_spectrum(stacked)
