"""What a fit keeps so that it can be diagnosed."""

from typing import NamedTuple

import numpy as np

from isrlearn.moments import Evidence, Frame
from isrlearn.subspace._joint import Joint, joint_space


class Workings(NamedTuple):
    """Evidence of a fit and of its nulls, in the frame that both were compared in."""

    observed: Evidence
    null: Evidence
    frame: Frame
    n_rows: float
    orders: str
    """What the method looks at: "both", "means" or "covariances"."""

    def compact(self) -> "Workings":
        """Return the same with nulls in single precision, for a fitted estimator to keep."""
        means, covariances = (np.asarray(part, dtype=np.float32) for part in self.null)
        return self._replace(null=Evidence(means, covariances))  # type: ignore[arg-type]

    def joint(self, orders: str = "both") -> Joint:
        """Return the evidence in the space of white noise, of both orders or of one alone."""
        return _of_orders(joint_space(*self.observed, self.frame, self.n_rows), orders)


def _of_orders(joint: Joint, orders: str) -> Joint:
    if orders == "means":
        return joint._replace(covariances=np.zeros_like(joint.covariances))
    if orders == "covariances":
        return joint._replace(means=np.zeros_like(joint.means))
    return joint
