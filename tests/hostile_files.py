"""Files that were made to harm: pickles in disguise, bombs, and claims with nothing behind."""

import io
import json
import os
import pickle
import sqlite3
import struct
import zipfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np

ARRAYS = {
    "features": np.arange(12.0).reshape(6, 2),
    "labels": np.array([0, 1, 0, 1, 0, 1]),
    "environments": np.array([0, 0, 1, 1, -1, 0]),
    "split": np.array([0, 0, 1, 1, 2, 2]),
}


class Payload:
    """What leaves a mark if anyone unpickles it."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def pickled(mark):
    return pickle.dumps(Payload(mark))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_header(text, version=1, claimed=None):
    """Return the head of an npy file with any text for a header."""
    data = text.encode()
    length = len(data) if claimed is None else claimed
    return (
        b"\x93NUMPY"
        + bytes([version, 0])
        + struct.pack("<H" if version == 1 else "<I", length)
        + data
    )


def header(shape, descr="<f8"):
    return npy_header(str({"descr": descr, "fortran_order": False, "shape": shape}) + "\n")


def npz(**members):
    """Return an npz file of the usual arrays, some replaced by bytes; None leaves one out."""
    file = io.BytesIO()
    contents = {f"{name}.npy": npy(array) for name, array in ARRAYS.items()}
    contents |= {f"{name}.npy": data for name, data in members.items()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            if data is not None:
                archive.writestr(name, data)
    return file.getvalue()


def renamed(old, new):
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(npz())) as source, zipfile.ZipFile(file, "w") as archive:
        for name in source.namelist():
            archive.writestr(new if name == old else name, source.read(name))
    return file.getvalue()


@cache
def zeros_deflated(n_bytes, first=b""):
    """Return a deflated stream of `first` and zeros, made at once whatever its length."""
    block = 2**20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    body = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = packer.compress(bytes(n_bytes % block)) + packer.flush()
    return head + body * (n_bytes // block) + rest


def raw_zip(members, *, overlapping=False, flags=0, method=8):
    """Return a zip file of (name, packed bytes, claimed size): nothing in it needs to be true."""
    data, directory, place = bytearray(), bytearray(), 0
    for name, packed, size, *checksum in members:
        fields = (20, flags, method, 0, 0, *(checksum or [0]), len(packed), size, len(name), 0)
        local = b"PK\3\4" + struct.pack("<5H3I2H", *fields) + name.encode() + packed
        if not (overlapping and data):
            place = len(data)
            data += local
        directory += b"PK\1\2" + struct.pack("<H5H3I5H2I", 20, *fields[:-1], 0, 0, 0, 0, 0, place)
        directory += name.encode()
    n = min(len(members), 65535)
    end = struct.pack("<4H2IH", 0, 0, n, n, len(directory), len(data), 0)
    return bytes(data + directory) + b"PK\5\6" + end


def bomb(n_bytes=2**33 // 2 - 2**20, names=("features",)):
    rows = n_bytes // 8
    head = header((rows, 1))
    packed = zeros_deflated(rows * 8, head)
    return raw_zip([(f"{name}.npy", packed, len(head) + rows * 8) for name in names])


def small_claim_bomb():
    """A stream of gigabytes that claims to be the usual array."""
    data = npy(ARRAYS["features"])
    members = [("features.npy", zeros_deflated(2**31, data), len(data), zlib.crc32(data))]
    for name in ("labels", "environments"):
        own = npy(ARRAYS[name])
        members.append((f"{name}.npy", zeros_deflated(0, own), len(own), zlib.crc32(own)))
    return raw_zip(members)


def many_members(n):
    return raw_zip([(f"a{i}.npy", b"\3\0", 0) for i in range(n)])


def overlapping():
    packed = zeros_deflated(2**22)
    return raw_zip([(f"a{i}.npy", packed, 2**22) for i in range(300)], overlapping=True)


def safetensors(described, body=b"", length=None):
    text = described if isinstance(described, bytes) else json.dumps(described).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def tensor(shape, offsets, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def honest_tensors():
    from safetensors.numpy import save

    return save(ARRAYS)


def parquet(table, **settings):
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table, file, **settings)
    return file.getvalue()


def feature_folder(folder, *, shard=None, name=None, rows=None):
    """Write a folder of features whose shard, its name or its count of rows is another.

    The manifest is sealed again: whoever means harm does that, too.
    """
    import hashlib

    from isrlearn._seal import write_sealed
    from isrlearn.io import Features, FeatureWriter

    with FeatureWriter(folder, {"network": "a"}) as writer:
        writer.add(Features(**ARRAYS))
    path = folder / "manifest.json"
    text = path.read_text()
    manifest = json.loads(text)
    (own,) = manifest["shards"]
    if shard is not None:
        (folder / own["name"]).write_bytes(shard)
        text = text.replace(own["sha256"], hashlib.sha256(shard).hexdigest())
    manifest = json.loads(text)
    if name is not None:
        manifest["shards"][0]["name"] = name
    if rows is not None:
        manifest["shards"][0]["rows"] = rows
    write_sealed(path, {k: v for k, v in manifest.items() if k not in ("seal", "sealed")})
    return folder


def hot_journal(path, victim):
    """Write a journal beside a store that SQLite plays back, and then deletes a file it names."""
    content = path.read_bytes()
    size = int.from_bytes(content[16:18], "big")
    page = content[:size]
    magic = bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">5I", 1, 0, len(content) // size, 512, size)
    checksum = sum(page[i] for i in range(size - 200, 0, -200))
    record = struct.pack(">I", 1) + page + struct.pack(">I", checksum)
    name = os.fsencode(victim)
    end = struct.pack(">I", 2**30 // size + 1) + name
    end += struct.pack(">2I", len(name), sum(name)) + magic
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(head.ljust(512, b"\0") + record + end)
    return journal


def store(folder, *statements):
    """Write a store of benchmark results after these statements."""
    from isrlearn.benchmark import Store

    path = folder / "s.sqlite"
    Store(path).create()
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def tar(folder, change):
    """Write a tar file of Waterbirds whose table's header was changed."""
    import tarfile

    data = b"img_filename,y,place,split\n"
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("birds/metadata.csv")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    raw = bytearray(file.getvalue())
    change(raw)
    raw[148:156] = b" " * 8
    raw[148:156] = f"{sum(raw[:512]):06o}\0 ".encode()
    path = Path(folder) / "birds.tar"
    path.write_bytes(raw)
    return path
