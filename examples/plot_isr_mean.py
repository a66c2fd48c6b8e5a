"""
ISR-Mean in the plane
=====================

Two features, three hospitals. Given the class, the centre of a hospital moves along one line
only: the spurious direction. ISR-Mean finds that line from the class means, and what is left
after removal looks the same everywhere.
"""

# %%
# The paper's model with one invariant and one spurious dimension, mixed so that neither is an
# axis.
import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRMean
from isrlearn.datasets import make_linear_gaussian

mixing = [[1.0, 0.6], [0.2, 1.0]]
model = make_linear_gaussian(
    d_c=1, d_s=1, mu_c=[1.5], mu_e=[[3.0], [1.2], [-0.8]], sigma_c=0.5, sigma_e=0.5, R=mixing
)
X, y, hospital = model.sample(150, random_state=0)
isr = ISRMean(n_spurious=1).fit(X, y, environments=hospital)
found = np.degrees(isr.subspace_.angles_to(model.B.T)[0])
print(f"angle between the line that was found and the true one: {found:.1f} degrees")

# %%
# Left: the six class means (crosses) lie on two parallel lines, one for each class. Right: after
# removal one coordinate is left, and the hospitals agree in it.
COLORS = ("#3b6fb6", "#d98032", "#2a8f5b")
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
for e, color in enumerate(COLORS):
    for label, marker in ((-1, "o"), (1, "^")):
        rows = (hospital == e) & (y == label)
        left.scatter(*X[rows].T, s=12, color=color, marker=marker, alpha=0.4)
        left.plot(*X[rows].mean(axis=0), "kx", markersize=11, markeredgewidth=2.5)
for label in (-1, 1):
    middle = X[y == label].mean(axis=0)
    line = middle + np.array([[-4.5], [4.5]]) * isr.spurious_components_[0]
    left.plot(*line.T, color="0.3", linestyle="--", linewidth=1)
left.set(
    xlabel="feature 1", ylabel="feature 2", title="class means move along one line", aspect="equal"
)

kept = ISRMean(n_spurious=1, reduced=True).fit(X, y, environments=hospital).transform(X)[:, 0]
kept = kept if kept[y == 1].mean() > kept[y == -1].mean() else -kept
for e, color in enumerate(COLORS):
    for label, style in ((-1, ":"), (1, "-")):
        values = kept[(hospital == e) & (y == label)]
        right.hist(
            values,
            bins=14,
            histtype="step",
            color=color,
            linestyle=style,
            density=True,
            label=f"hospital {e}, class {label:+d}",
        )
right.set(xlabel="what is left", ylabel="density", title="after removal the hospitals agree")
right.legend(fontsize=7, frameon=False)
fig.tight_layout()
plt.show()
