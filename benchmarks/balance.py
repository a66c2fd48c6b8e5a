"""IRMv1 on Example 3 with exactly balanced classes, and with a coin for each row.

    python benchmarks/balance.py

The trial is the one that was selected for the published results with ten environments: learning
rate 0.0007, weight decay 0.008, penalty 0.955. One thread, about a minute.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from isrlearn.baselines import fit_trials, published_trials
from isrlearn.datasets import LinearUnitTest

N_ENVIRONMENTS = 10
SELECTED = 4
LABELS = {"published": "exactly half", "paper": "coin"}


def main() -> None:
    """Print test errors and the size of weights and bias."""
    print("classes       seed  test error  largest weight     bias")
    trial = published_trials("irmv1")[SELECTED]
    for constants, name in LABELS.items():
        for seed in range(3):
            problem = LinearUnitTest("3", N_ENVIRONMENTS, seed=seed, constants=constants)
            X, y, environments = problem.sample(10_000)
            test = problem.sample(10_000, "test")
            with threadpool_limits(1):
                (w,) = fit_trials("irmv1", X.astype(np.float32), y == 1, environments, [trial])
            error = np.mean((test.X @ w[:-1] + w[-1] > 0) != test.y)
            largest = np.abs(w[:-1]).max()
            print(
                f"{name:<13} {seed:>4}  {error:>10.4f}  {largest:>14.4f}  {w[-1]:>+.4f}", flush=True
            )


if __name__ == "__main__":
    main()
