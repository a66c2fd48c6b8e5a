"""
How many directions? The test and its null
==========================================

``ISR()`` is told no number of directions. It asks after each removal whether the environments
still differ in the rest, by permuting environments within each class. Here are the tests where
five directions differ, and what happens where none does.
"""

# %%
# Example 3s' of the Linear Unit-Tests: ten features, five of them spurious, all rotated.
import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISR
from isrlearn.datasets import LinearUnitTest

X, y, environments = LinearUnitTest("3s'", n_environments=4, seed=0).sample(1000)
isr = ISR(random_state=0).fit(X, y, environments=environments)
print(f"directions found: {isr.n_spurious_}")
for step in isr.rank_choice_.steps:
    print(f"after {step.n_removed}: p = {step.p_value:.4f}, removes {step.block}")

# %%
# Where nothing differs the p-value of the first test is uniform: at ``alpha=0.01`` one fit in a
# hundred removes something. 150 draws of heavy-tailed rows whose environments are drawn by a
# coin:


def first_p_value(seed):
    random = np.random.default_rng(seed)
    rows = random.standard_t(4, size=(240, 5))
    labels, coin = random.integers(0, 2, size=(2, 240))
    null = ISR(n_permutations=99, random_state=seed).fit(rows, labels, environments=coin)
    return null.rank_choice_.steps[0].p_value


p_values = np.sort([first_p_value(seed) for seed in range(150)])

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9))
places = np.arange(len(isr.rank_choice_.steps))
shown = {"means": "p_mean", "covariances": "p_covariance", "both": "p_value"}
for name, attribute in shown.items():
    values = [getattr(step, attribute) for step in isr.rank_choice_.steps]
    left.plot(places, values, "o-", label=name, alpha=0.8)
left.axhline(0.01, color="0.3", linestyle="--", linewidth=1)
names = [str(step.n_removed) for step in isr.rank_choice_.steps]
left.set(
    yscale="log",
    ylabel="p-value",
    xlabel="directions removed before the test",
    title="five directions differ",
)
left.set_xticks(places, names)
left.legend(frameon=False)
right.plot(np.linspace(0, 1, len(p_values)), p_values, color="#3b6fb6")
right.plot([0, 1], [0, 1], color="0.4", linestyle="--", linewidth=1)
right.set(
    xlabel="share of the draws",
    ylabel="p-value of the first test",
    aspect="equal",
    title="nothing differs: uniform",
)
fig.tight_layout()
plt.show()
