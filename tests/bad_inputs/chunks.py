"""Mistakes in rows that come in chunks."""

import pandas as pd

from bad_inputs.rows import E, X, Y
from bad_inputs.running import Case
from isrlearn import ChunkedRows, ISRMean

SHAPES = r": give \(X, y\), \(X, y, environments\) or"


def chunked(wrong, says, chunks):
    return Case(wrong, lambda folder: ISRMean().fit(ChunkedRows.from_chunks(chunks)), says)


def table(names):
    return pd.DataFrame(X, columns=list(names))


CHUNKS = [
    chunked("chunks that are None", "chunks is None: give a list", None),
    chunked("the name of a file for chunks", "chunks is 'rows.csv': give a list", "rows.csv"),
    chunked("a function that returns nothing", "returned is None: give", lambda: None),
    chunked("no chunks", "there are no rows: give at least one chunk", []),
    chunked("features alone for a chunk", f"chunk 1 is a ndarray{SHAPES}", [X]),
    chunked("a chunk of five parts", rf"chunk 1 has 5 part\(s\){SHAPES}", [(X, Y, E, Y, Y)]),
    chunked("a dict for a chunk", f"chunk 1 is a dict{SHAPES}", [{"X": X, "y": Y}]),
    chunked("a chunk of one row as a vector", r"of shape \(5,\).*give two", [(X[0], Y, E)]),
    chunked("a later chunk that is none", "chunk 2 is a NoneType", [(X, Y, E), None]),
    chunked(
        "chunks whose columns stand in another order",
        r"chunk 2 has the columns \['e', .*, the first \['a', .*: give the same",
        [(table("abcde"), Y, E), (table("edcba"), Y, E)],
    ),
    Case(
        "arrays without labels",
        lambda folder: ChunkedRows.from_arrays(X, None, environments=E),
        "y=None is no array: give one value per row",
    ),
    Case(
        "one name of all environments, for chunks",
        lambda folder: ChunkedRows.from_arrays(X, Y, environments="hospital"),
        "environments='hospital' is no array: give one value per row",
    ),
]
