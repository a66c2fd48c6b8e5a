"""Coordinates in which a head is fitted, without a copy of the rows in these coordinates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isrlearn.subspace import Subspace
from isrlearn.typing import Float64Array, FloatArray


def times(rows: Any, forward: Any) -> Any:
    """Return rows in other coordinates, by a map (d, q) or by its diagonal (d,)."""
    return np.asarray(rows * forward if forward.ndim == 1 else rows @ forward)


@dataclass(frozen=True, eq=False)
class HeadCoordinates:
    r"""Rows without their spurious part, about a point, and mapped: :math:`z = (Px + p - c)M`.

    A head on z is a head on x with other weights, and its slope follows from that on x. So a
    solver works in z while only x is read.

    Parameters
    ----------
    subspace : Subspace
        What is removed first.
    centre : ndarray of shape (d,)
        The point c.
    forward : ndarray of shape (d, q) or (d,), default=None
        The map M, or its diagonal; None leaves the coordinates as they are.
    """

    subspace: Subspace
    centre: Float64Array
    forward: Float64Array | None = None

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of z."""
        return len(self.centre) if self.forward is None else int(self.forward.shape[-1])

    def unmapped(
        self, weight: Float64Array, bias: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the head on rows without their spurious part that a head on z is.

        Parameters
        ----------
        weight : ndarray of shape (m, q)
            Weights on z.
        bias : ndarray of shape (m,)
            Its bias.
        """
        wide = weight if self.forward is None else times(weight, self.forward.T)
        return wide, bias - wide @ self.centre

    def mapped(self, rows: FloatArray) -> FloatArray:
        """Return rows without their spurious part in these coordinates, in their precision."""
        inside: FloatArray = rows - self.centre.astype(rows.dtype)
        if self.forward is None:
            return inside
        return np.asarray(times(inside, self.forward.astype(rows.dtype)))

    def on_rows(
        self, weight: Float64Array, bias: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the head on x that a head on z is, (m, d) and (m,)."""
        weight, bias = self.subspace.fold_into(*self.unmapped(weight, bias))
        return weight, bias

    def pull_back(self, by_weight: Float64Array, by_bias: Float64Array) -> Float64Array:
        """Return derivatives by weights on z, (m, q), from those of the head on x.

        Parameters
        ----------
        by_weight : ndarray of shape (m, d)
            Derivatives by the weights on x: sums of rows.
        by_bias : ndarray of shape (m,)
            Derivatives by the bias: how many rows were summed.
        """
        # A sum of n rows, projected, is the sum of the projected rows.
        along = (1 - self.subspace.scale) * self.subspace.functionals.T
        amounts = by_weight @ along - np.outer(by_bias, self.subspace.centre @ along)
        inside = by_weight - amounts @ self.subspace.directions - np.outer(by_bias, self.centre)
        return np.asarray(inside if self.forward is None else times(inside, self.forward))
