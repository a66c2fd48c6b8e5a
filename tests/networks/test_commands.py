"""``isrlearn train, extract, repair, reproduce`` on small images, used rightly and wrongly."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from PIL import Image  # noqa: E402

from isrlearn import Report  # noqa: E402
from isrlearn.cli import main  # noqa: E402
from isrlearn.datasets import read_examples  # noqa: E402
from isrlearn.exceptions import TrainingError  # noqa: E402
from isrlearn.io import FeatureFile  # noqa: E402
from isrlearn.networks import evaluate, load_network, rows_of  # noqa: E402
from isrlearn.networks._saved import read_card  # noqa: E402
from isrlearn.reporting._images import data_address  # noqa: E402

TESTS = Path(__file__).parents[1]
TRUST = ("--trust", "networks.tiny:backbone")
PLAN = """
backbone = "networks.tiny:backbone"
[training]
epochs = 2
batch_size = 16
learning_rate = 0.05
[training.groupdro]
step_size = 0.05
[heads]
pca = 20
C = [0.01, 1.0]
cov_directions = [1, 2]
isr_directions = [1]
"""


def write_images(folder, n_rows=240, seed=0):
    """Images in the layout of Waterbirds: brightness is the class, redness the place."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(n_rows):
        split = (0, 0, 0, 1, 2)[i % 5]
        y = int(random.integers(2))
        agrees = 0.9 if split == 0 else 0.5
        place = y if random.uniform() < agrees else 1 - y
        pixels = random.normal(90 + 30 * y, 25, size=(8, 8, 3))
        pixels[..., 0] += 60 * place
        name = f"birds/{i}.png"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
        rows.append({"img_id": i, "img_filename": name, "y": y, "split": split, "place": place})
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder


def read_csv(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("birds"))


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "tiny.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def isrlearn(monkeypatch, capsys):
    monkeypatch.syspath_prepend(TESTS)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return run


@pytest.fixture(scope="module")
def network(data, plan, tmp_path_factory):
    out = tmp_path_factory.mktemp("network") / "net"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TESTS)
        with pytest.raises(SystemExit) as stop:
            main(["train", "--data", str(data), "--config", str(plan), "--out", str(out)])
    assert stop.value.code == 0
    return out


def test_train_writes_a_network_that_loads(isrlearn, data, network):
    loaded, card = load_network(network, trusted=TRUST)
    assert card.classes == ("landbird", "waterbird")
    validation = rows_of(read_examples(data).take("validation"), loaded.inputs)
    summary = json.loads((network / "training.json").read_text())
    best = max(epoch["worst_group"] for epoch in summary["epochs"])
    assert evaluate(loaded.model, validation).worst == best


def test_train_again_reads_what_is_there(isrlearn, data, plan, network):
    before = (network / "model.safetensors").stat().st_mtime_ns
    code, out, _ = isrlearn("train", "--data", data, "--config", plan, "--out", network)
    assert code == 0
    assert "Best epoch" in out
    assert (network / "model.safetensors").stat().st_mtime_ns == before
    code, _, err = isrlearn(
        "train", "--data", data, "--config", plan, "--out", network, "--epochs", 9
    )
    assert code == 2
    assert "epochs 2 there, 9 here" in err


def test_extract_and_repair(isrlearn, data, network, tmp_path):
    code, out, _ = isrlearn(
        "extract", network, *TRUST, "--data", data, "--out", tmp_path / "features"
    )
    assert code == 0
    assert "240 rows of 24 features" in out
    rows = FeatureFile.open(tmp_path / "features").read()
    examples = read_examples(data)
    np.testing.assert_array_equal(rows.split, examples.split)
    np.testing.assert_array_equal(rows.labels, examples.labels)
    repaired = tmp_path / "repaired"
    arguments = ("repair", network, *TRUST, "--data", data, "--out", repaired, "--n-spurious", 1)
    code, out, _ = isrlearn(*arguments)
    assert code == 0
    assert "waterbird" in out
    report = json.loads((repaired / "result.json").read_text())
    assert report["held_out"]
    assert report["n_spurious"] == 1
    page = Report.load(repaired)
    assert (repaired / "report.html").read_text(encoding="utf-8") == page.html
    assert page.tests.counts.rows[0][0] == "landbird"
    shown = page.directions[0].most[0]
    image = examples.take("test").image(shown.row)
    assert shown.image == data_address(image)
    assert shown.label == examples.classes[examples.take("test").labels[shown.row]]
    loaded = load_network(repaired, trusted=TRUST)[0]
    test = rows_of(examples.take("test"), loaded.inputs)
    assert evaluate(loaded.model, test).worst == pytest.approx(report["worst_group"][1])
    code, _, err = isrlearn(*arguments)
    assert code == 2
    assert "--force" in err
    # As if another repair with --force were killed between its files.
    card = read_card(repaired)
    replace(card, classes=card.classes[::-1]).save(repaired, replacing=True)
    with pytest.raises(TrainingError, match=r"does not belong to network\.json"):
        load_network(repaired, trusted=TRUST)


def test_frozen_features_of_a_backbone(isrlearn, data, tmp_path):
    code, out, _ = isrlearn(
        "extract", "--backbone", "networks.tiny:backbone", "--data", data, "--out", tmp_path / "f"
    )
    assert code == 0
    code, out, _ = isrlearn(
        "reproduce", "table2", "--data", tmp_path / "f", "--seeds", 2, "--out", tmp_path / "t"
    )
    assert code == 0
    assert "| Reweighting |" in out
    assert "76.42±0.00" in out
    rows = read_csv(tmp_path / "t" / "table2.csv")
    assert {(r["objective"], r["method"]) for r in rows} == {
        (objective, method)
        for objective in ("erm", "reweighting")
        for method in ("probe", "isr-mean", "isr-cov", "isr")
    }


def test_table1_and_partial_labels(isrlearn, data, plan, tmp_path):
    common = ("--data", data, "--config", plan, "--out", tmp_path, "--seeds", 2)
    code, out, _ = isrlearn("reproduce", "table1", *common)
    assert code == 0
    for text in ("| ERM |", "| GroupDRO |", "62.93±5.37", "worst group (%)"):
        assert text in out
    assert (tmp_path / "table1.md").read_text().strip() in out
    rows = read_csv(tmp_path / "table1.csv")
    assert len(rows) == 2 * 3 * (1 + 4 * 2)
    assert {r["training_seed"] for r in rows} == {"0", "1"}
    plain = [
        float(r["worst_group"])
        for r in rows
        if (r["objective"], r["method"], r["head"]) == ("erm", "isr-cov", "plain")
    ]
    block = out.partition("plain heads")[2].partition("worst group (%)")[2]
    erm = next(line for line in block.splitlines() if line.startswith("| ERM"))
    assert erm.split(" | ")[4].startswith(f"{100 * np.mean(plain):.2f}±")
    result = json.loads((tmp_path / "networks/erm-seed0/result.json").read_text())
    assert result["settings"]["learning_rate"] == 0.05
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.safetensors")}
    again = isrlearn("reproduce", "table1", *common)[1]
    assert (tmp_path / "table1.md").read_text().strip() in again
    assert "epoch" not in again.partition("read as waterbirds, by")[0]
    code, out, err = isrlearn("reproduce", "partial-labels", *common)
    assert code == 0, err
    assert (tmp_path / "partial-labels.png").stat().st_size > 10_000
    assert stamps == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.safetensors")}
    records = read_csv(tmp_path / "partial-labels.csv")
    assert len(records) == 2 * 3 * (9 * 10 + 1)


def test_all_labels_give_the_figures_of_the_table(isrlearn, data, plan, tmp_path, monkeypatch):
    monkeypatch.setattr("isrlearn.reproduce.partial.N_SUBSETS", 1)
    common = ("--data", data, "--config", plan, "--out", tmp_path, "--seeds", 1)
    isrlearn("reproduce", "partial-labels", *common)
    result = json.loads((tmp_path / "networks/erm-seed0/result.json").read_text())
    records = read_csv(tmp_path / "partial-labels.csv")
    for method in ("isr-mean", "isr-cov", "isr"):
        whole = [r for r in records if r["method"] == method and r["fraction"] == "1.0"]
        expected = result["outcomes"][result["selected"][method]]["worst_group"]
        assert float(whole[0]["worst_group"]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backbone", "nowhere.at:all"], "ModuleNotFoundError"),
        (["--backbone", "networks.tiny:nothing"], "returned a str"),
        (["--backbone", "./no/such/folder"], "cannot be loaded"),
        (["--config", "no-such-plan"], "neither a .toml file nor one of"),
        (["--device", "warp"], "cannot be used here"),
        (["--objective", "magic"], "objective"),
        (["--epochs", "0"], "at least 1"),
        (["--data", "nowhere"], "nowhere does not exist"),
        (["--layout", "celeba"], "has no list_attr_celeba.csv"),
    ],
)
def test_mistakes_of_train(isrlearn, data, plan, tmp_path, monkeypatch, arguments, message):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    given = {"--data": data, "--config": plan, "--out": tmp_path / "net"}
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    code, _, err = isrlearn("train", *(part for pair in given.items() for part in pair))
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "net" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("epochs = 2\nepoch = 3", "'epoch', which is none of"),
        ("epochs = ", "is not TOML"),
        ("epochs = 0", "epochs=0 must be"),
        ("epochs = 2\nerm = 3", "erm must be a table"),
    ],
)
def test_mistakes_in_a_plan(isrlearn, data, tmp_path, change, message):
    (tmp_path / "bad.toml").write_text(PLAN.replace("epochs = 2", change))
    code, _, err = isrlearn(
        "train", "--data", data, "--config", tmp_path / "bad.toml", "--out", tmp_path / "net"
    )
    assert code == 2
    assert message in err


def test_a_broken_image_stops_and_leaves_nothing_half_written(isrlearn, plan, tmp_path):
    data = write_images(tmp_path / "data", 60)
    path = data / "birds/10.png"
    path.write_bytes(path.read_bytes()[:60])
    out = tmp_path / "net"
    code, _, err = isrlearn("train", "--data", data, "--config", plan, "--out", out)
    assert code == 2
    assert "10.png is not a whole image" in err
    assert sorted(p.name for p in out.iterdir()) == ["network.json"]
    code, _, err = isrlearn(
        "extract", "--backbone", "networks.tiny:backbone", "--data", data, "--out", tmp_path / "f"
    )
    assert code == 2
    assert "10.png is not a whole image" in err


def test_other_mistakes(isrlearn, data, network, tmp_path):
    for arguments, message in (
        (["extract", "--data", data, "--out", tmp_path / "x"], "either the folder of a network"),
        (["extract", tmp_path, "--data", data, "--out", tmp_path / "x"], "has no network.json"),
        (["repair", tmp_path, "--data", data, "--out", tmp_path / "x"], "has no network.json"),
        (["reproduce", "table2", "--data", data], "no manifest.json"),
        (["reproduce", "table1", "--data", data, "--objectives", "sorcery"], "sorcery"),
        (["reproduce", "table1", "--data", data, "--seeds", "0"], "--seeds 0"),
        (["train", "--data", data, "--out", tmp_path / "x", "--seed", "1.5"], "--seed 1.5"),
    ):
        code, _, err = isrlearn(*arguments)
        assert code == 2, arguments
        assert message in err


def test_one_environment_is_refused_before_training(isrlearn, plan, tmp_path):
    table = tmp_path / "one.csv"
    rows = [
        f"w{i},{i % 2},x,{split}" for split in ("train", "validation", "test") for i in range(8)
    ]
    table.write_text("\n".join(["text,label,environment,split", *rows]))
    code, _, err = isrlearn(
        "reproduce", "table1", "--data", table, "--config", plan, "--out", tmp_path
    )
    assert code == 2
    assert "1 known environment" in err
    assert not (tmp_path / "networks").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_extraction_gives_the_same_features(data, network, tmp_path):
    def start(out):
        script = (
            "import sys, time\n"
            f"sys.path.insert(0, {str(TESTS)!r})\n"
            "from isrlearn.io import _features\n"
            "_features.FeatureWriter.__init__.__kwdefaults__['rows_per_shard'] = 8\n"
            "write = _features.FeatureWriter._write_shard\n"
            "def slow(self):\n"
            "    write(self)\n"
            "    print('shard', flush=True)\n"
            "    time.sleep(0.02)\n"
            "_features.FeatureWriter._write_shard = slow\n"
            "from isrlearn.cli import main\n"
            f"sys.argv = ['isrlearn', 'extract', {str(network)!r}, *{TRUST!r}, "
            f"'--data', {str(data)!r}, "
            f"'--out', {str(out)!r}, '--batch-size', '8']\n"
            "main()\n"
        )
        return subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    whole = start(tmp_path / "whole")
    whole.communicate()
    assert whole.returncode == 0
    random = np.random.default_rng(0)
    for _ in range(3):
        process = start(tmp_path / "killed")
        for _ in range(int(random.integers(1, 12))):
            process.stdout.readline()
        time.sleep(float(random.uniform(0, 0.03)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    last = start(tmp_path / "killed")
    last.communicate()
    assert last.returncode == 0
    one, other = (FeatureFile.open(tmp_path / name).read() for name in ("whole", "killed"))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name])


def test_code_that_a_file_names_is_not_imported(isrlearn, data, network, tmp_path):
    """A network of somebody else's may name any module; it is imported only on demand."""
    for words in (["extract"], ["repair", "--n-spurious", 1]):
        command, *more = words
        out = tmp_path / command
        code, _, err = isrlearn(command, network, "--data", data, "--out", out, *more)
        assert code == 2
        assert "names code to be imported, 'networks.tiny:backbone'" in err
        assert not out.exists()
    with pytest.raises(TrainingError, match="names code"):
        load_network(network, trusted=["networks.tiny:network"])


def write_table(path, data, names):
    """The images of a folder as a csv of the user's own, with other names of the classes."""
    examples = read_examples(data)
    rows = [
        {
            "path": f"birds/{i}.png",
            "label": names[examples.labels[i]],
            "environment": ("land", "water")[examples.environments[i]],
            "split": int(examples.split[i]),
        }
        for i in range(len(examples))
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_classes_go_by_name_not_by_number(isrlearn, data, network, tmp_path):
    """Sorted by name, a csv numbers its classes in its own order; the network keeps its own."""
    own = write_table(data / "own.csv", data, ("landbird", "waterbird"))
    code, _, err = isrlearn(
        "repair", network, *TRUST, "--data", own, "--out", tmp_path / "a", "--n-spurious", 1
    )
    assert code == 0, err
    code, _, _ = isrlearn(
        "repair", network, *TRUST, "--data", data, "--out", tmp_path / "b", "--n-spurious", 1
    )
    assert code == 0
    one, other = (json.loads((tmp_path / n / "result.json").read_text()) for n in "ab")
    assert one["groups"] == other["groups"]
    odd = write_table(data / "odd.csv", data, ("landbird", "cat"))
    code, _, err = isrlearn("repair", network, *TRUST, "--data", odd, "--out", tmp_path / "c")
    assert code == 2
    assert "'cat' of the data is none of the network's" in err


def test_a_refused_run_leaves_the_network_as_it_was(isrlearn, data, plan, network):
    before = (network / "network.json").read_bytes()
    code, _, err = isrlearn(
        "train",
        "--data",
        data,
        "--config",
        plan,
        "--out",
        network,
        "--backbone",
        "networks.tiny:network",
    )
    assert code == 2
    assert "holds another network" in err
    assert (network / "network.json").read_bytes() == before


def test_hidden_labels_are_out_of_the_known_ones():
    from isrlearn.reproduce.partial import hide

    environments = np.array([-1, 0, 1, 0, -1, 1])
    assert hide(environments, 1.0, [0]).tolist() == [None, 0, 1, 0, None, 1]
    assert sum(e is not None for e in hide(environments, 0.5, [0])) == 2


def test_frozen_features_are_checked(tmp_path):
    from isrlearn.exceptions import FeatureFileError
    from isrlearn.reproduce.frozen import read_frozen

    arrays = {
        "features": np.ones((6, 2)),
        "labels": np.array([3, 4] * 3),
        "environments": np.array(["a", "b", "a", "b", "b", "a"]),
        "split": np.array([0, 0, 1, 1, 2, 2]),
    }
    path = tmp_path / "f.npz"
    np.savez(path, **arrays)
    rows = read_frozen(path)
    assert rows.labels.tolist() == [0, 1] * 3
    assert rows.environments.tolist() == [0, 1, 0, 1, 1, 0]
    for change, message in (
        ({"split": np.zeros(6)}, "split must hold"),
        ({"labels": np.zeros(5)}, "one value for each"),
        ({"labels": np.array([0, 0, 1, 1, 1, 1])}, "every class must have rows"),
    ):
        np.savez(path, **(arrays | change))
        with pytest.raises(FeatureFileError, match=message):
            read_frozen(path)
    path.write_text("no archive")
    with pytest.raises(FeatureFileError, match="must hold the arrays"):
        read_frozen(path)
