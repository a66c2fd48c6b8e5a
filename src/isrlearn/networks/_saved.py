"""A trained network on disk: weights as safetensors, and a card that says what they belong to."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from isrlearn._seal import read_sealed, write_sealed
from isrlearn.display import brief
from isrlearn.exceptions import TrainingError
from isrlearn.networks._backbones import Backbone, is_own_code, load_backbone
from isrlearn.networks._checkpoints import Tensors, load_tensors
from isrlearn.networks._inputs import refuse_settings
from isrlearn.networks._training import WEIGHTS

CARD: Final = "network.json"
PROTOCOL: Final = 2
"""2: sealed. 1 is read as well."""
MOST_CLASSES: Final = 2**15


@dataclass(frozen=True)
class NetworkCard:
    """What is needed to build a network again.

    Parameters
    ----------
    backbone : str
        As in `load_backbone`.
    classes, environments : tuple of str
        Names, in the order of their numbers. Classes are different, at most 32 768.
    inputs : dict
        As in `load_backbone`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> birds, places = ("landbird", "waterbird"), ("land", "water")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     NetworkCard("resnet50", birds, places, {"size": 128}).save(Path(folder))
    ...     print([path.name for path in Path(folder).iterdir()])
    ['network.json']
    """

    backbone: str
    classes: tuple[str, ...]
    environments: tuple[str, ...]
    inputs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _refuse_classes(self.classes)

    def build(self, seed: int = 0) -> Backbone:
        """Return the network with its first weights."""
        return load_backbone(
            self.backbone,
            len(self.classes),
            seed=seed,
            inputs=self.inputs,
        )

    def digest(self) -> str:
        """Return a hash of the card, by which weights say that they belong to it."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def save(self, folder: Path, *, replacing: bool = False) -> None:
        """Write the card; one of another network is refused, unless it is to be replaced."""
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / CARD).exists() and not replacing and read_card(folder) != self:
            raise TrainingError(
                f"{folder} holds another network (see {CARD}): name another folder, or remove this "
                "one."
            )
        write_sealed(folder / CARD, {"protocol": PROTOCOL, **asdict(self)})


def load_network(
    folder: str | Path, *, trusted: Sequence[str] = ()
) -> tuple[Backbone, NetworkCard]:
    r"""Return a network that `isrlearn train` or `isrlearn repair` wrote.

    Parameters
    ----------
    folder : path
        Holds ``network.json`` and ``model.safetensors``.
    trusted : sequence of str, default=()
        Functions that the card may name as its backbone, such as ``my_module:factory``. Importing
        them runs their code, so none is imported because a file says so.

    Returns
    -------
    backbone : Backbone
    card : NetworkCard

    Examples
    --------
    >>> import contextlib, tempfile
    >>> from pathlib import Path
    >>> from safetensors.torch import save_file
    >>> code = "import torch\ndef small(n_classes):\n    return torch.nn.Linear(4, n_classes)\n"
    >>> card = NetworkCard("saved_networks:small", ("cat", "dog"), ("day", "night"))
    >>> with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    ...     _ = Path("saved_networks.py").write_text(code)
    ...     card.save(Path("run"))
    ...     save_file(card.build().model.state_dict(), "run/model.safetensors")
    ...     backbone, found = load_network("run", trusted=["saved_networks:small"])
    >>> found == card, backbone.model.out_features
    (True, 2)
    """
    folder = Path(folder)
    card = read_card(folder)
    if not (folder / WEIGHTS).exists():
        raise TrainingError(f"{folder} has no {WEIGHTS}: its training has not come to an epoch.")
    if is_own_code(card.backbone) and card.backbone not in trusted:
        raise TrainingError(
            f"{folder} names code to be imported, {card.backbone!r:.100}: if you trust it, load it "
            f"with trusted=[{card.backbone!r:.100}], or --trust in a command."
        )
    weights, notes = load_tensors(folder / WEIGHTS)
    if notes.get("card", card.digest()) != card.digest():
        raise TrainingError(
            f"{folder / WEIGHTS} does not belong to {CARD}: one of the two was replaced, perhaps "
            "by a run that was killed. Write the network again."
        )
    _refuse_other_classes(folder, card, weights)
    backbone = card.build()
    try:
        backbone.model.load_state_dict(weights)
    except RuntimeError as error:
        raise TrainingError(
            f"{folder / WEIGHTS} does not fit the backbone {card.backbone!r}; it may have changed "
            f"since ({str(error).splitlines()[0]})."
        ) from error
    return backbone, card


def _refuse_other_classes(folder: Path, card: NetworkCard, weights: Tensors) -> None:
    """Compare classes with the weights: a layer of one output per class is built for them."""
    n_classes = len(card.classes)
    if not any(t.ndim > 1 and n_classes in t.shape for t in weights.values()):
        raise TrainingError(
            f"{folder / WEIGHTS} does not belong to {CARD}, which has {n_classes} classes: no "
            "layer has as many outputs. Write the network again."
        )


def read_card(folder: Path) -> NetworkCard:
    """Read the card of a network."""
    try:
        fields = read_sealed(folder / CARD)
        _check_protocol(folder, fields.pop("protocol"), fields.pop("seal", None))
        return _card(fields)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TrainingError(f"{folder} has no {CARD}: it is not a network of isrlearn.") from error
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise TrainingError(f"{folder / CARD} is damaged ({error!r:.200}).") from error


def _check_protocol(folder: Path, protocol: Any, sealed: Any) -> None:
    if protocol not in (1, PROTOCOL):
        raise TrainingError(
            f"{folder} has protocol {protocol!r:.40}; this version reads 1 and {PROTOCOL}: install "
            "a newer isrlearn, or train it again."
        )
    if protocol == PROTOCOL and sealed is None:
        raise TrainingError(f"{folder / CARD} is damaged: it has no seal.")


def _card(fields: dict[str, Any]) -> NetworkCard:
    names = {key: fields.pop(key) for key in ("classes", "environments")}
    for key, values in names.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{key} is no list of names")
    fields |= {key: tuple(values) for key, values in names.items()}
    card = NetworkCard(**fields)
    if not isinstance(card.backbone, str) or not isinstance(card.inputs, dict):
        raise ValueError("backbone is no name, or inputs are no object")
    if not is_own_code(card.backbone):  # which may take other inputs than ours
        refuse_settings(card.inputs)
    return card


def _refuse_classes(classes: tuple[str, ...]) -> None:
    if len(classes) > MOST_CLASSES:
        raise ValueError(f"{len(classes)} classes: a network may have {MOST_CLASSES} at most.")
    twice = next((name for name, count in Counter(classes).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"the class {brief(twice)} is named more than once: name each once.")
