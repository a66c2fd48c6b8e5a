"""Readers and `fit` on input that nobody meant: documented exceptions, bounded time and memory."""

import pytest
from fuzz.targets import ENTRIES
from hypothesis import HealthCheck, example, given, settings, strategies as st

CASES = 500


@pytest.mark.parametrize("name", ENTRIES)
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@example(data=b"")
@given(data=st.binary(max_size=48))
def test_an_entry_raises_only_what_is_documented(name, data):
    ENTRIES[name](data)
