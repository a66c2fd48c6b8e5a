"""The vocabulary of the commands: an option means the same, and says the same, everywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from isrlearn._cli_support import UserError

LARGEST_SEED = 2**31 - 1
STORE = Path("isrlearn-bench.sqlite")


def _whole(type_: Any, tokens: Sequence[Token]) -> int:
    value = tokens[0].value
    if not value.isdecimal() or int(value) < 1:
        option = (tokens[0].keyword or "").removeprefix("--")
        raise UserError(f"--{option} {value} must be a whole number of at least 1.")
    return int(value)


def _number(type_: Any, tokens: Sequence[Token]) -> int:
    value = tokens[0].value
    if not value.isdecimal():
        option = (tokens[0].keyword or "").removeprefix("--")
        raise UserError(f"--{option} {value} must be a whole number of at least 0.")
    return int(value)


def _wholes(type_: Any, tokens: Sequence[Token]) -> list[int]:
    return [_whole(type_, [token]) for token in tokens]


def _seed(type_: Any, tokens: Sequence[Token]) -> int:
    value = tokens[0].value
    if not value.isdecimal() or int(value) > LARGEST_SEED:
        raise UserError(f"--seed {value} must be a whole number from 0 to {LARGEST_SEED}.")
    return int(value)


# Kinds of values
Flag = Parameter(negative="", show_default=False)
Several = Parameter(consume_multiple=True, negative="")
Whole = Annotated[int | None, Parameter(converter=_whole)]
Number = Annotated[int | None, Parameter(converter=_number)]
Count = Annotated[int, Parameter(converter=_whole)]
Wholes = Annotated[
    list[int] | None, Parameter(consume_multiple=True, negative="", converter=_wholes)
]
Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]

# Options that several commands have
Data = Annotated[
    Path,
    Parameter(
        help="A .csv, .tsv, .parquet, .npz or .safetensors file, or a folder that isrlearn extract "
        "wrote."
    ),
]
Force = Annotated[bool, Flag, Parameter(help="Overwrite what is there.")]
Seed = Annotated[
    int, Parameter(converter=_seed, help="Seed of everything that is drawn at random.")
]
_SEEDS = "How many seeds; 5 means the seeds 0 to 4."
Seeds = Annotated[int, Parameter(converter=_whole, help=_SEEDS)]
SomeSeeds = Annotated[int | None, Parameter(converter=_whole, help=_SEEDS)]
Jobs = Annotated[
    int | None,
    Parameter(
        converter=_whole,
        help="Processes that compute; as many as there are cores and work for, if left out. The "
        "figures do not depend on it.",
    ),
]
Scheduler = Annotated[
    str | None,
    Parameter(
        help="Address of a Dask scheduler whose workers compute, such as tcp://10.0.0.5:8786."
    ),
]
StoreFile = Annotated[
    Path,
    Parameter(
        help="File of results; isrlearn bench run makes it, and it grows with every run.",
    ),
]
Rule = Annotated[
    Literal["worst-group", "average", "leave-one-environment-out"],
    Parameter(
        help="How a setting is chosen: by the worst group of validation rows, by their average, or "
        "by the training environments, left out one by one."
    ),
]
PlanName = Annotated[
    str | None,
    Parameter(
        help="Plan to take the settings from: a name, such as waterbirds-resnet50, or a .toml "
        "file. If left out: the one for the data."
    ),
]
BackboneName = Annotated[
    str | None,
    Parameter(
        help="Network to begin with: resnet50, clip-vit-b32, bert, minilm, efficientnet-lite0, a "
        "transformers folder, a name on the Hugging Face hub, or my_module:factory, a function "
        "that takes the number of classes."
    ),
]
Epochs = Annotated[
    int | None,
    Parameter(
        converter=_whole, help="Passes over the training rows; those of the plan if left out."
    ),
]
BatchSize = Annotated[
    int | None,
    Parameter(converter=_whole, help="Rows that go through the network together."),
]
