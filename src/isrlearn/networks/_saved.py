"""A trained network on disk: weights as safetensors, and a card that says what they belong to."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from isrlearn._files import write_whole
from isrlearn.exceptions import TrainingError
from isrlearn.networks._backbones import Backbone, load_backbone
from isrlearn.networks._checkpoints import load_tensors
from isrlearn.networks._training import WEIGHTS

CARD: Final = "network.json"
PROTOCOL: Final = 1


@dataclass(frozen=True)
class NetworkCard:
    """What is needed to build a network again.

    Parameters
    ----------
    backbone : str
        As in `load_backbone`.
    classes, environments : tuple of str
        Names, in the order of their numbers.
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

    def build(self, seed: int = 0) -> Backbone:
        """Return the network with its first weights."""
        return load_backbone(
            self.backbone,
            len(self.classes),
            seed=seed,
            inputs=self.inputs,
        )

    def save(self, folder: Path, *, replacing: bool = False) -> None:
        """Write the card; one of another network is refused, unless it is to be replaced."""
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / CARD).exists() and not replacing and read_card(folder) != self:
            raise TrainingError(
                f"{folder} holds another network (see {CARD}): name another folder, or remove this "
                "one."
            )
        text = json.dumps({"protocol": PROTOCOL, **asdict(self)}, indent=1)
        write_whole(folder / CARD, lambda path: path.write_text(text, encoding="utf-8"))


def load_network(folder: str | Path) -> tuple[Backbone, NetworkCard]:
    r"""Return a network that `isrlearn train` or `isrlearn repair` wrote.

    Parameters
    ----------
    folder : path
        Holds ``network.json`` and ``model.safetensors``.

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
    ...     backbone, found = load_network("run")
    >>> found == card, backbone.model.out_features
    (True, 2)
    """
    folder = Path(folder)
    card = read_card(folder)
    if not (folder / WEIGHTS).exists():
        raise TrainingError(f"{folder} has no {WEIGHTS}: its training has not come to an epoch.")
    backbone = card.build()
    weights = load_tensors(folder / WEIGHTS)[0]
    try:
        backbone.model.load_state_dict(weights)
    except RuntimeError as error:
        raise TrainingError(
            f"{folder / WEIGHTS} does not fit the backbone {card.backbone!r}; it may have changed "
            f"since ({str(error).splitlines()[0]})."
        ) from error
    return backbone, card


def read_card(folder: Path) -> NetworkCard:
    """Read the card of a network."""
    try:
        fields = json.loads((folder / CARD).read_text(encoding="utf-8"))
        protocol = fields.pop("protocol")
        known: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()
        }
        card = NetworkCard(**known)
    except FileNotFoundError as error:
        raise TrainingError(f"{folder} has no {CARD}: it is not a network of isrlearn.") from error
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise TrainingError(f"{folder / CARD} is damaged ({error!r}).") from error
    if protocol != PROTOCOL:
        raise TrainingError(f"{folder} has protocol {protocol!r}; this version reads {PROTOCOL}.")
    return card
