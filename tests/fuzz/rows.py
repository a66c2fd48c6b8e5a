"""Files of rows: archives of arrays, and tables."""

import io
import zipfile

from fuzz import seeds
from fuzz.mutation import as_json, mutated, mutated_tree, safetensors_bytes

TABLE = {"label": "kind", "environment": "site"}


def npz_bytes(source):
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(seeds.npz(), source)
    known = seeds.npy_members()
    names = list(known)
    file = io.BytesIO()
    method = source.one_of((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in source.one_of((("features", "labels", "environments"), ("features",), names)):
            data = known[source.one_of([name, *(n for n in names if n.startswith(name))])]
            if source.below(3) == 2:
                data = mutated(data, source, known[source.one_of(names)], most=3)
            ending = source.one_of((".npy", ".npy", ".npy", "", ".pkl"))
            archive.writestr(source.one_of(("", "", "", "", "../", "/")) + name + ending, data)
    return mutated(file.getvalue(), source, most=1) if kind == 3 else file.getvalue()


def safetensors_file(source):
    header, body = seeds.safetensors()
    kind = source.below(4)
    if kind == 0:
        return source.rest()
    if kind == 1:
        return mutated(safetensors_bytes(as_json(header), body, source), source)
    changed = as_json(mutated_tree(header, source))
    if kind == 3:
        changed = mutated(changed, source, most=2)
    return safetensors_bytes(changed, mutated(body, source, most=2), source)


def read(suffix, make, **names):
    from isrlearn.io import read_data

    def run(source, folder):
        path = folder / f"rows{suffix}"
        path.write_bytes(make(source))
        data = read_data(path, **names)
        data.check_for_fit()
        return data

    return run


def read_in_chunks(suffix, make, **names):
    from isrlearn.io import open_rows

    def run(source, folder):
        path = folder / f"rows{suffix}"
        path.write_bytes(make(source))
        consume(open_rows(path, **names))

    return run


def consume(rows):
    return rows.total(len_of)


def len_of(rows):
    return len(rows.X)


# --- tables


def csv_bytes(source):
    if source.below(4) == 0:
        return source.rest()
    text = seeds.CSV.replace(b",", source.one_of((b",", b",", b";", b"\t")))
    return mutated(text, source, seeds.CSV)


def parquet_bytes(source):
    kind = source.below(8)
    if kind == 0:
        return source.rest()
    data = source.one_of(seeds.parquets())
    if kind < 4:  # the metadata stand at the end
        length = int.from_bytes(data[-8:-4], "little")
        head, tail = data[: -8 - length], data[-8 - length : -8]
        changed = mutated(tail, source, most=3)
        return head + changed + len(changed).to_bytes(4, "little") + b"PAR1"
    return mutated(data, source, most=4)
