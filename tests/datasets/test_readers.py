"""Readers on small data in the released layouts, whole and broken."""

import csv
import tarfile

import numpy as np
import pytest

pytest.importorskip("PIL")

from PIL import Image  # noqa: E402

from isrlearn.datasets import (  # noqa: E402
    has_negation,
    read_celeba,
    read_examples,
    read_multinli,
    read_table,
    read_waterbirds,
)
from isrlearn.exceptions import DataError  # noqa: E402


def write_image(path, value, size=(20, 16)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((size[1], size[0], 3), value, dtype=np.uint8)
    Image.fromarray(pixels).save(path, quality=95)


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def waterbirds(tmp_path):
    rows = [
        {
            "img_id": i,
            "img_filename": f"00{i % 3}.Bird/bird_{i}.jpg",
            "y": i % 2,
            "split": i % 3,
            "place": (i // 2) % 2,
            "place_filename": "x.jpg",
        }
        for i in range(12)
    ]
    for row in rows:
        write_image(tmp_path / row["img_filename"], 20 * row["img_id"])
    write_csv(tmp_path / "metadata.csv", rows)
    return tmp_path


@pytest.fixture
def celeba(tmp_path):
    names = [f"{i:06}.jpg" for i in range(8)]
    rows = [
        {"image_id": n, "Bald": -1, "Blond_Hair": 1 - 2 * (i % 2), "Male": 2 * (i // 4) - 1}
        for i, n in enumerate(names)
    ]
    write_csv(tmp_path / "list_attr_celeba.csv", rows)
    splits = [{"image_id": n, "partition": i % 3} for i, n in enumerate(names)]
    write_csv(tmp_path / "list_eval_partition.csv", splits[::-1])  # another order
    for i, name in enumerate(names):
        write_image(tmp_path / "img_align_celeba" / name, 10 * i)
    return tmp_path


MULTINLI = [
    ("It rains.", "It does not rain.", "contradiction"),
    ("It rains.", "Nobody is dry.", "neutral"),
    ("It rains.", "Water falls.", "entailment"),
    ("It rains.", "It is dry.", "-"),
    ('He said "no" and left', "He said nothing.", "contradiction"),
]


def write_tsv(path, rows, names=("index", "sentence1", "sentence2", "gold_label")):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(names)] + ["\t".join([str(i), *row]) for i, row in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class TestWaterbirds:
    def test_rows(self, waterbirds):
        examples = read_waterbirds(waterbirds)
        assert len(examples) == 12
        assert examples.labels.tolist() == [i % 2 for i in range(12)]
        assert examples.environments.tolist() == [(i // 2) % 2 for i in range(12)]
        assert examples.split.tolist() == [i % 3 for i in range(12)]
        assert np.abs(np.asarray(examples.image(7)).astype(int) - 140).max() <= 3
        assert sum(table.sum() for table in examples.counts().values()) == 12
        train = examples.take("train")
        assert len(train) == 4
        assert np.asarray(train.image(1)).mean() == pytest.approx(60, abs=3)

    def test_found_below_and_by_its_layout(self, waterbirds, tmp_path_factory):
        above = tmp_path_factory.mktemp("above")
        (above / "waterbirds").symlink_to(waterbirds)
        assert read_examples(above).digest() == read_examples(waterbirds).digest()
        assert read_examples(waterbirds).layout == "waterbirds"

    def test_a_tar_is_read_without_unpacking(self, waterbirds, tmp_path_factory):
        folder = tmp_path_factory.mktemp("packed")
        with tarfile.open(folder / "birds.tar", "w") as archive:
            archive.add(waterbirds, arcname="some/birds")
        packed, unpacked = read_examples(folder), read_waterbirds(waterbirds)
        assert packed.digest() == unpacked.digest()
        assert read_examples(folder / "birds.tar").digest() == unpacked.digest()
        for row in (0, 5, 11):
            np.testing.assert_array_equal(packed.image(row), unpacked.image(row))

    def test_nothing_there_names_address_and_folder(self, tmp_path):
        with pytest.raises(DataError, match=r"https://nlp.stanford.edu.*metadata\.csv"):
            read_waterbirds(tmp_path)
        with pytest.raises(DataError, match="no layout that we know"):
            read_examples(tmp_path)
        with pytest.raises(DataError, match="is not there"):
            read_examples(tmp_path / "nowhere")

    def test_a_missing_image_is_named(self, waterbirds):
        (waterbirds / "001.Bird/bird_4.jpg").unlink()
        with pytest.raises(DataError, match=r"1 of 12 images.*bird_4\.jpg"):
            read_waterbirds(waterbirds)

    def test_a_truncated_image_is_named(self, waterbirds):
        path = waterbirds / "001.Bird/bird_4.jpg"
        path.write_bytes(path.read_bytes()[:-300])
        examples = read_waterbirds(waterbirds)
        with pytest.raises(DataError, match=r"bird_4\.jpg is not a whole image"):
            examples.image(4)
        path.write_text("not an image")
        with pytest.raises(DataError, match=r"bird_4\.jpg is not a whole image"):
            examples.image(4)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("bird_2.jpg,0,", "bird_2.jpg,7,", "line 4: y is '7', which must be one of 0, 1"),
            ("img_filename", "file", "no column 'img_filename'"),
            (",x.jpg\n", ",x.jpg,extra\n", "line 2 has 7 fields"),
            ("bird_3.jpg,1,0,", "bird_3.jpg,1,5,", "split is '5'"),
        ],
    )
    def test_a_broken_table_is_named(self, waterbirds, old, new, message):
        path = waterbirds / "metadata.csv"
        text = path.read_text().replace("\r\n", "\n")
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(DataError, match=message):
            read_waterbirds(waterbirds)

    def test_a_split_without_rows(self, waterbirds):
        examples = read_waterbirds(waterbirds).take(rows=[0, 3])
        with pytest.raises(DataError, match="no row of the waterbirds table is in the test split"):
            examples.take("test")
        with pytest.raises(ValueError, match="split='dev' must be one of"):
            examples.take("dev")


class TestCelebA:
    def test_rows(self, celeba):
        examples = read_examples(celeba)
        assert examples.layout == "celeba"
        assert examples.labels.tolist() == [1, 0] * 4
        assert examples.environments.tolist() == [0] * 4 + [1] * 4
        assert examples.split.tolist() == [i % 3 for i in range(8)]

    def test_the_text_lists_of_the_release(self, celeba):
        expected = read_celeba(celeba).digest()
        for name in ("list_attr_celeba", "list_eval_partition"):
            lines = (celeba / f"{name}.csv").read_text().splitlines()
            body = [line.replace(",", "  ") for line in lines]
            text = [str(len(body) - 1), body[0].removeprefix("image_id"), *body[1:]]
            text = text if "attr" in name else body[1:]
            (celeba / f"{name}.txt").write_text("\n".join(text) + "\n")
            (celeba / f"{name}.csv").unlink()
        assert read_celeba(celeba).digest() == expected

    def test_what_is_missing_is_named(self, celeba, tmp_path_factory):
        with pytest.raises(DataError, match="mmlab"):
            read_celeba(tmp_path_factory.mktemp("empty"))
        partition = celeba / "list_eval_partition.csv"
        partition.write_text("image_id,partition\n000001.jpg,0\n")
        with pytest.raises(DataError, match="no split for 7 images"):
            read_celeba(celeba)
        partition.unlink()
        with pytest.raises(DataError, match="list_eval_partition"):
            read_celeba(celeba)


class TestMultiNLI:
    def test_the_published_layout(self, tmp_path):
        home = tmp_path / "glue_data" / "MNLI"
        write_tsv(home / "train.tsv", MULTINLI[:2])
        write_tsv(home / "dev_matched.tsv", MULTINLI[2:4])
        write_tsv(home / "dev_mismatched.tsv", MULTINLI[4:])
        rows = [(0, 0, 0), (2, 1, 1), (1, 0, 2), (0, 1, 0)]
        names = ("gold_label", "sentence2_has_negation", "split")
        write_csv(
            tmp_path / "data/metadata_random.csv", [dict(zip(names, r, strict=False)) for r in rows]
        )
        examples = read_examples(tmp_path)
        assert examples.labels.tolist() == [0, 2, 1, 0]
        assert examples.environments.tolist() == [0, 1, 0, 1]
        assert examples.split.tolist() == [0, 1, 2, 0]
        assert examples.inputs[0] == ("It rains.", "It does not rain.")
        assert examples.inputs[3][0] == 'He said "no" and left'
        extended = read_multinli(tmp_path, negation="extended")
        assert extended.environments.tolist() == [1, 1, 0, 1]

    def test_the_split_may_be_drawn(self, tmp_path):
        write_tsv(
            tmp_path / "multinli_some.tsv",
            MULTINLI[:3] * 40,
            ("index", "premise", "hypothesis", "gold_label"),
        )
        examples = read_multinli(tmp_path)
        np.testing.assert_array_equal(np.bincount(examples.split), [60, 24, 36])
        assert examples.digest() == read_multinli(tmp_path).digest()

    def test_broken_ones(self, tmp_path):
        with pytest.raises(DataError, match="has no text of MultiNLI"):
            read_multinli(tmp_path)
        write_tsv(tmp_path / "train.tsv", [*MULTINLI, ("a", "b", "perhaps")])
        with pytest.raises(DataError, match="line 7: gold_label is 'perhaps'"):
            read_multinli(tmp_path)
        write_tsv(tmp_path / "train.tsv", MULTINLI)
        write_csv(tmp_path / "metadata_random.csv", [{"gold_label": 0, "split": 0}])
        with pytest.raises(DataError, match="has 1 rows and the text has 4"):
            read_multinli(tmp_path)
        with pytest.raises(ValueError, match="negation='all' must be"):
            read_multinli(tmp_path, negation="all")

    @pytest.mark.parametrize(
        ("text", "published", "extended"),
        [
            ("No.", True, True),
            ("I know nobody", True, True),
            ("Norway is notable", False, False),
            ("It isn't", False, True),
            ("They dont", False, True),
            ("I cannot, nor can you", False, True),
            ("important antonym", False, False),
            ("It\u2019s not", False, True),
        ],
    )
    def test_negation(self, text, published, extended):
        assert has_negation(text) == published
        assert has_negation(text, "extended") == extended


class TestTable:
    def write(self, folder, rows):
        write_csv(folder / "mine.csv", rows)
        return folder / "mine.csv"

    def test_images(self, tmp_path):
        rows = [
            {"path": f"a/{i}.png", "label": "cat" if i % 2 else "dog", "environment": e, "split": s}
            for i, (e, s) in enumerate([("x", "train"), ("", "val"), ("y", "test"), ("10", "0")])
        ]
        for row in rows:
            write_image(tmp_path / row["path"], 100)
        examples = read_examples(self.write(tmp_path, rows))
        assert examples.classes == ("cat", "dog")
        assert examples.environment_names == ("10", "x", "y")
        assert examples.environments.tolist() == [1, -1, 2, 0]
        assert examples.split.tolist() == [0, 1, 2, 0]

    def test_texts_and_pairs(self, tmp_path):
        row = {"text": "a", "label": 2, "environment": 1, "split": 0}
        assert read_table(self.write(tmp_path, [row])).inputs == ["a"]
        pair = read_table(self.write(tmp_path, [{**row, "text2": "b"}]))
        assert pair.inputs == [("a", "b")]
        assert pair.kind == "text"
        with pytest.raises(TypeError, match="texts, not images"):
            pair.image(0)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"label": ""}, "line 2: label is empty"),
            ({"path": "../secret.png"}, "which must be a file below"),
            ({"path": "/etc/passwd"}, "which must be a file below"),
            ({"path": "gone.png"}, "1 of 1 images of the table are not there"),
            ({"split": "later"}, "split is 'later'"),
        ],
    )
    def test_broken_rows(self, tmp_path, change, message):
        row = {"path": "a.png", "label": "c", "environment": "e", "split": "train"} | change
        with pytest.raises(DataError, match=message):
            read_table(self.write(tmp_path, [row]))

    def test_wrong_columns_and_files(self, tmp_path):
        with pytest.raises(DataError, match="neither a column 'path'"):
            read_table(self.write(tmp_path, [{"label": 1}]))
        (tmp_path / "latin.csv").write_bytes("text\nb\xf6se\n".encode("latin-1"))
        with pytest.raises(DataError, match="not UTF-8"):
            read_table(tmp_path / "latin.csv")
        (tmp_path / "empty.csv").write_text("text,label,environment,split\n")
        with pytest.raises(DataError, match="no rows"):
            read_table(tmp_path / "empty.csv")
        with pytest.raises(ValueError, match="layout='imagenet' must be"):
            read_examples(tmp_path, "imagenet")


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "a/../../x.jpg"])
def test_no_table_reads_outside_its_folder(waterbirds, name):
    table = waterbirds / "metadata.csv"
    table.write_text(table.read_text().replace("002.Bird/bird_2.jpg", name))
    with pytest.raises(DataError, match="must be a file below"):
        read_waterbirds(waterbirds)


def test_names_that_look_like_numbers_are_sorted_the_same_way():
    from isrlearn.datasets._columns import encode

    assert encode(["nan", "10", "2", "inf", "b", ""])[0] == ("2", "10", "b", "inf", "nan")


def test_lines_are_those_of_the_file(tmp_path):
    lines = ["text,label,environment,split", '"two\nlines",a,e,0', "", "x,a,e,0", "y,a,e,9"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 6: split is '9'"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("text,label,label,environment,split\nx,a,b,e,0\n")
    with pytest.raises(DataError, match="'label' more than once"):
        read_table(tmp_path / "t.csv")


def test_sixteen_bits_are_scaled_not_clipped(tmp_path):
    ramp = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)
    Image.fromarray(ramp).save(tmp_path / "x.png")
    (tmp_path / "t.csv").write_text("path,label,environment,split\nx.png,0,0,0\n")
    pixels = np.asarray(read_table(tmp_path / "t.csv").image(0))
    assert len(np.unique(pixels)) == 64
    assert pixels.max() == 255


def test_a_damaged_tar_is_named(waterbirds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    with tarfile.open(folder / "birds.tar", "w") as archive:
        for path in sorted(waterbirds.rglob("*"), reverse=True):  # the table first
            archive.add(path, arcname=f"b/{path.relative_to(waterbirds)}", recursive=False)
    data = (folder / "birds.tar").read_bytes()
    (folder / "birds.tar").write_bytes(data[: len(data) // 2 + 100])
    with pytest.raises(DataError, match="not a whole tar|are not there"):
        read_examples(folder)


def test_an_image_in_two_rows_is_refused(waterbirds):
    table = waterbirds / "metadata.csv"
    table.write_text(table.read_text().replace("bird_3.jpg", "bird_0.jpg"))
    with pytest.raises(DataError, match="bird_0.jpg' in more than one row"):
        read_waterbirds(waterbirds)
