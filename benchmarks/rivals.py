"""Cost of a 20-trial cell: our batch of trials against one torch run after another.

    python benchmarks/rivals.py

Both train on the same rows (Example 3s, 5 environments of 10 000 rows, float32) with the same
trials, on one thread, by turns, as the speed of a shared machine drifts: ours whole, then a quarter
of torch's trials, four times. Printed are the mean of ours and the sum of torch's.

The torch side is written as one would write it well: all environments in one tensor, one backward
pass per step for all of them, autograd for every derivative. Needs torch. Fewer steps than the
published 10 000 are taken, as the cost of a step does not change; --steps 10000 takes them all.
"""

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from isrlearn.baselines import Trial, fit_trials, published_trials
from isrlearn.baselines._trials import starting_weights
from isrlearn.datasets import LinearUnitTest

N_ENVIRONMENTS = 5
ROWS = 10_000
TURNS = 4


def risks(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of each environment for logits (E, n)."""
    return binary_cross_entropy_with_logits(logits, y, reduction="none").mean(dim=1)


def erm(X: torch.Tensor, y: torch.Tensor, w: torch.Tensor, penalty: float) -> torch.Tensor:
    """Return the mean risk."""
    return binary_cross_entropy_with_logits(X @ w[:-1] + w[-1], y)


def irm(X: torch.Tensor, y: torch.Tensor, w: torch.Tensor, penalty: float) -> torch.Tensor:
    """Return the objective of IRMv1; scale and shift of each environment get one gradient call."""
    scale = torch.ones(len(X), 1, requires_grad=True)
    shift = torch.zeros(len(X), 1, requires_grad=True)
    losses = risks((X @ w[:-1] + w[-1]) * scale + shift, y)
    slopes = torch.autograd.grad(losses.sum(), (scale, shift), create_graph=True)
    return (1 - penalty) * losses.mean() + penalty * sum(s.pow(2).sum() for s in slopes)


def iga(X: torch.Tensor, y: torch.Tensor, w: torch.Tensor, penalty: float) -> torch.Tensor:
    """Return the objective of IGA; a copy of the weights per environment gets one gradient call."""
    copies = w.expand(len(X), -1).clone()
    # A product per environment: one batched product of matrix and vector is slower in torch.
    logits = torch.stack([x @ c[:-1] + c[-1] for x, c in zip(X, copies, strict=True)])
    losses = risks(logits, y)
    (slopes,) = torch.autograd.grad(losses.sum(), copies, create_graph=True)
    return losses.mean() + penalty * (slopes - slopes.mean(dim=0)).pow(2).sum()


OBJECTIVES: dict[str, Callable[..., torch.Tensor]] = {"erm": erm, "irmv1": irm, "iga": iga}


def train_with_torch(
    method: str, X: torch.Tensor, y: torch.Tensor, trial: Trial, steps: int
) -> np.ndarray:
    """Train one trial by autograd and torch's Adam; return the weights (d + 1,)."""
    start = starting_weights(np.random.RandomState(trial.seed), X.shape[2])
    w = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    adam = torch.optim.Adam([w], lr=trial.learning_rate, weight_decay=trial.weight_decay)
    for _ in range(steps):
        adam.zero_grad()
        OBJECTIVES[method](X, y, w, trial.penalty).backward()
        adam.step()
    return w.detach().numpy()


def main() -> None:
    """Print processor times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of each trial")
    parser.add_argument("--methods", nargs="+", default=list(OBJECTIVES), choices=OBJECTIVES)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = LinearUnitTest("3s", N_ENVIRONMENTS, seed=0).sample(ROWS)
    X = rows.X.astype(np.float32)
    blocks = torch.tensor(X).reshape(N_ENVIRONMENTS, ROWS, -1)
    targets = torch.tensor(rows.y, dtype=torch.float32).reshape(N_ENVIRONMENTS, ROWS)
    print(f"20 trials, E = {N_ENVIRONMENTS}, {ROWS} rows each, {options.steps} steps, one thread")
    for method in options.methods:
        trials = published_trials(method)
        theirs, times = [], [[], []]
        for few in np.array_split(np.array(trials), TURNS):
            begin = time.process_time()
            ours = fit_trials(method, X, rows.y == 1, rows.environments, trials, options.steps)
            middle = time.process_time()
            theirs += [train_with_torch(method, blocks, targets, t, options.steps) for t in few]
            times[0].append(middle - begin)
            times[1].append(time.process_time() - middle)
        mine, torchs = np.mean(times[0]), np.sum(times[1])
        difference = np.abs(ours - np.array(theirs)).max()
        print(
            f"{method:6} ours {mine:7.2f} s   torch {torchs:7.2f} s   "
            f"ratio 1/{torchs / mine:.1f}   largest difference of a weight {difference:.1e}"
        )


if __name__ == "__main__":
    main()
