"""The joint estimate, on evidence made by hand."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from isrlearn import ISR
from isrlearn.exceptions import PrecisionWarning
from isrlearn.subspace._joint import Joint, improved, joint_directions, shrinkage

Q = 9


def evidence(random, *, changes, means=0.0, noise=0.0):
    """Return evidence along r random directions: common or own changes of 3 environments."""
    r = changes.shape[-1]
    basis = np.linalg.qr(random.normal(size=(Q, Q)))[0][:, :r]
    half = random.normal(size=(3, Q, Q)) / np.sqrt(2)
    grain = noise * (half + np.swapaxes(half, 1, 2)) / np.sqrt(2)
    D = basis @ (changes[:, :, None] * np.eye(r)) @ basis.T + grain - grain.mean(axis=0)
    M = means * random.normal(size=(4, r)) @ basis.T
    return Joint(M, D, np.eye(Q), np.eye(Q)), basis


@pytest.mark.parametrize("r", [1, 2, 4])
@pytest.mark.parametrize("what", ["common", "own", "means"])
def test_evidence_without_noise_gives_the_subspace(random, r, what):
    common = np.outer([40.0, -10.0, -30.0], np.ones(r))
    own = 40 * random.normal(size=(3, r))
    changes = {"common": common, "own": own - own.mean(axis=0), "means": 0 * common}[what]
    joint, basis = evidence(random, changes=changes, means=50.0 * (what == "means"))
    found = joint_directions(joint, r)
    assert subspace_angles(found.T, basis).max() < 1e-6
    np.testing.assert_allclose(found @ found.T, np.eye(r), atol=1e-12)


def test_a_common_change_is_found_more_closely_by_its_trace(random, monkeypatch):
    """What shrinkage is for: the deviations from the trace are noise, and are left out."""
    joints = [
        evidence(random, changes=np.outer([4.0, -1.0, -3.0], np.ones(4)), noise=1.0)
        for _ in range(80)
    ]

    def typical_angle():
        return np.mean(
            [subspace_angles(joint_directions(joint, 4).T, basis).max() for joint, basis in joints]
        )

    shrunk = typical_angle()
    monkeypatch.setattr("isrlearn.subspace._joint.shrinkage", lambda blocks: 1.0)
    assert shrunk < typical_angle()


@pytest.mark.parametrize(("n_environments", "r"), [(2, 2), (3, 4), (6, 3)])
def test_shrinkage_is_that_of_james_and_stein(random, n_environments, r):
    blocks = random.normal(size=(n_environments, r, r))
    blocks = blocks + np.swapaxes(blocks, 1, 2)
    trace = np.trace(blocks, axis1=1, axis2=2)
    blocks -= trace[:, None, None] * np.eye(r) / r
    noise = (n_environments - 1) * (r * (r + 1) / 2 - 1)
    for multiple, expected in ((10.0, 0.8), (4.0, 0.5), (1.5, 0.0), (0.5, 0.0)):
        scaled = blocks * np.sqrt(multiple * noise / np.sum(blocks**2))
        assert shrinkage(scaled + 7 * np.eye(r)) == pytest.approx(expected)


@pytest.mark.parametrize("omega", [0.0, 0.5, 1.0])
def test_no_subspace_nearby_explains_more(random, monkeypatch, omega):
    """L(U) of the documentation has its peak at what is found."""
    monkeypatch.setattr("isrlearn.subspace._joint.shrinkage", lambda blocks: omega)
    changes = np.outer([40.0, -10.0, -30.0], [1.0, 1.0, 1.2])
    joint, _ = evidence(random, changes=changes, means=20.0, noise=3.0)

    def explained(U):
        blocks = U @ joint.covariances @ U.T
        trace = np.trace(blocks, axis1=1, axis2=2)
        common = np.sum(trace**2) / len(U)
        return np.sum((joint.means @ U.T) ** 2) + common + omega * (np.sum(blocks**2) - common)

    def moved(by):
        return explained(np.linalg.qr((found + by).T)[0].T)

    joint = joint._replace(means=joint.means + 5 * random.normal(size=joint.means.shape))
    found = joint_directions(joint, 3)
    for _ in range(20):
        step = 1e-3 * random.normal(size=found.shape)
        step -= step @ found.T @ found
        slope, bend = moved(step) - moved(-step), moved(step) + moved(-step) - 2 * moved(0 * step)
        assert bend < 0
        assert abs(slope) < 1e-2 * abs(bend)


def up_and_down(random, down, shift=0.5):
    """Evidence of two environments: one direction up, another nearly as much down."""
    turned = np.linalg.qr(random.normal(size=(3, 3)))[0]
    D = turned @ np.diag([10.0, down, 1.0]) @ turned.T
    means = shift * (turned[:, 0] + turned[:, 1])[None]
    return Joint(means, np.stack([D, -D]), np.eye(3), np.eye(3))


@pytest.mark.parametrize("down", [-9.0, -9.7, -9.9, 9.7, 9.9])
def test_steps_that_hardly_shrink_lead_to_the_end_all_the_same(random, down):
    """Each step is `down` / 10 of the last, and alternates: hundreds of them are not enough."""
    joint = up_and_down(random, down)
    found = joint_directions(joint, 1, converged=True)
    end = found
    for _ in range(3000):
        end, _ = improved(joint, end)
    assert subspace_angles(found.T, end.T).max() < 1e-11


def test_directions_that_do_not_settle_are_announced(random):
    """One direction is twice as wide in the second environment, the other in the first."""
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]] * 10)
    X = np.vstack([square * [1, 2], square * [2, 1] + [0.1, 0.1]] * 2)
    y, e = np.repeat([0, 1], 80), np.tile(np.repeat([0, 1], 40), 2)
    with pytest.warns(PrecisionWarning, match="did not settle: one more step would turn them by"):
        ISR(1).fit(X, y, environments=e)
