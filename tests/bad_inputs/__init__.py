"""Every bad input that is tested, as data: tests run them, docs/bad-input.md shows them.

A case is a mistake of a user, a function that makes it in an empty folder, and what the message
must say. `GROUPS` has them by the place where they are made. `python docs/bad_input_page.py` writes
the page.
"""

from bad_inputs.chunks import CHUNKS
from bad_inputs.commands import COMMANDS
from bad_inputs.estimators import APPLYING, MOMENTS, PARAMETERS
from bad_inputs.files import DATA_FILES, OTHER_FILES, UNFIT
from bad_inputs.functions import COMPARING, DRAWING, REPAIRING, SCORING, SELECTING, SUBSPACES
from bad_inputs.rows import ENVIRONMENTS, LABELS, ROWS, WEIGHTS
from bad_inputs.running import Case, run
from bad_inputs.stores import MODELS, STORES

__all__ = ["GROUPS", "Case", "run"]

GROUPS: dict[str, list[Case]] = {
    "Features given to fit": ROWS,
    "Labels given to fit": LABELS,
    "Environments given to fit": ENVIRONMENTS,
    "Weights given to fit": WEIGHTS,
    "Parameters of estimators": PARAMETERS,
    "transform, predict and partial_fit": APPLYING,
    "Rows in chunks": CHUNKS,
    "CellMoments": MOMENTS,
    "Subspace": SUBSPACES,
    "repair_head and fold": REPAIRING,
    "Metrics": SCORING,
    "select": SELECTING,
    "compare and report": COMPARING,
    "Data sets and trials that are drawn": DRAWING,
    "Files of rows": DATA_FILES,
    "Files that can be read, but not fitted on": UNFIT,
    "Files that do not fit a model": OTHER_FILES,
    "Model files and feature folders": MODELS,
    "Stores of benchmark results": STORES,
    "The command line": COMMANDS,
}
