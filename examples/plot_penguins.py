"""
Penguins: leave one species out
===============================

The sex of a penguin from four body measurements, in a species that was not trained on. Real
data: removal helps with one direction, and a second one takes too much.
"""

# %%
# Each species is the test once. The number of directions is the only thing that changes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn import ISRMean
from isrlearn.datasets import PENGUIN_FEATURES, load_penguins

X, sex, species = load_penguins()
names = np.unique(species)
table = np.empty((3, len(names)))
for n_spurious in range(3):
    for train, test in LeaveOneGroupOut().split(X, sex, species):
        pipe = make_pipeline(StandardScaler(), ISRMean(n_spurious), LogisticRegression())
        pipe.fit(X[train], sex[train], isrmean__environments=species[train])
        table[n_spurious, names == species[test][0]] = pipe.score(X[test], sex[test])
for n_spurious, row in enumerate(table):
    print(
        f"{n_spurious} removed:",
        ", ".join(f"{n} {a:.3f}" for n, a in zip(names, row, strict=True)),
        f"; mean {row.mean():.3f}",
    )

# %%
# Left: accuracy in the species left out. Right: what the first direction of all three species is
# made of.
scaled = StandardScaler().fit_transform(X)
isr = ISRMean(1).fit(scaled, sex, environments=species)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(1.3, 1))
for n_spurious, (row, shade) in enumerate(zip(table, ("0.75", "#3b6fb6", "#d98032"), strict=True)):
    left.bar(
        np.arange(len(names)) + 0.27 * (n_spurious - 1),
        row,
        0.26,
        color=shade,
        label=f"{n_spurious} removed, mean {row.mean():.3f}",
    )
left.axhline(0.5, color="0.3", linestyle=":", linewidth=1)
left.set_xticks(np.arange(len(names)), names)
left.set(ylabel="accuracy in the species left out", ylim=(0, 1.4))
left.legend(frameon=False, fontsize=8, loc="upper left")
right.barh(PENGUIN_FEATURES, isr.spurious_components_[0], color="#3b6fb6")
right.axvline(0, color="0.3", linewidth=0.8)
right.set(title="the direction that is removed", xlabel="weight, features standardised")
fig.tight_layout()
plt.show()
