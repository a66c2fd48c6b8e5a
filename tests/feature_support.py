"""Feature files as earlier versions wrote them."""

import hashlib
import json

from safetensors.numpy import save


def write_first_protocol(folder, parts):
    """Write a shard for each of `parts`; protocol 1 does not tell the kinds of columns."""
    folder.mkdir(parents=True, exist_ok=True)
    shards = []
    for number, rows in enumerate(parts):
        data, name = save(rows.arrays()), f"shard-{number:05d}.safetensors"
        (folder / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append({"name": name, "rows": len(rows), "sha256": digest})
    manifest = {"protocol": 1, "made_of": {}, "shards": shards, "whole": True}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
