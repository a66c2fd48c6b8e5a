"""ERM, Reweighting and GroupDRO do what their papers say."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from isrlearn.networks import GroupWeights, TrainingSettings  # noqa: E402
from isrlearn.networks._objectives import (  # noqa: E402
    balanced_probabilities,
    group_means,
    losses_of,
)
from isrlearn.networks._rows import epoch_batches  # noqa: E402


def test_group_weights_follow_the_published_update_by_hand():
    """Two steps written out: q <- q exp(eta (loss + C / sqrt(n))), normalised; then q . loss."""
    sizes = np.array([100, 25, 4])
    weights = GroupWeights(sizes, step_size=0.1, adjustment=2.0)
    q = [1 / 3, 1 / 3, 1 / 3]
    batches = [
        ([0.2, 0.4, 1.0, 3.0], [0, 0, 1, 2], [0.3, 1.0, 3.0]),
        ([0.5, 2.0], [0, 2], [0.5, 0.0, 2.0]),  # group 1 is not in the batch: its loss is 0
    ]
    for losses, groups, means in batches:
        shifts = [2 / 10, 2 / 5, 2 / 2]
        grown = [w * np.exp(0.1 * (m + s)) for w, m, s in zip(q, means, shifts, strict=True)]
        q = [g / sum(grown) for g in grown]
        expected = sum(w * m for w, m in zip(q, means, strict=True))
        robust = weights.robust_loss(
            torch.tensor(losses, dtype=torch.float64), torch.tensor(groups)
        )
        np.testing.assert_allclose(weights.values, q, rtol=1e-12)
        assert float(robust) == pytest.approx(expected, rel=1e-6)


def test_the_gradient_is_that_of_the_weighted_losses(seed):
    random = torch.Generator().manual_seed(seed)
    losses = torch.rand(20, generator=random, requires_grad=True)
    groups = torch.arange(20) % 3
    weights = GroupWeights(np.array([7, 7, 6]), step_size=0.5)
    weights.robust_loss(losses, groups).backward()
    counts = torch.bincount(groups)
    np.testing.assert_allclose(losses.grad, (weights.values / counts)[groups], rtol=1e-5)


def test_group_weights_go_to_the_worst_group(seed):
    weights = GroupWeights(np.array([90, 10, 0]), step_size=0.05)
    assert weights.values[2] == 0
    losses, groups = torch.tensor([0.1, 0.1, 2.0]), torch.tensor([0, 0, 1])
    for _ in range(200):
        weights.robust_loss(losses, groups)
    assert weights.values[1] > 0.99


def test_an_adjustment_gives_weight_to_small_groups():
    plain, adjusted = (GroupWeights(np.array([900, 9]), 0.1, c) for c in (0.0, 3.0))
    for weights in (plain, adjusted):
        weights.robust_loss(torch.tensor([1.0, 1.0]), torch.tensor([0, 1]))
    assert plain.values[1] == pytest.approx(0.5)
    assert adjusted.values[1] > 0.5


def test_losses_agree_with_their_formulas(seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, 30)
    logits = 3 * random.normal(size=(30, 3))
    expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(30), labels]
    losses = losses_of(torch.tensor(logits), torch.tensor(labels))
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)
    binary = labels % 2
    expected = np.log1p(np.exp(-(2 * binary - 1) * logits[:, 0]))
    for shape in ((30,), (30, 1)):
        losses = losses_of(torch.tensor(logits[:, 0]).reshape(shape), torch.tensor(binary))
        np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-6)


def test_group_means_are_means(seed):
    random = np.random.default_rng(seed)
    losses, groups = random.uniform(size=50), random.integers(0, 4, 50)
    means, counts = group_means(torch.tensor(losses), torch.tensor(groups), 5)
    for group in range(4):
        assert float(means[group]) == pytest.approx(losses[groups == group].mean())
    assert counts.tolist() == np.bincount(groups, minlength=5).tolist()
    assert float(means[4]) == 0


def test_reweighting_is_duplicating_rows_in_expectation(seed):
    """A group of n_g rows drawn with 1 / (G n_g) each has the gradient of copies of its rows."""
    random = np.random.default_rng(seed)
    groups = np.repeat([0, 1, 2], [12, 4, 2])
    probabilities = balanced_probabilities(groups)
    assert probabilities.sum() == pytest.approx(1)
    x, y = torch.tensor(random.normal(size=(18, 3))), torch.tensor(random.integers(0, 2, 18))
    w = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    torch.sum(torch.tensor(probabilities) * losses_of(x @ w, y)).backward()
    expected, w.grad = w.grad.clone(), None
    copies = np.repeat(np.arange(18), (12 / np.bincount(groups)[groups]).astype(int))
    losses_of(x[copies] @ w, y[copies]).mean().backward()
    np.testing.assert_allclose(expected, w.grad, atol=1e-7)


def test_rows_are_drawn_by_these_probabilities(seed):
    groups = np.repeat([0, 1], [9000, 1000])
    batches = epoch_batches(10_000, 100, seed, 0, probabilities=balanced_probabilities(groups))
    share = np.mean(groups[np.concatenate(batches)])
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(10_000)


def test_an_epoch_takes_every_row_once_in_an_order_of_its_own(seed):
    one, again, next_one = (
        epoch_batches(103, 20, seed, epoch, lengths=lengths)
        for epoch, lengths in ((0, None), (0, None), (1, None))
    )
    assert [a.tolist() for a in one] == [a.tolist() for a in again]
    assert sorted(np.concatenate(one)) == list(range(103))
    assert np.concatenate(one).tolist() != np.concatenate(next_one).tolist()
    lengths = np.random.default_rng(seed).integers(1, 50, 103)
    sorted_batches = epoch_batches(103, 20, seed, 0, lengths=lengths)
    assert sorted(np.concatenate(sorted_batches)) == list(range(103))
    within = np.mean([np.std(lengths[batch]) for batch in sorted_batches])
    assert within < np.std(lengths) / 2


def test_no_batch_is_one_row_alone():
    sizes = [len(batch) for batch in epoch_batches(41, 20, 0, 0)]
    assert sizes == [20, 21]


def test_the_rate_rises_and_falls():
    settings = TrainingSettings(learning_rate=0.1, schedule="linear", warmup=0.2)
    rates = [settings.rate_at(step, 100) for step in range(100)]
    assert max(rates) == pytest.approx(0.1)
    assert np.argmax(rates) in (19, 20)
    assert rates[0] < rates[10] < rates[19]
    assert rates[30] > rates[60] > rates[99] > 0
    assert TrainingSettings(learning_rate=0.1).rate_at(50, 100) == 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "magic"}, "objective='magic' must be one of erm, reweighting, groupdro"),
        ({"optimizer": "lion"}, "must be one of sgd, adamw"),
        ({"epochs": 0}, "epochs=0 must be a whole number of at least 1"),
        ({"batch_size": 1}, "batch_size=1"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"seed": -1}, "seed=-1"),
        ({"warmup": 2}, "warmup=2"),
        ({"patience": 0}, "patience=0"),
    ],
)
def test_wrong_settings_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**change)
