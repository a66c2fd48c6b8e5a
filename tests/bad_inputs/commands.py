"""Mistakes on the command line: each is one line on standard error and exit code 2."""

import shlex

import numpy as np
from command_support import snapshot

from bad_inputs.files import GOOD, write_csv
from bad_inputs.running import Case
from bad_inputs.stores import bird_model, small_model
from isrlearn.cli import main

COLUMNS = "--label kind --environment site"


def write_birds(folder, n=60):
    """A table that a model can be fitted on."""
    random = np.random.default_rng(0)
    kind, site = np.arange(n) % 2, np.arange(n) // 2 % 2
    size = random.normal(size=n) + kind + 3 * site
    rows = [
        [f"{s:.3f}", ("red", "blue")[k], ("north", "south")[e], ("gull", "tern")[k]]
        for s, k, e in zip(size, kind, site, strict=True)
    ]
    return write_csv(folder / "birds.csv", [GOOD[0], *rows])


def command(wrong, says, words, prepare=None, theirs=False):
    """Return the case of a command that is called in a folder with a table of birds."""

    def make(folder):
        write_birds(folder)
        if prepare is not None:
            prepare(folder)
        before = snapshot(folder)
        try:
            main(shlex.split(words))
        finally:
            if snapshot(folder) != before:
                raise AssertionError(f"isrlearn {words} left something behind")

    return Case(f"{wrong}: `isrlearn {words}`", make, says, theirs=theirs)


def with_file(name, text="mine"):
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def with_model(folder):
    small_model().save(folder / "m.safetensors")


def with_bird_model(folder):
    bird_model().save(folder / "m.safetensors")


def with_network(folder):
    (folder / "net").mkdir()
    (folder / "net" / "network.json").write_text("mine", encoding="utf-8")


def with_one_site(folder):
    write_csv(folder / "birds.csv", [GOOD[0], *[[*row[:2], "north", row[3]] for row in GOOD[1:]]])


def with_a_gap(folder):
    rows = (folder / "birds.csv").read_text(encoding="utf-8").splitlines()
    rows[5] = f",{rows[5].partition(',')[2]}"
    (folder / "birds.csv").write_text("\n".join(rows), encoding="utf-8")


def with_a_giant(folder):
    rows = (folder / "birds.csv").read_text(encoding="utf-8").splitlines()
    rows[5] = f"1e300,{rows[5].partition(',')[2]}"
    (folder / "birds.csv").write_text("\n".join(rows), encoding="utf-8")


FIT = f"fit birds.csv {COLUMNS}"
COMMANDS = [
    command("a command that is not there", "no-such", "no-such", theirs=True),
    command(
        "an option that is not there",
        "--no-such",
        f"{FIT} --out m.safetensors --no-such",
        theirs=True,
    ),
    command("an option without its value", "--label", "diagnose birds.csv --label", theirs=True),
    command("no file named", "is missing: see --help", f"compare {COLUMNS}", theirs=True),
    command("no place to write to", "--out.* is missing", FIT, theirs=True),
    command(
        "a file that is not there", "gulls.csv does not exist", f"diagnose gulls.csv {COLUMNS}"
    ),
    command(
        "a column that is not there",
        "no column 'kid' .*did you mean 'kind'",
        "diagnose birds.csv --label kid --environment site",
    ),
    command(
        "no label named", "label must name the column", "diagnose birds.csv --environment site"
    ),
    command("no environment named", "environment must name", "diagnose birds.csv --label kind"),
    command(
        "one environment only",
        "one environment only, 'north'",
        f"diagnose birds.csv {COLUMNS}",
        with_one_site,
    ),
    command(
        "missing values", "missing.*size.*--impute median", f"{FIT} --out m.safetensors", with_a_gap
    ),
    command(
        "a rule that is not there", "best", f"{FIT} --out m.safetensors --rule best", theirs=True
    ),
    command("a model of another ending", "must end in .safetensors", f"{FIT} --out m.pkl"),
    command("a model without a name", "must have a name before", f"{FIT} --out .safetensors"),
    command(
        "features near the largest float",
        r"X is so large \(up to 1e\+300 in column\(s\) \['size'\]",
        f"{FIT} --out m.safetensors",
        with_a_giant,
    ),
    command(
        "a model that is there already",
        "m.safetensors exists: name another with --out, or add --force",
        f"{FIT} --out m.safetensors",
        with_file("m.safetensors"),
    ),
    command(
        "a folder in the place of a file",
        "is a folder: name a file",
        f"{FIT} --out m.safetensors --force",
        lambda folder: (folder / "m.safetensors").mkdir(),
    ),
    command(
        "a file in the place of a folder",
        "is a file; name a folder",
        f"{FIT} --out notes/m.safetensors",
        with_file("notes"),
    ),
    command(
        "rows in the place of a model",
        "birds.csv is not a model: first the model, then",
        "predict birds.csv birds.csv --out p.csv",
    ),
    command(
        "a model that is not there",
        "is not there: name a model",
        "predict none.safetensors birds.csv --out p.csv",
    ),
    command(
        "a table for a model of arrays",
        "birds.csv",
        "predict m.safetensors birds.csv --out p.csv",
        with_model,
    ),
    command(
        "a column to keep that is not there",
        "no column 'sight' .named as keep.: did you mean 'site'",
        "predict m.safetensors birds.csv --out p.csv --keep sight",
        with_bird_model,
    ),
    command(
        "an age for an environment",
        "environment column 'size' holds .* bin them first",
        "diagnose birds.csv --label kind --environment size",
    ),
    command(
        "predictions of another ending",
        "must end in .csv",
        "predict m.safetensors birds.csv --out p.txt",
        with_model,
    ),
    command(
        "predictions in the place of the rows",
        "--out birds.csv would overwrite birds.csv, which is read: name another",
        "predict m.safetensors birds.csv --out birds.csv --force",
        with_model,
    ),
    command(
        "a model in the place of the rows",
        "--out rows.safetensors would overwrite rows.safetensors, which is read: name another",
        "fit rows.safetensors --out ./rows.safetensors --force",
        with_file("rows.safetensors"),
    ),
    command(
        "a repaired network in the place of the network",
        "--out net/network.json would overwrite net/network.json, which is read: name another",
        "repair net --data birds.csv --out net --force",
        with_network,
    ),
    command(
        "a method that is not known",
        "method 'magic' is not known: choose",
        f"compare birds.csv {COLUMNS} --methods magic",
    ),
    command(
        "a split that is not there",
        "no split.*--test random",
        f"compare birds.csv {COLUMNS} --test split",
    ),
    command("no seeds", "--seeds", f"compare birds.csv {COLUMNS} --seeds 0"),
    command("seeds in words", "--seeds", f"compare birds.csv {COLUMNS} --seeds many"),
    command("a result that is not there", "nowhere", "report nowhere --out page.html"),
    command(
        "words for a result",
        "result.json",
        "report result.json --out page.html",
        with_file("result.json", "some words"),
    ),
    command("no store of results", "no store", "bench table --store nowhere.sqlite"),
    command("an example that is not there", "'9' must be one of", "bench run --examples 9"),
    command("nothing to export to", "--csv", "bench export --store nowhere.sqlite"),
]
