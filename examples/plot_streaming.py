"""
Rows that come in chunks
========================

A fit needs sums over the rows and nothing else. ``partial_fit`` adds them up chunk by chunk,
keeps no row, and ends where one fit on all rows ends.
"""

# %%
# Twenty chunks of a stream, each from one environment only.
import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISR, ISRMean
from isrlearn.datasets import LinearUnitTest

problem = LinearUnitTest("3s", n_environments=8, seed=0)
X, y, environments = problem.sample(1000)
chunks = np.array_split(np.arange(len(X)), 20)


def angle(isr):
    """Return the largest angle to the true subspace in degrees; 90 if a direction is missing."""
    if isr.n_spurious_ < problem.d_s:
        return 90.0
    return np.degrees(isr.subspace_.angles_to(problem.B.T).max())


stream, automatic = ISRMean(n_spurious=5), ISR(random_state=0)
curve, found, shown = [], [], []
for chunk in chunks:
    for isr in (stream, automatic):
        isr.partial_fit(X[chunk], y[chunk], environments=environments[chunk])
    if len(stream.environments_) > 1:
        shown.append(chunk[-1] + 1)
        found.append(automatic.n_spurious_)
        curve.append(angle(stream) if len(stream.environments_) > 5 else 90.0)

# %%
# The stream ends with the directions of one fit on all rows.
whole = ISRMean(n_spurious=5).fit(X, y, environments=environments)
difference = np.abs(np.abs(stream.spurious_components_) - np.abs(whole.spurious_components_)).max()
print(f"largest difference of a component: {difference:.0e}")

# %%
# Each environment brings a direction until there are five: no method can see them earlier, as
# means of E environments show E - 1 directions.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
left.step(shown, found, where="post", color="#3b6fb6")
left.axhline(5, color="0.4", linestyle="--", linewidth=1)
left.set(xlabel="rows so far", ylabel="directions found by ISR()", ylim=(0, 6))
right.plot(shown, curve, "o-", color="#d98032")
right.set(xlabel="rows so far", ylabel="largest angle to the truth, degrees", title="ISRMean(5)")
fig.tight_layout()
plt.show()
