"""The subspace where its answers are known: types, shapes, blocks, and what it says."""

from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import says

from isrlearn import Subspace
from isrlearn.subspace import _subspace

X, Y, Z = np.eye(3)


def line(**given):
    """The second of three features, about the point (1, 2, 3)."""
    return Subspace.orthogonal(np.array([Y]), centre=np.array([1.0, 2.0, 3.0]), **given)


def slanted(random, r, d, scale=0.0):
    directions = np.linalg.qr(random.normal(size=(d, r)))[0].T
    noise = random.normal(size=(r, d))
    functionals = directions + noise - noise @ directions.T @ directions
    return Subspace(directions, functionals, random.normal(size=d), np.zeros(d), scale)


def by_definition(s, rows):
    """x - (1 - s) D^T F (x - c), row by row."""
    removal = (1 - s.scale) * s.directions.T @ s.functionals
    return np.array([x - removal @ (x - s.centre) for x in rows])


# --- what it is made of


def test_parts_of_any_type_are_kept_in_double_precision():
    s = Subspace([[0, 1]], np.array([[0, 1]], dtype=np.float32), [1, 2], [3, 0], 1)
    for part in (s.directions, s.functionals, s.centre, s.spectrum):
        assert part.dtype == np.float64
        assert not part.flags.writeable
    assert type(s.scale) is float
    assert repr(s) == "Subspace(rank=1, features=2, scale=1.0)"


def test_an_orthogonal_removal_has_the_parts_it_was_given():
    s = line(spectrum=np.array([5.0, 4.0, 3.0]), scale=0.5)
    np.testing.assert_array_equal(s.functionals, s.directions)
    np.testing.assert_array_equal(s.spectrum, [5, 4, 3])
    assert s.scale == 0.5
    np.testing.assert_array_equal(line().spectrum, np.zeros(3))
    assert line().scale == 0


@pytest.mark.parametrize("name", ["directions", "functionals"])
def test_rounding_of_single_precision_is_no_mistake(name):
    parts = {"directions": [X, Y], "functionals": [X, Y], "centre": 0 * X, "spectrum": 0 * X}
    Subspace(**{**parts, name: [X + 5e-7 * Y, Y]})
    with says(
        f"{name} @ directions.T is not the identity: directions must be orthonormal rows, and each "
        "functional 1 on its own direction and 0 on the others."
    ):
        Subspace(**{**parts, name: [X + 0.1 * Y, Y]})


def test_every_part_has_its_shape():
    parts = {"directions": [X, Y], "functionals": [X, Y], "centre": X, "spectrum": X}
    for name, wrong, expected in (
        ("functionals", [X], (2, 3)),
        ("centre", X[:2], (3,)),
        ("spectrum", [X], (3,)),
    ):
        with says(
            f"{name} has shape {np.shape(wrong)}, but with directions of shape (2, 3) it must "
            f"have {expected}."
        ):
            Subspace(**{**parts, name: wrong})
    with says("directions has shape (3,), but must have one row for each direction."):
        Subspace(X, [X], X, X)


def not_finite(name):
    return says(f"{name} has NaN or infinity: give finite numbers.")


def no_numbers(name):
    return says(
        f"{name} holds text, such as 'a', but numbers are needed: encode it, or convert it if it "
        "looks like numbers."
    )


@pytest.mark.parametrize("name", ["directions", "functionals", "centre", "spectrum"])
def test_every_part_is_of_finite_numbers(name):
    parts = {"directions": [X, Y], "functionals": [X, Y], "centre": X, "spectrum": X}
    with not_finite(name):
        Subspace(**{**parts, name: np.nan * np.array(parts[name])})
    with no_numbers(name):
        Subspace(**{**parts, name: np.full(np.shape(parts[name]), "a")})


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_overflows_is_no_identity(sign):
    """And nothing is warned of beside it, be it infinity or infinity less infinity."""
    direction = np.tile([1.0, sign], 150)[None] / 300**0.5
    functional = np.full((1, 300), 1.7e308)
    with pytest.raises(ValueError, match=r"^functionals @ directions\.T is not the identity"):
        Subspace(direction, functional, np.zeros(300), np.zeros(300))


@pytest.mark.parametrize("bad", [-1, 2.0, True, None, 2**31])
def test_nothing_needs_a_number_of_features(bad):
    with says(f"n_features={bad!r} must be a whole number from 0 to 2147483647."):
        Subspace.nothing(bad)
    assert Subspace.nothing(0).n_features == 0


@pytest.mark.parametrize("name", ["directions", "functionals", "centre", "spectrum", "scale"])
def test_what_was_saved_in_part_is_refused(name):
    arrays = line().to_arrays()
    with says(f"{name} must hold finite numbers, and is of the type float64."):
        Subspace.from_arrays({**arrays, name: np.nan * arrays[name]})
    del arrays[name]
    with says(f"the saved subspace lacks {name}: save it again."):
        Subspace.from_arrays(arrays)


def test_what_was_saved_by_another_protocol_is_refused():
    with says(
        "the subspace was saved with protocol 2, and this version reads protocol 1: install the "
        "version of isrlearn that saved it."
    ):
        Subspace.from_arrays({**line().to_arrays(), "protocol": np.array(2)})


# --- removing


@pytest.mark.parametrize("d", [3, 256, 257, 300])
@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("scale", [0.0, 0.25])
def test_removal_is_its_definition_block_by_block(random, monkeypatch, d, r, scale):
    s = slanted(random, r, d, scale)
    rows = random.normal(size=(50, d))
    expected = by_definition(s, rows)
    for rows_per_block in (100, 50, 7, 1, 0):
        monkeypatch.setattr(_subspace, "BLOCK_BYTES", rows_per_block * d * 8)
        np.testing.assert_allclose(s.project(rows), expected, atol=1e-11)
        found = s.project(rows.astype(np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-3)
    assert s.project(rows[:0]).shape == (0, d)


def test_a_sum_beyond_single_precision_is_taken_in_double():
    s = Subspace([[1.0, 0.0]], [[1.0, -1.0]], [0.0, 0.0], [0.0, 0.0])
    rows = np.array([[1.0, 3.0], [3e38, -3e38]], dtype=np.float32)
    found = s.project(rows)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([[3.0, 3.0], [-3e38, -3e38]], dtype=np.float32))
    # Beyond it on both sides: what is left of infinity less infinity is known in double.
    both = Subspace([X], [[1.0, 4.0, -4.0]], np.zeros(3), np.zeros(3))
    rows = np.array([[0.0, 3e38, 3e38]], dtype=np.float32)
    np.testing.assert_array_equal(both.project(rows), rows)
    with np.errstate(all="ignore"):  # there is nothing wider than double precision
        assert not np.isfinite(s.project(1.5e308 * np.array([[1.0, -1.0]]))).any()


def test_rows_that_are_none_are_refused_by_name():
    with says(
        "X holds text, such as 'a', but numbers are needed: encode it, or convert it if it looks "
        "like numbers."
    ):
        line().project([["a", "b", "c"]])
    with says(
        "X has shape (0,), but there are 3 features: its last dimension must have one entry for "
        "each."
    ):
        line().reduce([])


@pytest.mark.parametrize(("dtype", "far"), [(np.float16, 1e5), (np.float32, 3e38)])
def test_a_bias_that_its_type_cannot_hold_is_refused(dtype, far):
    s = Subspace.orthogonal(np.array([[0.6, 0.8]]), centre=np.full(2, far))
    head = np.ones((1, 2), dtype), np.zeros(1, dtype)
    with says(
        f"the new bias has numbers beyond {np.finfo(dtype).max:.3g}, the largest of "
        f"{np.dtype(dtype)}: pass the head in a wider type, or scale the features."
    ):
        s.fold_into(*head)
    assert np.isfinite(s.fold_into(*(part.astype(np.float64) for part in head))[1])


@pytest.mark.parametrize("weight", [[1.7e308, -1.7e308], [1.7e308, 1.7e308], [1e308, 1.7e308]])
def test_a_weight_beyond_double_precision_is_refused(weight):
    far = np.array(weight)
    directions = [[1.0, 0.0]] if far[1] < 0 else [[0.6, 0.8]]
    functionals = [[1.0, 1.0]] if far[1] < 0 else directions
    with says(
        "the new weight has numbers beyond 1.8e+308, the largest of float64: pass the head in a "
        "wider type, or scale the features."
    ):
        Subspace(directions, functionals, [0.0, 0.0], [0.0, 0.0]).fold_into(far, 0.0)


@pytest.mark.parametrize("scale", [0.0, 0.25, 1.0])
def test_the_matrix_is_the_linear_part(random, scale):
    s = slanted(random, 2, 5, scale)
    rows = random.normal(size=(4, 5))
    differences = s.project(rows) - s.project(rows[::-1])
    np.testing.assert_allclose((rows - rows[::-1]) @ s.matrix().T, differences, atol=1e-12)


def test_wrong_shapes_are_told_by_name():
    s, rows = line(), np.zeros((4, 2))
    told = "has shape (4, 2), but there are 3 features: its last dimension must have one entry for "
    for name, use in (
        ("X", s.project),
        ("X", s.reduce),
        ("weight", s.fold_into),
        ("other", s.angles_to),
    ):
        with says(f"{name} {told}each."):
            use(rows)


# --- folding


@pytest.mark.parametrize("centre", [7.0, 7, [7.0, 8.0, 9.0], np.array([7, 8, 9])])
def test_a_head_is_folded_about_any_point(centre):
    weight, bias = line(scale=0.5).fold_into([[1.0, 2.0, 3.0]], [10.0], centre=centre)
    np.testing.assert_array_equal(weight, [[1.0, 1.0, 3.0]])
    np.testing.assert_array_equal(bias, [10.0 + 0.5 * 2.0 * np.broadcast_to(centre, 3)[1]])


def test_a_point_of_another_space_is_refused():
    with says("centre has shape (2,): give a number, or one for each of 3 features."):
        line().fold_into(X, 0.0, centre=[0.0, 0.0])


def test_a_head_without_bias_cannot_hold_a_constant():
    with says(
        "this head has no bias, but removing directions relative to their centre adds a constant: "
        "give the head a bias, or pass centre=0 to remove about the origin."
    ):
        line().fold_into(Y)
    weight, bias = line().fold_into(X + Z)  # no part of it is removed
    np.testing.assert_array_equal(weight, X + Z)
    assert bias is None


def test_a_bias_of_another_shape_is_refused():
    with says("bias has shape (3,), but with weight of shape (2, 3) it must have (2,)."):
        line().fold_into(np.zeros((2, 3)), np.zeros(3))


@pytest.mark.parametrize("name", ["weight", "bias", "centre"])
def test_what_is_no_head_is_told_by_name(name):
    head = {"weight": Y, "bias": 0.0, "centre": X}
    with not_finite(name):
        line().fold_into(**{**head, name: head[name] * np.nan})
    with no_numbers(name):
        line().fold_into(**{**head, name: ["a", 1.0, 2.0]})


# --- comparing and showing


def test_what_spans_nothing_is_told_by_name():
    with not_finite("other"):
        line().angles_to([np.inf, 0.0, 0.0])
    with no_numbers("other"):
        line().angles_to(["a", 1.0, 2.0])


def test_nothing_has_no_angles():
    assert Subspace.nothing(3).angles_to(np.array([X])).shape == (0,)
    assert line().angles_to(np.empty((0, 3))).shape == (0,)
    np.testing.assert_allclose(line().angles_to(Y + Z), [np.pi / 4])


def test_a_notebook_shows_the_largest_weights():
    directions = np.array([[0.1, -0.5, 0.5, 0.7, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    directions[0] /= np.linalg.norm(directions[0])
    s = Subspace.orthogonal(
        directions, centre=np.zeros(5), spectrum=np.array([12.34567, -2, 0, 0, 0]), scale=0.25
    )
    page = ElementTree.fromstring(s._repr_html_())
    assert page.findtext("caption") == "2 of 5 directions removed, 0.25 of them left"
    assert [[cell.text for cell in row] for row in page.iter("tr")] == [
        ["direction", "eigenvalue", "largest weights"],
        ["1", "12.35", "x3 +0.70, x1 -0.50, x2 +0.50"],
        ["2", "-2", "x4 +1.00, x0 +0.00, x1 +0.00"],
    ]


def test_directions_that_are_text_are_named():
    with says("directions='x' is text, but an array is needed: give numbers."):
        Subspace("x", "x", np.zeros(3), np.zeros(3))
