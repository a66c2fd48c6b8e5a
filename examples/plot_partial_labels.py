"""
A part of the environment labels
================================

Often the environment of most rows is not written down. Rows of unknown environment are ``None``:
they help to fit the head, not to find the directions. How many known rows are enough?
"""

# %%
# The coloured digits again. The colours of a share of the training rows are known, those of the
# others are not; ten random subsets for each share.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn import ISRClassifier, ISRMean
from isrlearn.datasets import load_colored_digits
from isrlearn.metrics import worst_group_accuracy
from isrlearn.plots import plot_curve

train, test = load_colored_digits(random_state=0)


def worst_group(model):
    return worst_group_accuracy(test.y, model.predict(test.X), environments=test.environments)


def known_for(share, seed):
    """Return the environments of a random share of the rows of each group, None for the rest."""
    known = train.environments.astype(object)
    order = np.random.default_rng(seed).uniform(size=len(known))
    for label in np.unique(train.y):
        for color in np.unique(train.environments):
            group = (train.y == label) & (train.environments == color)
            known[group & (order > np.quantile(order[group], share))] = None
    return known


shares = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
scores = np.array(
    [
        [
            worst_group(
                ISRClassifier(ISRMean(1)).fit(train.X, train.y, environments=known_for(share, seed))
            )
            for seed in range(10)
        ]
        for share in shares
    ]
)

# %%
# The band is the 95 % interval of the mean over subsets.
fig, ax = plt.subplots(figsize=(6.5, 3.8))
half = 1.96 * scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
plot_curve(ax, shares, scores.mean(axis=1), half, marker="o", color="#3b6fb6", label="ISR-Mean")
plain = worst_group(LogisticRegression(max_iter=1000).fit(train.X, train.y))
ax.axhline(plain, color="0.4", linestyle="--", label="logistic regression")
ax.set(xlabel="share of rows whose colour is known", ylabel="worst group", ylim=(0, 0.8))
ax.legend(frameon=False, loc="center right")
fig.tight_layout()
plt.show()
for share, row in zip(shares, scores, strict=True):
    print(f"{share:.0%} known: worst group {row.mean():.3f}")
