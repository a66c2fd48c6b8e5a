r"""Stage 2: the spurious subspace as a frozen result that applies, folds and saves itself."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from scipy.linalg import qr, subspace_angles

from isrlearn.display import leading_weights, table
from isrlearn.rows import (
    WIDE,
    as_numbers,
    as_rows,
    blocks,
    check_number,
    check_scale,
    namespace,
    on_device,
    require_names,
    require_protocol,
    saved_floats,
    shape_of,
    to_device,
)
from isrlearn.typing import Float64Array, FloatArray

__all__ = ["Subspace"]

PROTOCOL: Final = 1
BLOCK_BYTES: Final = 2**19  # of a block of rows that stays in the cache of one core


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    r"""Directions to remove from feature space, and how.

    Removal is affine and may be oblique:

    .. math:: \mathrm{project}(x) = x - (1 - s)\, D^T F (x - c)

    with rows D `directions`, F `functionals`, c `centre` and s `scale`. Only these low-rank factors
    are kept; no d x d matrix is formed unless `matrix` is called.

    Parameters
    ----------
    directions : ndarray of shape (r, d)
        Orthonormal rows that span what is removed.
    functionals : ndarray of shape (r, d)
        How much of each direction a row has, ``functionals @ directions.T`` is the identity. Equal
        to `directions` for an orthogonal removal.
    centre : ndarray of shape (d,)
        Removal is relative to this point: shifting X shifts the result and changes nothing else.
    spectrum : ndarray of shape (d,)
        Eigenvalues by descending absolute value, of which the directions are the first r.
    scale : float
        What is left of the removed part, from 0 (nothing) to 1 (all).

    Examples
    --------
    >>> import numpy as np
    >>> s = Subspace.orthogonal(np.array([[0.0, 1.0]]), centre=np.array([0.0, 3.0]))
    >>> s
    Subspace(rank=1, features=2, scale=0.0)
    >>> s.project(np.array([[2.0, 7.0]]))
    array([[2., 3.]])
    >>> s.fold_into(np.array([[1.0, 1.0]]), np.array([0.5]))
    (array([[1., 0.]]), array([3.5]))
    """

    directions: Float64Array
    functionals: Float64Array
    centre: Float64Array
    spectrum: Float64Array
    scale: float = 0.0

    def __post_init__(self) -> None:
        given = self.directions
        plain = isinstance(given, np.ndarray)
        shape: Any = np.shape(given if plain else as_numbers(given, "directions"))
        if len(shape) != 2:
            raise ValueError(
                f"directions has shape {shape}, but must have one row for each direction."
            )
        r, d = shape
        shapes = {"directions": (r, d), "functionals": (r, d), "centre": (d,), "spectrum": (d,)}
        for name, expected in shapes.items():
            given = getattr(self, name)
            plain = isinstance(given, np.ndarray) and given.dtype.kind == "f"
            own = np.array(given if plain else as_numbers(given, name), dtype=np.float64)
            if own.shape != expected:
                raise ValueError(
                    f"{name} has shape {own.shape}, but with directions of shape {(r, d)} it must "
                    f"have {expected}."
                )
            if not np.isfinite(own).all():
                raise ValueError(f"{name} has NaN or infinity: give finite numbers.")
            own.flags.writeable = False
            object.__setattr__(self, name, own)
        object.__setattr__(self, "scale", check_scale(self.scale))
        for name in ("directions", "functionals"):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is no identity
                products = getattr(self, name) @ self.directions.T
            if not np.allclose(products, np.eye(r), atol=1e-6):
                raise ValueError(
                    f"{name} @ directions.T is not the identity: directions must be orthonormal "
                    "rows, and each functional 1 on its own direction and 0 on the others."
                )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Freeze the arrays again: a copy by serialisation comes back writeable."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                _read_only(value)
        self.__dict__.update(state)

    @classmethod
    def orthogonal(
        cls,
        directions: Float64Array,
        *,
        centre: Float64Array,
        spectrum: Float64Array | None = None,
        scale: float = 0.0,
    ) -> Self:
        """Return an orthogonal removal: functionals equal to the directions.

        Parameters
        ----------
        directions : ndarray of shape (r, d)
            Orthonormal rows.
        centre : ndarray of shape (d,)
            Point that stays where it is.
        spectrum : ndarray of shape (d,), default=None
            Eigenvalues; None for zeros.
        scale : float, default=0.0
            What is left of the removed part.
        """
        if spectrum is None:
            spectrum = np.zeros(np.shape(directions)[-1:])
        return cls(directions, directions, centre, spectrum, scale)

    @classmethod
    def nothing(cls, n_features: int) -> Self:
        """Return the subspace {0}: projecting changes nothing."""
        check_number("n_features", n_features, 0, 2**31 - 1, whole=True)
        return cls.orthogonal(np.empty((0, n_features)), centre=np.zeros(n_features))

    @property
    def rank(self) -> int:
        """Number of directions r."""
        return int(self.directions.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.directions.shape[1])

    @cached_property
    def kept(self) -> Float64Array:
        r"""Orthonormal basis of what stays, (d - r, d): the paper's :math:`P'` (step III).

        It is orthogonal to the directions, so :math:`P' \mathrm{project}(x) = P'x` for any
        functionals and centre.
        """
        if self.rank == 0:
            return _read_only(np.eye(self.n_features))
        q, _ = qr(self.directions.T)
        return _read_only(fix_signs(q[:, self.rank :].T))

    def project(self, X: FloatArray) -> FloatArray:
        """Remove the subspace from rows, in the original coordinates.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Rows, float32 or float64; also of torch or another library, on a device.

        Returns
        -------
        ndarray of shape (n, d)
            A new array of the type of X, on its device.
        """
        if not self._is_fine(X):
            X = self._checked_rows(X)
        functionals = (1 - self.scale) * self.functionals
        if not isinstance(X, np.ndarray):
            return _without_on_device(X, self.directions, functionals, self.centre)
        if len(functionals) == 0:
            return np.array(X)
        return _without(X, self.directions, functionals, self.centre)

    def reduce(self, X: FloatArray) -> FloatArray:
        """Return the coordinates `P'x` of rows in the kept subspace, (n, d - r)."""
        X = X if self._is_fine(X) else self._checked_rows(X)
        if not isinstance(X, np.ndarray):
            there: FloatArray = namespace(X).matmul(X, to_device(self.kept.T, X))
            return there
        return np.asarray(X @ self.kept.T.astype(X.dtype))

    def fold_into(
        self, weight: Any, bias: Any = None, *, centre: float | Float64Array | None = None
    ) -> tuple[Any, Any]:
        r"""Return the head that gives on x what the old one gives on ``project(x)``.

        .. math:: w' = w - (1-s)\, w D^T F, \qquad b' = b + (1-s)\, w D^T F c

        Parameters
        ----------
        weight : array-like of shape (d,) or (k, d)
            Weights of a linear head.
        bias : array-like of shape () or (k,), default=None
            Its bias. None is an error unless the removal is about the origin: a head without bias
            cannot hold the constant that removal adds.
        centre : float or ndarray of shape (d,), default=None
            Remove relative to this point instead of `self.centre`; 0 for a head without bias.

        Returns
        -------
        weight, bias
            Of the shapes that came in, bias None if it was None.
        """
        weight = _finite(weight, "weight")
        self._check_features(weight, "weight")
        point = self._point(centre)
        with np.errstate(over="ignore", invalid="ignore"):  # such weights are refused
            change = (1 - self.scale) * (weight @ self.directions.T) @ self.functionals
            new_weight, constant = weight - change, change @ point
        new_weight = _in_type(new_weight, weight.dtype, "weight")
        if bias is None:
            if np.any(constant != 0):
                raise ValueError(
                    "this head has no bias, but removing directions relative to their centre adds "
                    "a constant: give the head a bias, or pass centre=0 to remove about the origin."
                )
            return new_weight, None
        bias = _finite(bias, "bias")
        if bias.shape != constant.shape:
            raise ValueError(
                f"bias has shape {bias.shape}, but with weight of shape {weight.shape} it must "
                f"have {constant.shape}."
            )
        return new_weight, _in_type(bias + constant, bias.dtype, "bias")

    def angles_to(self, other: "Subspace | Float64Array") -> Float64Array:
        """Return the principal angles between two removed subspaces, in radians, largest first.

        Parameters
        ----------
        other : Subspace or ndarray of shape (r', d)
            Another subspace, or rows that span one.

        Returns
        -------
        ndarray of shape (min(r, r'),)
            All zero if one span contains the other.

        Examples
        --------
        >>> import numpy as np
        >>> s = Subspace.orthogonal(np.array([[1.0, 0.0, 0.0]]), centre=np.zeros(3))
        >>> np.degrees(s.angles_to(np.array([1.0, 1.0, 0.0]))).round()
        array([45.])
        """
        rows = np.atleast_2d(_finite(getattr(other, "directions", other), "other"))
        self._check_features(rows, "other")
        if self.rank == 0 or len(rows) == 0:
            return np.empty(0)
        return np.asarray(subspace_angles(self.directions.T, rows.T))

    def matrix(self) -> Float64Array:
        """Return the linear part of `project` as a dense matrix P, (d, d): ``P @ x``."""
        change = (1 - self.scale) * self.directions.T @ self.functionals
        return np.asarray(np.eye(self.n_features) - change)

    def to_arrays(self) -> dict[str, Any]:
        """Return plain arrays from which `from_arrays` rebuilds the subspace.

        Returns
        -------
        dict of str to ndarray

        Examples
        --------
        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/removed.npz", **Subspace.nothing(3).to_arrays())
        ...     with np.load(f"{folder}/removed.npz") as arrays:
        ...         print(Subspace.from_arrays(arrays))
        Subspace(rank=0, features=3, scale=0.0)
        """
        return {
            "protocol": np.array(PROTOCOL),
            "directions": self.directions,
            "functionals": self.functionals,
            "centre": self.centre,
            "spectrum": self.spectrum,
            "scale": np.array(self.scale),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> Self:
        """Rebuild a subspace from `to_arrays`.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `to_arrays` returned, or an opened ``.npz`` file of it.
        """
        require_protocol(arrays, PROTOCOL, "subspace")
        shapes: dict[str, Any] = dict.fromkeys(("directions", "functionals"), (None, None))
        shapes |= dict.fromkeys(("centre", "spectrum"), (None,)) | {"scale": ()}
        require_names(arrays, shapes, "subspace")
        found = {name: saved_floats(arrays[name], name, s) for name, s in shapes.items()}
        scale = float(found.pop("scale"))
        return cls(**found, scale=scale)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(rank={self.rank}, features={self.n_features}, "
            f"scale={self.scale})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (i + 1, [f"{self.spectrum[i]:.4g}", leading_weights(direction)])
            for i, direction in enumerate(self.directions)
        ]
        return table(
            f"{self.rank} of {self.n_features} directions removed, {self.scale:g} of them left",
            ["eigenvalue", "largest weights"],
            rows,
            corner="direction",
        )

    def _point(self, centre: Any) -> Float64Array:
        if centre is None:
            return self.centre
        point = _finite(centre, "centre")
        if point.shape not in ((), (self.n_features,)):
            raise ValueError(
                f"centre has shape {point.shape}: give a number, or one for each of "
                f"{self.n_features} features."
            )
        return np.broadcast_to(np.asarray(point, dtype=np.float64), self.n_features)

    def _is_fine(self, X: Any) -> bool:
        """Whether rows need no second look."""
        floats = type(X) is np.ndarray and X.dtype.kind == "f"
        return floats and X.ndim == 2 and len(X) > 0 and X.shape[1] == len(self.centre)

    def _checked_rows(self, X: Any) -> FloatArray:
        is_empty = shape_of(X)[:1] == (0,)  # nothing to remove from, and no mistake
        rows: FloatArray = X if on_device(X) else _as_float(X if is_empty else as_rows(X))
        self._check_features(rows, "X")
        return rows

    def _check_features(self, array: Any, name: str) -> None:
        if array.ndim == 0 or array.shape[-1] != self.n_features:
            raise ValueError(
                f"{name} has shape {array.shape}, but there are {self.n_features} features: its "
                "last dimension must have one entry for each."
            )


def _without(
    X: FloatArray, directions: Float64Array, functionals: Float64Array, centre: Float64Array
) -> FloatArray:
    r"""Return :math:`x - D^T F (x - c)` for all rows: X is read and the result written once."""
    with np.errstate(over="ignore", invalid="ignore"):
        amounts = _amounts(X, functionals, centre)
    if X.dtype != np.float64 and not np.isfinite(amounts).all():  # beyond its range on the way
        return _without(X.astype(np.float64), directions, functionals, centre).astype(X.dtype)
    D, result = np.ascontiguousarray(directions, X.dtype), np.empty(X.shape, X.dtype)
    rows = max(1, BLOCK_BYTES // (X.itemsize * X.shape[1]))
    buffer = np.empty((min(rows, len(X)), X.shape[1]), X.dtype)
    times = np.multiply if len(D) == 1 else np.matmul  # a product with one row is slow as a matrix
    for start in range(0, len(X), rows):
        own = slice(start, start + rows)
        removed = times(amounts[own], D, out=buffer[: len(X[own])])
        np.subtract(X[own], removed, out=result[own])
    return result


def _amounts(X: FloatArray, functionals: Float64Array, centre: Float64Array) -> FloatArray:
    F = functionals.astype(X.dtype)
    if X.shape[1] <= WIDE:
        return np.asarray((X - centre.astype(X.dtype)) @ F.T)
    # No copy of X; the product is off by no more than the rounding of X itself.
    return np.asarray(X @ F.T - (functionals @ centre).astype(X.dtype))


def _without_on_device(
    X: FloatArray, directions: Float64Array, functionals: Float64Array, centre: Float64Array
) -> FloatArray:
    """Do what `_without` does, with the functions of the library of X."""
    xp, F, c = namespace(X), to_device(functionals.T, X), to_device(centre, X)
    amounts = xp.concat([xp.matmul(block - c, F) for block in blocks(X)], axis=0)
    result: FloatArray = xp.matmul(amounts, to_device(-directions, X))
    result += X  # so that this is the one array of the size of X
    return result


def _read_only(array: Float64Array) -> Float64Array:
    array.flags.writeable = False
    return array


def _finite(values: Any, name: str) -> FloatArray:
    array = _as_float(as_numbers(values, name))
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinity: give finite numbers.")
    return array


def _as_float(values: Any) -> FloatArray:
    array = np.asarray(values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _in_type(values: Any, dtype: Any, name: str) -> Any:
    """Return an array in another type; what is beyond its range is refused."""
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    if not np.isfinite(array).all():
        raise ValueError(
            f"the new {name} has numbers beyond {np.finfo(dtype).max:.3g}, the largest of "
            f"{np.dtype(dtype)}: pass the head in a wider type, or scale the features."
        )
    return array


def fix_signs(vectors: Float64Array) -> Float64Array:
    """Make the entry of largest absolute value of each row positive, the first of equal ones.

    Equal up to 1e-6: rounding must not decide between them.
    """
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1 - 1e-6) * sizes.max(axis=1)[:, None], axis=1)
    negative = vectors[np.arange(len(vectors)), first] < 0
    return np.where(negative[:, None], -vectors, vectors)
