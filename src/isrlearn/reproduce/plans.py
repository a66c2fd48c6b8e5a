"""Plans: every number that decides a row of a table, in a file under version control."""

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from isrlearn.networks import TrainingSettings
from isrlearn.networks._objectives import OBJECTIVES
from isrlearn.reproduce.heads import HeadGrid

PUBLISHED: Final = {
    "waterbirds": "waterbirds-resnet50",
    "celeba": "celeba-resnet50",
    "multinli": "multinli-bert",
    "image": "waterbirds-resnet50",
    "text": "multinli-bert",
}
"""The plan of a data set, or of a table of the user's own by its kind."""


@dataclass(frozen=True)
class Plan:
    """How the networks of a table are trained, and how their heads are chosen.

    Parameters
    ----------
    name : str
        Of the file.
    backbone : str
        As in `isrlearn.networks.load_backbone`.
    training : dict of str to TrainingSettings
        By objective; the seed is set for each network.
    heads : HeadGrid
        What is tried on the features.
    inputs : dict
        As in `isrlearn.networks.load_backbone`.

    Examples
    --------
    >>> from isrlearn.reproduce import read_plan
    >>> plan = read_plan("waterbirds-resnet50")
    >>> sorted(plan.training)
    ['erm', 'groupdro', 'reweighting']
    >>> plan.with_epochs(1).training["erm"].epochs
    1
    """

    name: str
    backbone: str
    training: dict[str, TrainingSettings]
    heads: HeadGrid
    inputs: dict[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """Return a hash of everything but the name."""
        contents = asdict(replace(self, name=""))
        return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]

    def with_epochs(self, epochs: int | None) -> "Plan":
        """Return the plan with another number of epochs."""
        if epochs is None:
            return self
        training = {name: replace(s, epochs=epochs) for name, s in self.training.items()}
        return replace(self, training=training)


def plan_names() -> list[str]:
    """Return the names of the plans that come with the package."""
    home = files("isrlearn.reproduce").joinpath("configs")
    return sorted(f.name.removesuffix(".toml") for f in home.iterdir() if f.name.endswith(".toml"))


def find_plan(layout: str, backbone: str | None = None, config: str | Path | None = None) -> Plan:
    """Return the plan for a data set.

    Parameters
    ----------
    layout : str
        Of the data: "waterbirds", "celeba" or "multinli"; or the kind of rows in a table of your
        own, "image" or "text".
    backbone : str, default=None
        Use the plan of this data set and backbone, or, where there is none, the published one with
        another backbone.
    config : str or path, default=None
        Name of a plan, or a file.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from isrlearn.reproduce import find_plan
    >>> find_plan("celeba").name, find_plan("waterbirds", "efficientnet-lite0").name
    ('celeba-resnet50', 'waterbirds-efficientnet-lite0')
    >>> find_plan("text", backbone="minilm").backbone
    'minilm'
    """
    if config is not None:
        plan = read_plan(config)
        return plan if backbone is None else replace(plan, backbone=backbone)
    own = f"{layout}-{backbone}"
    if own in plan_names():
        return read_plan(own)
    plan = read_plan(PUBLISHED[layout])
    return plan if backbone is None else replace(plan, backbone=backbone)


def read_plan(config: str | Path) -> Plan:
    r"""Read a plan by the name of one that comes with the package, or from a .toml file.

    Parameters
    ----------
    config : str or path
        Name or file.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = 'backbone = "bert"', "[training]", "epochs = 3", "groupdro.adjustment = 1.0"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "own.toml"
    ...     _ = path.write_text("\n".join(lines))
    ...     plan = read_plan(path)
    >>> plan.training["erm"].epochs, plan.training["groupdro"].adjustment
    (3, 1.0)
    """
    name, contents = _contents(config)
    _refuse_unknown(contents, {f.name for f in fields(Plan)} - {"name"}, name)
    if "backbone" not in contents or "training" not in contents:
        raise ValueError(f"plan {name} needs 'backbone' and [training].")
    inputs = _section(contents, "inputs", name)
    return Plan(
        name, str(contents["backbone"]), _training(contents, name), _heads(contents, name), inputs
    )


def read_heads(config: str | Path) -> HeadGrid:
    """Read the [heads] of a plan.

    Parameters
    ----------
    config : str or path
        Name or file.

    Returns
    -------
    HeadGrid
    """
    name, contents = _contents(config)
    return _heads(contents, name)


def _contents(config: str | Path) -> tuple[str, dict[str, Any]]:
    path: Any = Path(config)
    if str(config) in plan_names():
        path = files("isrlearn.reproduce").joinpath("configs", f"{config}.toml")
    elif not path.is_file():
        raise ValueError(
            f"config {str(config)!r} is neither a .toml file nor one of {', '.join(plan_names())}."
        )
    try:
        return path.name.removesuffix(".toml"), tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error


def _training(contents: dict[str, Any], where: str) -> dict[str, TrainingSettings]:
    training = _section(contents, "training", where)
    own = {objective: _section(training, objective, where) for objective in OBJECTIVES}
    common = {k: v for k, v in training.items() if k not in OBJECTIVES}
    allowed = {f.name for f in fields(TrainingSettings)} - {"objective", "seed"}
    for section in (common, *own.values()):
        _refuse_unknown(section, allowed, where)
    return {
        objective: TrainingSettings(objective=objective, **{**common, **settings})
        for objective, settings in own.items()
    }


def _heads(contents: dict[str, Any], where: str) -> HeadGrid:
    heads = _section(contents, "heads", where)
    _refuse_unknown(heads, {f.name for f in fields(HeadGrid)}, where)
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in heads.items()}
    return HeadGrid(**known)


def _section(contents: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    section = contents.get(name, {})
    if not isinstance(section, dict):
        raise ValueError(f"plan {where}: {name} must be a table, [{name}], not {section!r}.")
    return section


def _refuse_unknown(section: dict[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(section) - allowed)
    if unknown:
        raise ValueError(
            f"{where} has {unknown[0]!r}, which is none of {', '.join(sorted(allowed))}."
        )
