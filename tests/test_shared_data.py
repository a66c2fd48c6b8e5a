"""Readers against data that were prepared by others; skipped where they are not there."""

from pathlib import Path

import numpy as np
import pytest

from isrlearn.datasets import read_examples

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
