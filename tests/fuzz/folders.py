"""Folders of features, and the layouts of published data."""

import hashlib
import io
import json

from fuzz import seeds
from fuzz.mutation import as_json, mutated, mutated_tree, safetensors_bytes, sealed_again
from fuzz.rows import consume, npz_bytes


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def features_in(source, folder):
    files = dict(seeds.feature_folder())
    manifest = json.loads(files["manifest.json"])
    for place, name in enumerate(n for n in sorted(files) if n.endswith(".safetensors")):
        if source.below(3) == 2:
            header, body = seeds.split_safetensors(files[name])
            changed = as_json(mutated_tree(header, source))
            files[name] = safetensors_bytes(changed, mutated(body, source, most=1), source)
        digest = hashlib.sha256(files[name]).hexdigest()
        if source.below(8):
            manifest = _with_digest(manifest, place, digest)
            manifest["shards"][place]["bytes"] = len(files[name])
    kind = source.below(4)
    if kind == 1:
        manifest = mutated_tree(manifest, source)
    files["manifest.json"] = as_json(manifest)
    if kind == 2:
        files["manifest.json"] = mutated(files["manifest.json"], source)
    if kind == 3 and source.below(4) == 3:
        files["manifest.json"] = source.rest()
    files["manifest.json"] = sealed_again(files["manifest.json"], source)
    write(folder, files)


def _with_digest(manifest, place, digest):
    """Put a hash in place, wherever this protocol keeps it."""
    shard = manifest["shards"][place]
    return json.loads(json.dumps(manifest).replace(shard["sha256"], digest))


def read_feature_folder(source, folder):
    from isrlearn.io import FeatureFile

    features_in(source, folder)
    FeatureFile.open(folder).read()


def read_feature_data(source, folder):
    from isrlearn.io import read_data

    features_in(source, folder)
    read_data(folder).check_for_fit()


def read_feature_chunks(source, folder):
    from isrlearn.io import open_rows

    features_in(source, folder)
    consume(open_rows(folder))


def layout(read_it, files):
    def run(source, folder):
        changed = {
            name: mutated(data, source) if source.below(2) else data for name, data in files.items()
        }
        if source.below(4) == 3:
            changed["split.npz"] = npz_bytes(source)
        write(folder, changed)
        read_it(folder)

    return run


def waterbirds(folder):
    from isrlearn.datasets import read_waterbirds

    return read_waterbirds(folder)


def celeba(folder):
    from isrlearn.datasets import read_celeba

    return read_celeba(folder)


def multinli(folder):
    from isrlearn.datasets import read_multinli

    return read_multinli(folder)


def own_table(folder):
    from isrlearn.datasets import read_table

    return read_table(folder / "rows.csv")


def any_layout(source, folder):
    layouts = ((celeba, seeds.CELEBA), (celeba, seeds.CELEBA_TEXT), (waterbirds, seeds.WATERBIRDS))
    layouts += ((own_table, seeds.TABLE),)
    return layout(*source.one_of(layouts))(source, folder)


def multinli_layout(source, folder):
    files = dict(seeds.MULTINLI)
    if source.below(2):  # then the split is looked for in an archive
        del files["metadata_random.csv"]
    return layout(multinli, files)(source, folder)


def waterbirds_tar(source, folder):
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in seeds.WATERBIRDS.items():
            member = tarfile.TarInfo(f"waterbird/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (folder / "birds.tar").write_bytes(mutated(file.getvalue()[:5120], source))
    waterbirds(folder / "birds.tar")


def frozen(source, folder):
    from isrlearn.reproduce.frozen import read_frozen

    (folder / "rows.npz").write_bytes(npz_bytes(source))
    read_frozen(folder / "rows.npz")
