"""MultiNLI: does one sentence follow from another; the environment is negation."""

import re
import string
from pathlib import Path
from typing import Final

import numpy as np

from isrlearn._npz import array_names, read_arrays
from isrlearn.datasets._columns import Table, first_there, splits_by_number_or_name
from isrlearn.datasets._examples import ExampleSet
from isrlearn.display import brief
from isrlearn.exceptions import DataError
from isrlearn.typing import IntArray

ADDRESS: Final = "https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip"
SPLIT_ADDRESS: Final = (
    "https://raw.githubusercontent.com/kohpangwei/group_DRO/master/dataset_metadata/multinli/"
    "metadata_random.csv"
)
CLASSES: Final = ("contradiction", "entailment", "neutral")
NO_GOLD: Final = "-"
SHARES: Final = (0.5, 0.2, 0.3)
PARTS: Final = ("train", "dev_matched", "dev_mismatched")
NEGATIONS: Final = ("published", "extended")

_PUBLISHED: Final = frozenset(("nobody", "no", "never", "nothing"))
_EXTENDED: Final = _PUBLISHED | {"not", "none", "neither", "nor", "without", "cannot"}
_CONTRACTED: Final = re.compile(
    r"(?:do|does|did|is|are|was|were|has|have|had|wo|would|ca|could|should|must|might|need|ai|sha)"
    r"n['\u2019]?t"
)
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_EDGES: Final = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~\u2018\u2019\u201c\u201d"


def has_negation(hypothesis: str, rule: str = "published") -> bool:
    """Say whether a sentence has a negation word.

    Parameters
    ----------
    hypothesis : str
        The second sentence of a pair.
    rule : {"published", "extended"}, default="published"
        "published": nobody, no, never or nothing. "extended": also not, none, neither, nor,
        without, cannot, and forms such as don't or isnt.

    Returns
    -------
    bool

    Examples
    --------
    >>> has_negation("Nothing was said."), has_negation("She isn't here.")
    (True, False)
    >>> has_negation("She isn't here.", "extended")
    True
    """
    if rule == "published":
        # As published, punctuation is dropped before words are split at blanks.
        bare = hypothesis.translate(_NO_PUNCTUATION).lower()
        return not _PUBLISHED.isdisjoint(bare.split(" "))
    words = [word.strip(_EDGES) for word in hypothesis.lower().split()]
    return not _EXTENDED.isdisjoint(words) or any(map(_CONTRACTED.fullmatch, words))


def find_multinli(folder: Path) -> list[Path]:
    """Return the text files of MultiNLI in or below a folder."""
    for place in (folder, folder / "glue_data" / "MNLI", folder / "multinli_1.0"):
        for pattern in ("{}.tsv", "multinli_1.0_{}.txt"):
            files = [place / pattern.format(part) for part in PARTS]
            there = [path for path in files if path.exists()]
            if there:
                return there
    return sorted(folder.glob("multinli*.tsv"))


def read_multinli(folder: str | Path, *, negation: str = "published") -> ExampleSet:
    r"""Read MultiNLI: pairs of sentences, with negation in the second as environment.

    Parameters
    ----------
    folder : path
        Holds the text: train, dev_matched and dev_mismatched as .tsv (in ``glue_data/MNLI``) or as
        the .txt of the release; or one ``multinli*.tsv`` with premise, hypothesis and gold_label.
        The split comes from ``metadata_random.csv`` (there or in ``data``), else from the array
        ``split`` of an .npz file beside the text, else it is drawn: 50, 20 and 30 % of each group.
    negation : {"published", "extended"}, default="published"
        Which words are negations; see `has_negation`.

    Returns
    -------
    ExampleSet
        Environments "no negation" and "negation". Pairs without a gold label are left out.

    References
    ----------
    .. [1] A. Williams, N. Nangia, S. Bowman (2018). A broad-coverage challenge corpus for sentence
       understanding through inference. NAACL.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> head = "gold_label\tsentence1\tsentence2"
    >>> pairs = "contradiction\tIt rains.\tNothing falls.", "-\tIt rains.\tIt is Monday."
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "train.tsv").write_text("\n".join([head, *pairs]))
    ...     examples = read_multinli(folder)
    >>> examples.inputs, examples.environments.tolist()
    ([('It rains.', 'Nothing falls.')], [1])
    """
    if negation not in NEGATIONS:
        raise ValueError(f"negation={brief(negation)} must be one of {', '.join(NEGATIONS)}.")
    folder = Path(folder)
    pairs, names = _pairs(folder)
    labels = np.array([CLASSES.index(name) for name in names], dtype=np.intp)
    environments = np.array([has_negation(h, negation) for _, h in pairs], dtype=np.intp)
    return ExampleSet(
        layout="multinli",
        kind="text",
        inputs=pairs,
        labels=labels,
        environments=environments,
        split=_split(folder, labels, environments),
        classes=CLASSES,
        environment_names=("no negation", "negation"),
    )


def _pairs(folder: Path) -> tuple[list[tuple[str, str]], list[str]]:
    files = find_multinli(folder)
    if not files:
        raise DataError(
            f"{folder} has no text of MultiNLI. Fetch {ADDRESS} and unpack it there, and "
            f"{SPLIT_ADDRESS} into {folder / 'data'} for the published split."
        )
    pairs: list[tuple[str, str]] = []
    labels: list[str] = []
    for path in files:
        table = Table.read(path, delimiter="\t", quoting=3)
        first, second = ("sentence1", "sentence2")
        if "premise" in table.columns:
            first, second = ("premise", "hypothesis")
        gold = table.texts("gold_label")
        _refuse_unknown(path, gold)
        rows = zip(table.texts(first), table.texts(second), gold, strict=True)
        kept = [row for row in rows if row[2] != NO_GOLD]
        pairs += [(a, b) for a, b, _ in kept]
        labels += [label for *_, label in kept]
    if not pairs:
        raise DataError(f"{files[0]} has no pair of sentences with a gold label: fetch it again.")
    return pairs, labels


def _refuse_unknown(path: Path, gold: list[str]) -> None:
    for line, label in enumerate(gold, start=2):
        if label not in CLASSES and label != NO_GOLD:
            raise DataError(
                f"{path}, line {line}: gold_label is {brief(label)}, which must be one of "
                f"{', '.join(CLASSES)}, or {NO_GOLD} for none."
            )


def _split(folder: Path, labels: IntArray, environments: IntArray) -> IntArray:
    table = first_there([folder / "data" / "metadata_random.csv", folder / "metadata_random.csv"])
    if table is not None:
        return _published_split(Table.read(table), labels)
    for path in sorted(folder.glob("*.npz")):
        split = _saved_split(path)
        if split is not None and split.shape == labels.shape:
            return _checked_split(path, split)
    return draw_split(labels, environments)


def _saved_split(path: Path) -> IntArray | None:
    try:
        return read_arrays(path, ["split"])["split"] if "split" in array_names(path) else None
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}): write or remove it.") from error


def _checked_split(path: Path, split: IntArray) -> IntArray:
    if not np.all(np.isin(split, (0, 1, 2))):
        raise DataError(f"{path}: split must be 0 (train), 1 (validation) or 2 (test).")
    return np.asarray(split, dtype=np.intp)


def _published_split(table: Table, labels: IntArray) -> IntArray:
    known = table.codes("gold_label", {str(i): i for i in range(len(CLASSES))})
    if len(known) != len(labels) or np.any(known != labels):
        raise DataError(
            f"{table.path} has {len(known)} rows and the text has {len(labels)}, or their labels "
            "differ: the table is of train, dev_matched and dev_mismatched, in this order."
        )
    return table.codes("split", splits_by_number_or_name())


def draw_split(labels: IntArray, environments: IntArray) -> IntArray:
    """Return 50 % train, 20 % validation and 30 % test of each group, always the same."""
    random = np.random.default_rng(0)
    split = np.zeros(len(labels), dtype=np.intp)
    groups = labels * (environments.max() + 2) + environments
    for group in np.unique(groups):
        rows = random.permutation(np.flatnonzero(groups == group))
        ends = np.round(np.cumsum(SHARES[:2]) * len(rows)).astype(int)
        split[rows[ends[0] : ends[1]]] = 1
        split[rows[ends[1] :]] = 2
    return split
