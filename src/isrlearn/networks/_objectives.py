"""What training minimises: the mean loss, the same over balanced groups, or the worst group's."""

from typing import Final

import numpy as np
import torch
from torch.nn import functional

from isrlearn.typing import Float64Array, IntArray

OBJECTIVES: Final = ("erm", "reweighting", "groupdro")


def losses_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the logistic loss of each row.

    Parameters
    ----------
    logits : Tensor of shape (n, k), (n, 1) or (n,)
        One output, positive for class 1, or one for each class.
    labels : Tensor of shape (n,)
        Classes from 0.

    Returns
    -------
    Tensor of shape (n,)
    """
    if logits.ndim == 1 or logits.shape[1] == 1:
        flat = logits.reshape(-1).float()
        return functional.binary_cross_entropy_with_logits(flat, labels.float(), reduction="none")
    return functional.cross_entropy(logits.float(), labels, reduction="none")


def refuse_labels(logits: torch.Tensor, n_classes: int) -> None:
    """Raise `ValueError` if a network has too few outputs for the classes.

    Parameters
    ----------
    logits : Tensor of shape (n, k), (n, 1) or (n,)
        What it returns.
    n_classes : int
        Classes of the rows.
    """
    n_outputs = 1 if logits.ndim == 1 else logits.shape[1]
    if n_classes > max(2, n_outputs):
        raise ValueError(
            f"the rows have {n_classes} classes and the network {n_outputs} outputs: it needs one "
            "for each class, or one for two classes."
        )


def group_means(
    losses: torch.Tensor, groups: torch.Tensor, n_groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean loss of each group, zero for a group without rows, and the counts."""
    counts = torch.bincount(groups, minlength=n_groups).to(losses.dtype)
    sums = torch.zeros(n_groups, dtype=losses.dtype, device=losses.device)
    return sums.index_add(0, groups, losses) / counts.clamp(min=1), counts


class GroupWeights:
    r"""The weights of GroupDRO and their update.

    With the mean loss :math:`\ell_g` of each group in a batch, step size :math:`\eta` and the
    adjustment :math:`C / \sqrt{n_g}` for groups of :math:`n_g` training rows,

    .. math:: q_g \leftarrow q_g \exp(\eta (\ell_g + C / \sqrt{n_g})), \qquad q \leftarrow q / |q|_1

    and the network goes down the gradient of :math:`\sum_g q_g \ell_g` (Sagawa et al. 2020,
    Algorithm 1). A group that is not in the batch has the loss zero.

    Parameters
    ----------
    sizes : ndarray of shape (G,)
        Training rows of each group; a group without rows keeps the weight zero.
    step_size : float, default=0.01
        :math:`\eta`.
    adjustment : float, default=0.0
        :math:`C`: more weight to small groups, whose losses are known less well.
    device : torch.device, default=None
        Where the weights live.

    Examples
    --------
    >>> import numpy as np, torch
    >>> weights = GroupWeights(np.array([90, 10]), step_size=0.5)
    >>> weights.values
    tensor([0.5000, 0.5000], dtype=torch.float64)
    >>> loss = weights.robust_loss(torch.tensor([1.0, 1.0, 3.0]), torch.tensor([0, 0, 1]))
    >>> weights.values
    tensor([0.2689, 0.7311], dtype=torch.float64)
    """

    def __init__(
        self,
        sizes: IntArray,
        step_size: float = 0.01,
        adjustment: float = 0.0,
        device: torch.device | None = None,
    ) -> None:
        there = torch.as_tensor(np.asarray(sizes) > 0, device=device)
        self.values = there.to(torch.float64) / there.sum()
        self.step_size = step_size
        shift = adjustment / np.sqrt(np.maximum(sizes, 1))
        self.shift = torch.as_tensor(shift, dtype=torch.float64, device=device)

    def robust_loss(self, losses: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        """Update the weights by the losses of a batch, and return what to minimise.

        Parameters
        ----------
        losses : Tensor of shape (n,)
            Loss of each row.
        groups : Tensor of shape (n,)
            Group of each row.

        Returns
        -------
        Tensor
            A number with a gradient.
        """
        means, _ = group_means(losses, groups, len(self.values))
        with torch.no_grad():
            # By logarithms: exp of a large loss would not be finite.
            grown = torch.log(self.values) + self.step_size * (means.double() + self.shift)
            self.values = torch.softmax(grown, dim=0)
        return means @ self.values.to(means.dtype)


def balanced_probabilities(groups: IntArray) -> Float64Array:
    """Return the probability of drawing each row when every group is drawn alike.

    Parameters
    ----------
    groups : ndarray of shape (n,)
        Group of each row.

    Returns
    -------
    ndarray of shape (n,)
        ``1 / (G n_g)`` for the G groups that have rows.

    Examples
    --------
    >>> balanced_probabilities(np.array([0, 0, 0, 1]))
    array([0.16666667, 0.16666667, 0.16666667, 0.5       ])
    """
    _, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(counts) * counts[place]))
