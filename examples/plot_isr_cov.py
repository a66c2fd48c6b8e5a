"""
ISR-Cov: two environments are enough
====================================

Four spurious directions need five environments by means. If the spread of the spurious part
differs, two are enough by covariances: their difference has rank four, and its eigenvectors are
the directions.
"""

# %%
# With the exact moments of the paper's model the eigenvalues are four numbers and six zeros, as
# Theorem 2 says. With 2000 rows of each environment the gap is still plain.
import matplotlib.pyplot as plt
import numpy as np

from isrlearn import ISRCov, ISRMean
from isrlearn.datasets import make_linear_gaussian

model = make_linear_gaussian(n_environments=2, d_c=6, d_s=4, sigma_e=[1.0, 2.0], random_state=1)
X, y, environment = model.sample(2000, random_state=0)
isr = ISRCov(n_spurious=4, pairs=(0, 1)).fit(X, y, environments=environment)

exact = model.population_moments()
upper = exact.class_index == 1
first, second = exact.scatters[upper] / exact.weights[upper, None, None]
values = np.linalg.eigvalsh(first - second)
values = values[np.argsort(-np.abs(values))]

# %%
# How near the removed subspace is to the true one, by the number of rows.
sizes = [100, 300, 1000, 3000, 10000]


def largest_angle(transformer, n_rows, seed):
    rows = model.sample(n_rows, random_state=seed)
    transformer.fit(rows.X, rows.y, environments=rows.environments)
    return np.degrees(transformer.subspace_.angles_to(model.B.T).max())


angles = [[largest_angle(ISRCov(4), n, seed) for seed in range(5)] for n in sizes]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
places = np.arange(1, 11)
left.bar(places - 0.2, np.abs(values), 0.4, label="exact moments", color="0.7")
left.bar(places + 0.2, np.abs(isr.spectrum_), 0.4, label="2000 rows each", color="#3b6fb6")
left.axvline(4.5, color="0.3", linestyle="--", linewidth=1)
left.set(
    xlabel="direction", ylabel="|eigenvalue|", title="difference of the covariances", xticks=places
)
left.legend(frameon=False)
right.plot(sizes, np.median(angles, axis=1), "o-", color="#3b6fb6")
right.set(
    xscale="log",
    yscale="log",
    xlabel="rows of each environment",
    ylabel="largest angle to the truth, degrees",
    title="ISR-Cov, two environments, median of 5 draws",
)
fig.tight_layout()
plt.show()

# %%
# ISR-Mean cannot do this, and says so instead of returning directions of no meaning.
try:
    ISRMean(n_spurious=4, condition_on=1).fit(X, y, environments=environment)
except ValueError as error:
    print(error)
