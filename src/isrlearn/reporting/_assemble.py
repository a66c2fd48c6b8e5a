"""The parts of a report put together."""

from typing import Any

from isrlearn._shown import Shown
from isrlearn.reporting._content import Made, Method, Table
from isrlearn.reporting._images import Examples, illustrations
from isrlearn.reporting._report import Report
from isrlearn.reporting._rows import directions_of, n_removed, plane_of
from isrlearn.reporting._tests import spectrum_of, tests_of


def assemble(
    title: str,
    verdict: Any,
    groups: Any,
    methods: tuple[Method, ...],
    tables: tuple[Table, ...],
    shown: Shown | None,
    made: Made,
    examples: Examples | None,
    *,
    same: bool,
    n_fitted: int = 0,
) -> Report:
    """Return a report: what there is to say of the rows, beside titles and scores.

    Parameters
    ----------
    title : str
        Heading.
    verdict, groups, methods, tables, made
        As in `Report`.
    shown : Shown or None
        Rows, removal, heads and tests; None shows scores alone.
    examples : Examples or None
        As in `isrlearn.report`.
    same : bool
        Whether the tests are the model's own.
    n_fitted : int, default=0
        Rows that tests made for the page could have used; 0 where they used all.
    """
    illustrate = None if examples is None else illustrations(examples)
    return Report(
        title=title,
        verdict=verdict,
        groups=groups,
        methods=methods,
        tables=tables,
        spectrum=None if shown is None else spectrum_of(shown, same=same),
        plane=None if shown is None else plane_of(shown),
        directions=() if shown is None else directions_of(shown, illustrate),
        tests=None if shown is None else tests_of(shown, same=same, n_fitted=n_fitted),
        made=made,
        scale=_left(shown),
        target="class" if shown is None or shown.decides else "target",
    )


def _left(shown: Shown | None) -> float:
    """Return what is left of directions that are shrunk; 0 where none are."""
    return 0.0 if shown is None or n_removed(shown) == 0 else float(shown.subspace.scale)
