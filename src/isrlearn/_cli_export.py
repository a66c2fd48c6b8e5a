"""``isrlearn export``: a saved model for other programs."""

from pathlib import Path

from isrlearn._cli_options import Force
from isrlearn._cli_progress import working
from isrlearn._cli_support import (
    Result,
    UserError,
    all_or_nothing,
    answering,
    may_write,
    written_together,
)


@answering
def export(model: Path, /, *, out: Path, force: Force = False) -> Result:
    """Write a saved model as an ONNX graph, for runtimes without Python.

    The graph takes features, in float64 and in the order of the model, and gives label, scores and
    probabilities. Text columns must be encoded before; the names of all features are in its
    metadata.

    Example: isrlearn export model.safetensors --out model.onnx

    Parameters
    ----------
    model
        What isrlearn fit wrote.
    out
        File for the graph, ending in .onnx.
    """
    may_write(out, force, ".onnx", reads=[model])
    if model.suffix != ".safetensors":
        raise UserError(f"{model} is not a model: name the .safetensors file of isrlearn fit.")
    with working("Loading ..."):
        from isrlearn.io import LinearModel, save
    with all_or_nothing():
        fitted = LinearModel.load(model)
        with written_together(out) as (place,):
            save(fitted, place)
    names = list(fitted.schema.feature_names)
    figures = {"features": names, "classes": fitted.classes}
    text = f"Features: {len(names)}. Classes: {', '.join(map(str, fitted.classes.tolist()))}."
    return Result(figures, [text], {"model": out})
