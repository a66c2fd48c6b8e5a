"""The frozen subspace: what it applies, folds, compares and saves."""

import copy
import io

import numpy as np
import pytest
from conftest import seeds
from hypothesis import given, strategies as st

from isrlearn import Subspace


def draw_subspace(random, r=2, d=5, scale=0.0, oblique=True):
    directions = np.linalg.qr(random.normal(size=(d, r)))[0].T
    functionals = directions
    if oblique:  # functionals = directions + anything that sees none of them
        noise = random.normal(size=(r, d))
        functionals = directions + noise - noise @ directions.T @ directions
    return Subspace(directions, functionals, random.normal(size=d), random.normal(size=d), scale)


oblique_or_not = pytest.mark.parametrize("oblique", [True, False])


@oblique_or_not
@given(seed=seeds, scale=st.floats(0, 1), k=st.integers(0, 4))
def test_folding_is_projecting(oblique, seed, scale, k):
    random = np.random.default_rng(seed)
    s = draw_subspace(random, scale=scale, oblique=oblique)
    weight = random.normal(size=(k, 5) if k else 5)
    bias = random.normal(size=k) if k else np.float64(random.normal())
    X = random.normal(size=(20, 5))
    new_weight, new_bias = s.fold_into(weight, bias)
    assert new_weight.shape == weight.shape
    assert new_bias.shape == np.shape(bias)
    np.testing.assert_allclose(
        X @ new_weight.T + new_bias, s.project(X) @ weight.T + bias, atol=1e-8
    )


@oblique_or_not
@given(seed=seeds)
def test_what_is_removed_is_gone(oblique, seed):
    random = np.random.default_rng(seed)
    s = draw_subspace(random, oblique=oblique)
    X = random.normal(size=(20, 5))
    np.testing.assert_allclose((s.project(X) - s.centre) @ s.functionals.T, 0, atol=1e-9)
    np.testing.assert_allclose(s.project(s.project(X)), s.project(X), atol=1e-9)
    np.testing.assert_allclose(s.project(s.centre[None]), s.centre[None])
    np.testing.assert_allclose(s.matrix() @ s.directions.T, 0, atol=1e-9)
    np.testing.assert_allclose(s.reduce(s.project(X)), s.reduce(X), atol=1e-9)


@given(seed=seeds)
def test_kept_and_directions_make_a_basis(seed):
    s = draw_subspace(np.random.default_rng(seed), r=3)
    basis = np.vstack([s.directions, s.kept])
    np.testing.assert_allclose(basis @ basis.T, np.eye(5), atol=1e-12)


def test_shifting_rows_and_centre_shifts_the_result(random):
    s = draw_subspace(random)
    X, shift = random.normal(size=(9, 5)), random.normal(size=5)
    moved = Subspace(s.directions, s.functionals, s.centre + shift, s.spectrum, s.scale)
    np.testing.assert_allclose(moved.project(X + shift), s.project(X) + shift)


def test_scale_one_changes_nothing_and_zero_removes(random):
    X = random.normal(size=(9, 5))
    np.testing.assert_allclose(draw_subspace(random, scale=1.0).project(X), X)
    np.testing.assert_array_equal(Subspace.nothing(5).project(X), X)
    assert Subspace.nothing(5).project(X) is not X


def test_types_and_values_of_the_caller_stay(random):
    s = draw_subspace(random)
    X = random.normal(size=(9, 5)).astype(np.float32)
    before = X.copy()
    assert s.project(X).dtype == s.reduce(X).dtype == np.float32
    weight, bias = s.fold_into(X[0], np.float32(1))
    assert weight.dtype == bias.dtype == np.float32
    np.testing.assert_array_equal(X, before)


def test_a_head_without_bias_is_refused_or_folded_about_the_origin(random):
    s = draw_subspace(random)
    weight = random.normal(size=(2, 5))
    with pytest.raises(ValueError, match="no bias.*centre=0"):
        s.fold_into(weight, None)
    folded, bias = s.fold_into(weight, None, centre=0)
    assert bias is None
    np.testing.assert_allclose(folded, weight @ s.matrix())


def test_principal_angles(random):
    x, y, z = np.eye(3)
    flat = Subspace.orthogonal(np.array([x, y]), centre=np.zeros(3))
    tilted = Subspace.orthogonal(np.array([x, (y + z) / np.sqrt(2)]), centre=np.zeros(3))
    np.testing.assert_allclose(flat.angles_to(tilted), [np.pi / 4, 0], atol=1e-7)
    np.testing.assert_allclose(flat.angles_to(np.array([x + y])), [0], atol=1e-7)
    assert flat.angles_to(Subspace.nothing(3)).size == 0


def test_arrays_and_back_through_a_file_without_pickle(random):
    s = draw_subspace(random, scale=0.25)
    file = io.BytesIO()
    np.savez(file, **s.to_arrays())
    file.seek(0)
    back = Subspace.from_arrays(np.load(file, allow_pickle=False))
    for name, value in s.to_arrays().items():
        np.testing.assert_array_equal(back.to_arrays()[name], value)
    with pytest.raises(ValueError, match="protocol 7"):
        Subspace.from_arrays({**s.to_arrays(), "protocol": np.array(7)})


def test_it_is_frozen(random):
    s = draw_subspace(random)
    with pytest.raises(AttributeError):
        s.scale = 1.0
    with pytest.raises(ValueError, match="read-only"):
        s.directions[0, 0] = 1.0


def test_wrong_shapes_are_named(random):
    s = draw_subspace(random)
    with pytest.raises(ValueError, match=r"X has shape \(2, 4\).*5 features"):
        s.project(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="bias has shape"):
        s.fold_into(np.zeros((2, 5)), np.zeros(3))
    with pytest.raises(ValueError, match="centre has shape"):
        Subspace(s.directions, s.functionals, np.zeros(4), s.spectrum)


def test_whole_numbers_and_lists_are_rows_too(random):
    s = draw_subspace(random)
    X = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]
    np.testing.assert_allclose(s.project(X), s.project(np.array(X, dtype=float)))
    np.testing.assert_allclose(s.reduce(np.array(X)), np.array(X) @ s.kept.T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directions": [[2.0, 0.0]]}, "directions must be orthonormal"),
        ({"functionals": [[3.0, 0.0]]}, "functionals @ directions.T is not the identity"),
        ({"scale": 7}, "scale=7 is not a number in"),
    ],
)
def test_what_is_no_projection_is_refused(change, message):
    parts = {
        "directions": [[1.0, 0.0]],
        "functionals": [[1.0, 5.0]],
        "centre": [0.0, 0.0],
        "spectrum": [1.0, 0.0],
    }
    assert Subspace(**parts).rank == 1
    with pytest.raises(ValueError, match=message):
        Subspace(**{**parts, **change})


def test_it_stays_frozen_on_its_way_to_another_process(random):
    s = copy.deepcopy(draw_subspace(random))
    assert not s.directions.flags.writeable
    assert not s.kept.flags.writeable


def test_signs_of_what_is_kept_are_fixed(random):
    for _ in range(30):
        kept = draw_subspace(random, r=1, d=8).kept
        largest = np.abs(kept).argmax(axis=1)
        assert np.all(kept[np.arange(len(kept)), largest] > 0)
