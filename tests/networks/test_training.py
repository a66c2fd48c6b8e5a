"""Training is a function of its seed, whatever happens to the process on the way."""

import json
import os
import random as python_random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from isrlearn.exceptions import TrainingError  # noqa: E402
from isrlearn.metrics import group_scores  # noqa: E402
from isrlearn.networks import (  # noqa: E402
    NetworkRows,
    TrainingSettings,
    _training as training_module,  # noqa: E402
    evaluate,
    train,
)
from networks.conftest import perceptron  # noqa: E402

OBJECTIVES = ("erm", "reweighting", "groupdro")


def draw(seed, n_rows=300):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n_rows)
    e = np.where(random.uniform(size=n_rows) < 0.9, y, 1 - y)
    X = random.normal(size=(n_rows, 6)).astype(np.float32)
    X[:, 0] += 2 * y
    X[:, 1] += 4 * e
    return NetworkRows(torch.tensor(X), y, e)


def with_norm(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(6, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(8, 2),
        )


def settings(seed, objective="erm", optimizer="sgd", **others):
    chosen = {"epochs": 3, "batch_size": 32, "learning_rate": 0.01} | others
    return TrainingSettings(objective=objective, optimizer=optimizer, seed=seed, **chosen)


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


class Killed(Exception):
    pass


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_killed_at_any_step_it_ends_with_the_same_weights(
    objective, optimizer, seed, tmp_path, monkeypatch
):
    monkeypatch.setattr(training_module, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    chosen = settings(
        seed, objective, optimizer, schedule="linear", warmup=0.1, clip=1.0, adjustment=1.0
    )
    whole = with_norm(seed)
    expected = train(whole, draw(seed), draw(seed + 1), chosen, out=tmp_path / "whole")
    n_steps = 30
    stops = sorted(python_random.Random(seed).sample(range(1, n_steps), 4))
    stops = [*stops, None]

    for stop in stops:
        model = with_norm(seed)

        def watch(text, done, total, stop=stop):
            assert total == n_steps
            if done == stop:
                raise Killed

        try:
            result = train(
                model, draw(seed), draw(seed + 1), chosen, out=tmp_path / "killed", watch=watch
            )
        except Killed:
            continue
    assert_same(weights(model), weights(whole))
    assert result == expected


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from networks import test_training as t
from isrlearn.networks import _training
_training.SECONDS_BETWEEN_CHECKPOINTS = 0.02
model = t.with_norm({seed})
rows = t.draw({seed}, 3000)
def watch(text, done, total):
    print(done, flush=True)
t.train(model, rows, t.draw({seed} + 1), t.settings({seed}, "groupdro", "adamw"),
        out={out!r}, watch=watch)
"""


def run_script(seed, out):
    script = SCRIPT.format(seed=seed, out=str(out), tests=str(Path(__file__).parents[1]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        # A shell lets what it starts in the background ignore Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_goes_on(blow, seed, tmp_path):
    whole = run_script(seed, tmp_path / "whole")
    whole.communicate()
    assert whole.returncode == 0
    for _ in range(2):
        process = run_script(seed, tmp_path / "killed")
        for _ in range(python_random.Random(seed).randint(5, 120)):
            process.stdout.readline()
        process.send_signal(blow)
        process.communicate()
    last = run_script(seed, tmp_path / "killed")
    last.communicate()
    assert last.returncode == 0
    for name in ("model.safetensors", "training.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "killed").iterdir()) == [
        "model.safetensors",
        "training.json",
    ]


def test_ctrl_c_saves_the_last_step(seed, tmp_path):
    model = with_norm(seed)

    def watch(text, done, total):
        if done == 7:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        train(model, draw(seed), draw(seed), settings(seed), out=tmp_path, watch=watch)
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    steps = []
    train(
        with_norm(seed),
        draw(seed),
        draw(seed),
        settings(seed),
        out=tmp_path,
        watch=lambda text, done, total: steps.append(done),
    )
    assert steps[0] == 8


def test_a_seed_decides_and_the_callers_randomness_is_left_alone(seed, tmp_path):
    torch.manual_seed(seed)
    state = torch.random.get_rng_state()
    models = [with_norm(seed) for _ in range(3)]
    for i, (model, own) in enumerate(zip(models, (seed, seed, seed + 1), strict=True)):
        train(model, draw(seed), draw(seed), settings(own), out=tmp_path / str(i))
    assert_same(weights(models[0]), weights(models[1]))
    assert not torch.equal(models[0][0].weight, models[2][0].weight)
    assert torch.equal(state, torch.random.get_rng_state())


def test_workers_change_nothing(seed, tmp_path):
    models = [with_norm(seed) for _ in range(2)]
    for workers, model in enumerate(models):
        chosen = settings(seed, epochs=1)
        train(model, draw(seed), draw(seed), chosen, out=tmp_path / str(workers), workers=workers)
    assert_same(*map(weights, models))


def test_the_weights_of_the_best_epoch_are_kept(seed, tmp_path):
    model, validation = with_norm(seed), draw(seed + 1)
    done = train(
        model, draw(seed), validation, settings(seed, epochs=6, learning_rate=0.05), out=tmp_path
    )
    worst = [epoch.worst_group for epoch in done.epochs]
    assert done.best_epoch == 1 + worst.index(max(worst))
    assert evaluate(model, validation).worst == max(worst)
    read = train(
        with_norm(seed),
        draw(seed),
        validation,
        settings(seed, epochs=6, learning_rate=0.05),
        out=tmp_path,
    )
    assert read == done


def test_patience_stops_early(seed, tmp_path):
    chosen = settings(seed, epochs=40, learning_rate=0.0, weight_decay=0.0, patience=2)
    model = perceptron(seed)
    assert len(train(model, draw(seed), draw(seed), chosen, out=tmp_path).epochs) == 3


def test_another_run_is_refused(seed, tmp_path):
    train(with_norm(seed), draw(seed), draw(seed), settings(seed), out=tmp_path)
    with pytest.raises(TrainingError, match="epochs 3 there, 4 here"):
        train(with_norm(seed), draw(seed), draw(seed), settings(seed, epochs=4), out=tmp_path)
    with pytest.raises(TrainingError, match="other rows"):
        train(with_norm(seed), draw(seed + 9), draw(seed), settings(seed), out=tmp_path)
    with pytest.raises(TrainingError, match="other network"):
        train(perceptron(seed), draw(seed), draw(seed), settings(seed), out=tmp_path)


def test_a_damaged_checkpoint_is_named(seed, tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match="checkpoint.safetensors is damaged"):
        train(with_norm(seed), draw(seed), draw(seed), settings(seed), out=tmp_path)


def test_groups_must_be_known_unless_erm(seed, tmp_path):
    rows = draw(seed)
    rows.environments[:7] = -1
    for objective in ("reweighting", "groupdro"):
        with pytest.raises(ValueError, match="7 of 300 are unknown"):
            train(with_norm(seed), rows, draw(seed), settings(seed, objective), out=tmp_path)
    train(with_norm(seed), rows, draw(seed), settings(seed, epochs=1), out=tmp_path)


def test_a_loss_that_is_not_finite_is_an_error(seed, tmp_path):
    wild = settings(seed, learning_rate=1e30)
    with pytest.raises(TrainingError, match="lower the learning rate"):
        train(perceptron(seed), draw(seed), draw(seed), wild, out=tmp_path)


def test_robust_training_helps_the_worst_group(seed, tmp_path):
    worst = {}
    for objective in OBJECTIVES:
        model = torch.nn.Linear(6, 2)
        chosen = settings(seed, objective, epochs=8, learning_rate=0.05)
        train(model, draw(seed, 2000), draw(seed + 1, 2000), chosen, out=tmp_path / objective)
        worst[objective] = evaluate(model, draw(seed + 2, 4000)).worst
    assert min(worst["reweighting"], worst["groupdro"]) > worst["erm"] + 0.1


def test_evaluate_agrees_with_predictions(seed):
    model, rows = with_norm(seed), draw(seed)
    model.eval()
    with torch.no_grad():
        predicted = model(rows.inputs).argmax(dim=1).numpy()
    expected = group_scores(rows.labels, predicted, environments=rows.environments)
    model.train()
    found = evaluate(model, rows, batch_size=7)
    np.testing.assert_array_equal(found.correct, expected.correct)
    assert model.training


def test_rows_must_fit(tmp_path):
    with pytest.raises(ValueError, match="one label and environment per input"):
        NetworkRows(torch.zeros(3, 2), [0, 1], [0, 1, 0])


def test_the_summary_is_readable(seed, tmp_path):
    train(with_norm(seed), draw(seed), draw(seed), settings(seed, "groupdro"), out=tmp_path)
    summary = json.loads((tmp_path / "training.json").read_text())
    assert summary["run"]["settings"]["objective"] == "groupdro"
    for epoch in summary["epochs"]:
        assert sum(epoch["group_weights"]) == pytest.approx(1)


def test_ctrl_c_in_the_last_validation_stops(seed, tmp_path, monkeypatch):
    chosen = settings(seed, epochs=1)
    first, original = [], training_module.evaluate

    def struck(*arguments, **options):
        if not first:
            first.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        return original(*arguments, **options)

    monkeypatch.setattr(training_module, "evaluate", struck)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train(with_norm(seed), draw(seed), draw(seed), chosen, out=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    again = with_norm(seed)
    train(again, draw(seed), draw(seed), chosen, out=tmp_path)
    whole = with_norm(seed)
    train(whole, draw(seed), draw(seed), chosen, out=tmp_path / "whole")
    assert_same(weights(again), weights(whole))


def test_what_cannot_work_is_refused_before_the_first_step(seed, tmp_path):
    rows = draw(seed)
    unknown = NetworkRows(rows.inputs, rows.labels, np.full(len(rows), -1))
    with pytest.raises(ValueError, match="no validation row"):
        train(with_norm(seed), rows, unknown, settings(seed), out=tmp_path)
    many = NetworkRows(rows.inputs, rows.labels + 1, rows.environments)
    with pytest.raises(ValueError, match="3 classes and the network 2 outputs"):
        train(with_norm(seed), many, many, settings(seed), out=tmp_path)
    one = torch.nn.Linear(6, 1)
    with pytest.raises(ValueError, match="3 classes and the network 1 outputs"):
        train(one, many, many, settings(seed), out=tmp_path)


def test_another_beginning_is_another_run(seed, tmp_path):
    train(with_norm(seed), draw(seed), draw(seed), settings(seed), out=tmp_path)
    with pytest.raises(TrainingError, match="other network"):
        train(with_norm(seed + 1), draw(seed), draw(seed), settings(seed), out=tmp_path)


def test_huge_losses_do_not_break_the_group_weights():
    from isrlearn.networks import GroupWeights

    group_weights = GroupWeights(np.array([5, 5]), step_size=1e3)
    group_weights.robust_loss(torch.tensor([5.0, 1.0]), torch.tensor([0, 1]))
    assert group_weights.values.tolist() == [1.0, 0.0]
