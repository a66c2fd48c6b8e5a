"""Train a small network on coloured digits, then repair its last layer.

The colour of a digit agrees with the label in 9 of 10 training images and in 1 of 10 test images.
Run it: python examples/repair_a_network.py
"""

import tempfile

import numpy as np
import torch
from torch import nn

from isrlearn import ISRMean
from isrlearn.datasets import load_colored_digits
from isrlearn.networks import NetworkRows, TrainingSettings, repair, train


def as_images(rows):
    """Return rows as images of two channels, red and green, with their environments numbered."""
    images = torch.tensor(rows.X.reshape(-1, 2, 8, 8), dtype=torch.float32)
    return NetworkRows(images, rows.y, rows.environments == "green")


def small_network(seed):
    """Return a convolutional network with two outputs, not trained."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(2, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 16, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
        )


def main(seed=0, folder=None):
    """Train by ERM, repair, and return the report on the test images."""
    training, test = load_colored_digits(random_state=seed)
    kept = np.random.default_rng(seed).permutation(len(training.y)) < 200
    parts = [as_images(type(training)(*(a[part] for a in training))) for part in (~kept, kept)]
    network = small_network(seed)
    settings = TrainingSettings(
        epochs=10, optimizer="adamw", learning_rate=3e-3, weight_decay=0.0, seed=seed
    )
    train(network, *parts, settings, out=folder or tempfile.mkdtemp())
    result = repair(
        network,
        parts[0].loader(64),
        isr=ISRMean(n_spurious="auto", random_state=seed),
        holdout=as_images(test).loader(64),
    )
    return result.report


if __name__ == "__main__":
    print(main())  # noqa: T201
