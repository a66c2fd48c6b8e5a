"""
A continuous target
===================

``ISRRegressor`` does the same where the target is a number: given the target, features are
regressed on it in each environment, and what differs between these regressions is removed.
"""

# %%
# Four laboratories measure the same quantity. Three features follow it everywhere; two follow it
# with a slope of the laboratory's own.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from isrlearn import ISR, ISRRegressor

INVARIANT = np.array([1.0, -0.5, 0.8])
rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]


def measure(slopes, n_rows, random):
    """Return features and target of one laboratory."""
    target = random.normal(size=n_rows)
    stable = target[:, None] * INVARIANT + random.normal(size=(n_rows, 3))
    moving = target[:, None] * slopes + 0.3 * random.normal(size=(n_rows, 2))
    return np.hstack([stable, moving]) @ rotation, target


random = np.random.default_rng(1)
slopes = [(2.0, 1.0), (1.5, 0.0), (1.0, 1.5), (2.5, 0.5)]
parts = [measure(np.array(pair), 500, random) for pair in slopes]
X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
laboratory = np.repeat([f"laboratory {e}" for e in range(4)], 500)

isr = ISRRegressor(ISR(random_state=0)).fit(X, y, environments=laboratory)
plain = LinearRegression().fit(X, y)
print(isr.diagnose())

# %%
# A fifth laboratory, whose slopes have the other sign. Plain regression follows them; ISR does
# not use them.
new_X, new_y = measure(np.array([-1.5, -1.0]), 500, random)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.9), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, (("least squares", plain), ("ISRRegressor", isr)), strict=True):
    seen, new = (model.score(*rows) for rows in ((X, y), (new_X, new_y)))
    ax.scatter(y, model.predict(X), s=5, color="0.7", label=f"four laboratories, R² {seen:.2f}")
    ax.scatter(new_y, model.predict(new_X), s=7, color="#c8452e", label=f"the fifth, R² {new:.2f}")
    ax.axline((0, 0), slope=1, color="0.3", linewidth=1)
    ax.set(xlabel="target", title=name, xlim=(-4, 4), ylim=(-6, 6))
    ax.legend(frameon=False, fontsize=8, loc="upper left")
axes[0].set_ylabel("prediction")
fig.tight_layout()
plt.show()
