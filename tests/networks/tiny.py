"""A network of the user's own: small enough to be trained in a test."""

import torch

from isrlearn.networks import Backbone, ImageInputs


def network(n_classes):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 24),
        torch.nn.ReLU(),
        torch.nn.Linear(24, n_classes),
    )


def backbone(n_classes):
    return Backbone(network(n_classes), ImageInputs(size=8))


def nothing(n_classes):
    return "a network"
