"""How hostile files are read in tests: they are refused, in little memory, and nothing is run."""

import pytest
from fuzz.guard import _reset_peak, peak_bytes

from isrlearn.io import open_rows, read_data

FREE = 64 * 2**20
TIMES = 8
NAMES = {"label": "kind", "environment": "site"}


def refused(read, path, error, reason, mark=None):
    """Check that reading ends in an error with a reason, in little memory, and runs nothing."""
    size = path.stat().st_size if path.is_file() else 0
    before = _reset_peak()
    with pytest.raises(error, match=reason) as caught:
        read(path)
    taken = peak_bytes() - before
    assert taken <= FREE + TIMES * size, f"{taken >> 20} MiB for {size} bytes"
    assert "\n" not in str(caught.value).strip()
    assert mark is None or not mark.exists(), "the payload was run"


def data(path):
    return read_data(path, **({} if path.suffix in (".npz", ".safetensors", "") else NAMES))


def chunks(path):
    names = {} if path.suffix in (".npz", ".safetensors", "") else NAMES
    return open_rows(path, **names).total(lambda rows: len(rows.X))
