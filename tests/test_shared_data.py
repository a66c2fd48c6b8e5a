"""Readers against data that were prepared by others; skipped where they are not there."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from isrlearn import compare
from isrlearn.datasets import read_examples
from isrlearn.io import read_data

SHARED = Path(__file__).parents[2] / "shared" / "data"


def folder(name):
    path = SHARED / name
    if not path.is_dir():
        pytest.skip(f"{name} is not beside the project")
    return path


@pytest.mark.parametrize(
    ("rule", "name"), [("published", "environments"), ("extended", "environments_extended")]
)
def test_negation_and_split_of_multinli(rule, name):
    path = folder("multinli_dev_matched_minilm")
    examples = read_examples(path, negation=rule)
    with np.load(path / "multinli_dev_matched_minilm.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(examples.environments, arrays[name])
        np.testing.assert_array_equal(examples.labels, arrays["labels"])
        np.testing.assert_array_equal(examples.split, arrays["split"])


def test_groups_of_rebuilt_waterbirds():
    examples = read_examples(folder("waterbirds_rebuilt_images"))
    counts = examples.counts()
    assert counts["train"].tolist() == [[3525, 186], [54, 1030]]
    assert counts["validation"].tolist() == [[452, 452], [147, 148]]
    assert counts["test"].tolist() == [[2255, 2255], [642, 642]]
    pytest.importorskip("PIL")
    assert examples.image(0).size == (128, 128)


@pytest.fixture
def loaders():
    """The loaders of ``benchmarks/leaderboard.py``."""
    path = Path(__file__).parents[1] / "benchmarks" / "leaderboard.py"
    spec = importlib.util.spec_from_file_location("leaderboard_script", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["waterbirds", "multinli"])
def test_no_rival_beats_isr_in_the_worst_group_beyond_chance(loaders, tmp_path, name):
    folder("waterbirds_rebuilt_efficientnet_lite0")
    getattr(loaders, name)(SHARED, tmp_path / "a.npz")
    rows = read_data(tmp_path / "a.npz")
    keys = ["erm", "group-reweighted", "group-dro", "leace-class", "dfr", "isr"]
    found = compare(
        rows.features,
        rows.labels,
        environments=rows.environments,
        split=rows.split,
        methods=keys,
        n_seeds=1,
    )
    assert not found.failures
    assert all(found[key].against_isr.high >= 0 for key in keys[:-1])
    assert found["erm"].against_isr.low > 0.1
    assert min(found["isr"].n_spurious) >= 1


def test_isr_is_not_below_plain_training_in_a_hospital_left_out(loaders, tmp_path):
    folder("heart_disease")
    loaders.heart_disease(SHARED, tmp_path / "a.csv")
    rows = read_data(tmp_path / "a.csv", label="disease", environment="hospital")
    assert len(rows) == 920
    assert dict(
        zip(*np.unique(rows.environments.astype(str), return_counts=True), strict=True)
    ) == {
        "cleveland": 303,
        "hungarian": 294,
        "switzerland": 123,
        "va": 200,
    }
    found = compare(
        rows.features,
        rows.labels,
        environments=rows.environments,
        test="leave-one-environment-out",
        impute="median",
        with_units=True,
        methods=["erm", "isr"],
    )
    assert found["erm"].against_isr.high >= 0
