"""Names that end in an underscore, as scikit-learn writes what was fitted, are no references."""

import re
from typing import Any

from sphinx.application import Sphinx

FITTED = re.compile(r"(``.+?``|`[^`]+`)|(?<![\w.\\])([A-Za-z]\w*)_(?![\w`])")


def escaped(line: str) -> str:
    """Escape fitted names outside of backticks and examples."""
    if line.lstrip().startswith((">>>", "...", "..")):
        return line
    return FITTED.sub(lambda match: match[1] or rf"{match[2]}\_", line)


def escape_all(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place."""
    lines[:] = [escaped(line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Escape after numpydoc has done its part."""
    app.connect("autodoc-process-docstring", escape_all, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
