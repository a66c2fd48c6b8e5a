"""The public API computes what it computed before."""

import json

import numpy as np
import pytest
from golden import FILE, cases, numbers_of

GOLDEN = json.loads(FILE.read_text())
CASES = [
    pytest.param(name, tolerance, compute, id=name.replace("\n", " "))
    for name, tolerance, compute in cases()
]


def test_every_case_is_recorded():
    assert {case.values[0] for case in CASES} == set(GOLDEN)


@pytest.mark.parametrize(("name", "tolerance", "compute"), CASES)
def test_numbers_are_those_recorded(name, tolerance, compute):
    found, recorded = numbers_of(compute), GOLDEN[name]
    assert set(found) == set(recorded)
    for part, value in recorded.items():
        expected = np.asarray(value)
        size = np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(np.asarray(found[part]), expected, rtol=0, atol=tolerance * size)
