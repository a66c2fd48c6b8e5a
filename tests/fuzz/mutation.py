"""Bytes as decisions: how a valid file is changed, so that the change lies deep inside it."""

import copy
import hashlib
import json
import re
import struct

NUMBERS = (0, 1, -1, 2, 3, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 10**12, 2**62, 2**63)
TOKENS = (
    b"NaN", b"-Infinity", b"null", b"true", b"[", b"]", b"{", b"}", b'"', b",", b":", b"\\", b"\n",
    b"\r", b"\t", b";", b"\0", b"\xff", b"\xef\xbb\xbf", b"1e999", b"-0", b"1_0", b"007", b"../x",
    b"/etc/x", b"\\ud800", b"0x1", b"[" * 3000, b"(" * 300, b"9" * 400, b"9" * 5000, b"a" * 9000,
    b"'", b"\x85", "\u2028".encode(), "\u0661".encode(), b" ", b"|O", b"<U9", b">f8", b"True",
)  # fmt: skip
ODD = (
    None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63,
    2**64, 10**12, 10**30, "", "a", "0", "x" * 300, "\x00", "\ud800", "../x", "\u202e<b>", [], {},
    [None], [[]], [0, "a"], {"a": 1}, {"": {}},
)  # fmt: skip


class Source:
    """Decisions that are read from bytes; at their end every one is the first of its kind."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def __bool__(self) -> bool:
        return self.place < len(self.data)

    def rest(self) -> bytes:
        self.place, rest = len(self.data), self.data[self.place :]
        return rest

    def take(self, n: int) -> bytes:
        self.place += n
        return self.data[self.place - n : self.place]

    def byte(self) -> int:
        return (self.take(1) or b"\0")[0]

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        if n <= 256:
            return self.byte() % max(n, 1)
        return int.from_bytes(self.take(3), "little") % n

    def one_of(self, values):
        return values[self.below(len(values))]


def mutated(data: bytes, source: Source, other: bytes = b"", most: int = 6) -> bytes:
    """Return bytes with a few changes; `other` is spliced in."""
    found = bytearray(data)
    for _ in range(source.below(most + 1)):
        if not source:
            break
        CHANGES[source.below(len(CHANGES))](found, source, other)
    return bytes(found)


def _overwrite(found, source, other):
    if found:
        found[source.below(len(found))] = source.byte()


def _flip(found, source, other):
    if found:
        found[source.below(len(found))] ^= 1 << source.below(8)


def _delete(found, source, other):
    start = source.below(len(found) + 1)
    del found[start : start + 1 + source.byte()]


def _insert(found, source, other):
    start = source.below(len(found) + 1)
    found[start:start] = source.take(1 + source.below(8))


def _duplicate(found, source, other):
    start = source.below(len(found) + 1)
    found[start:start] = found[start : start + 1 + source.byte()]


def _number(found, source, other):
    start, width = source.below(len(found) + 1), source.one_of((4, 8, 2))
    number = source.one_of(NUMBERS) % 256**width
    order = source.one_of(("little", "big"))
    found[start : start + width] = number.to_bytes(width, order)


def _truncate(found, source, other):
    del found[source.below(len(found) + 1) :]


def _splice(found, source, other):
    start, theirs = source.below(len(found) + 1), source.below(len(other) + 1)
    length = 1 + source.byte()
    found[start : start + length] = other[theirs : theirs + length]


def _digits(found, source, other):
    """Replace a run of digits."""
    start = source.below(len(found) + 1)
    while start < len(found) and not chr(found[start]).isdigit():
        start += 1
    end = start
    while end < len(found) and chr(found[end]).isdigit():
        end += 1
    found[start:end] = str(source.one_of(NUMBERS)).encode()


def _token(found, source, other):
    start = source.below(len(found) + 1)
    found[start : start + source.below(4)] = source.one_of(TOKENS)


CHANGES = (
    _overwrite, _flip, _delete, _insert, _duplicate, _number, _truncate, _splice, _digits, _token
)  # fmt: skip


def mutated_tree(tree, source: Source, most: int = 4, deepest: int = 5):
    """Return plain values, as of json, with a few of them replaced, dropped or repeated."""
    tree = copy.deepcopy(tree)
    for _ in range(source.below(most + 1)):
        if not source:
            break
        tree = _mutated_once(tree, source, deepest)
    return tree


def _mutated_once(tree, source, deepest):
    steps = source.below(deepest + 1)
    holder, key = None, None
    here = tree
    for _ in range(steps):
        if not isinstance(here, dict | list) or not here:
            break
        keys = list(here) if isinstance(here, dict) else range(len(here))
        holder, key = here, source.one_of(keys)
        here = holder[key]
    if holder is None:
        return _odd(source) if source.below(8) == 7 else _grown(tree, source)
    action = source.below(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, list):
        holder.extend(holder[key : key + 1] * (1 + source.below(3)))
    elif action == 2 and isinstance(here, int | float) and not isinstance(here, bool):
        holder[key] = source.one_of((-here, here + 1, here * 1000, float(here), str(here)))
    else:
        holder[key] = _odd(source)
    return tree


def _grown(tree, source):
    if isinstance(tree, dict):
        tree[source.one_of(("", "x", "protocol", "image", "shards"))] = _odd(source)
    return tree


def _odd(source):
    if source.below(40) == 39:
        deep = []
        for _ in range(900):
            deep = [deep]
        return deep
    return copy.deepcopy(source.one_of(ODD))


def as_json(tree) -> bytes:
    """Return json; what json cannot hold becomes text."""
    return json.dumps(tree, default=str).encode("utf-8", "surrogatepass")


SEAL = re.compile(rb"isrlearn-sha256:([0-9a-f]{64})")


def sealed_again(data: bytes, source: Source) -> bytes:
    """Return a file with the right seal, nearly always: else no change is seen behind it."""
    places = [found.span(1) for found in SEAL.finditer(data)]
    if len(places) != 1 or source.below(8) == 7:
        return data
    start, end = places[0]
    digest = hashlib.sha256(data[:start] + b"0" * 64 + data[end:]).hexdigest()
    return data[:start] + digest.encode() + data[end:]


def safetensors_bytes(header: bytes, body: bytes, source: Source) -> bytes:
    """Return a safetensors file whose length prefix fits, or nearly always."""
    claimed = len(header) if source.below(16) else source.one_of(NUMBERS) % 2**64
    return struct.pack("<Q", claimed) + header + body
