"""
Digits whose colour misleads
============================

The label is whether a digit is 5 or more. In nine of ten training images the colour agrees with
the label, in nine of ten test images it disagrees. A plain model learns the colour. With the
direction that tells the colours apart removed, and groups that count alike, it learns the digit.
"""

# %%
# The rows: 8 x 8 images, once in red and once in green; the environment is the colour.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from isrlearn import ISRClassifier
from isrlearn.datasets import load_colored_digits
from isrlearn.metrics import group_scores
from isrlearn.plots import plot_group_accuracies, plot_reliance

train, test = load_colored_digits(random_state=0)


def picture_of(row):
    red, green = row.reshape(2, 8, 8)
    return np.stack([red, green, np.zeros_like(red)], axis=-1)


fig, axes = plt.subplots(2, 8, figsize=(8, 2.4))
for axs, rows, name in zip(axes, (train, test), ("training", "test"), strict=True):
    for ax, row, label in zip(axs, rows.X, rows.y, strict=False):
        ax.imshow(picture_of(row))
        ax.set_title("5 or more" if label else "below 5", fontsize=8)
        ax.set_xticks([])
        ax.set_yticks([])
    axs[0].set_ylabel(name)
fig.tight_layout()

# %%
# Two models on the same rows.
plain = LogisticRegression(max_iter=1000).fit(train.X, train.y)
isr = ISRClassifier().fit(train.X, train.y, environments=train.environments)
scores = {
    name: group_scores(test.y, model.predict(test.X), environments=test.environments)
    for name, model in (("logistic regression", plain), ("ISR", isr))
}
for name, score in scores.items():
    print(f"{name:20} average {score.average:.3f}  worst group {score.worst:.3f}")

# %%
# Left: the decision of the plain model goes with the amount of colour. Middle: that of ISR does
# not. Right: each group of the test images.
amounts = (test.X - train.X.mean(axis=0)) @ isr.spurious_components_[0]
fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), width_ratios=(1, 1, 1.3))
for ax, (name, model) in zip(axes, (("logistic regression", plain), ("ISR", isr)), strict=False):
    decisions = model.decision_function(test.X)
    plot_reliance(
        ax, amounts, decisions, test.y, test.environments, colors=("seagreen", "firebrick")
    )
    ax.set_title(name)
axes[0].legend(fontsize=7, frameon=False)
plot_group_accuracies(axes[2], scores)
fig.tight_layout()
plt.show()

# %%
# What the fit says about itself:
print(isr.diagnose())
