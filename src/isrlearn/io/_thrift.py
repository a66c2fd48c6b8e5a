"""The compact protocol of Thrift, in which parquet files describe themselves.

It is read by hand because what pyarrow gives of this description is not safe to ask for: in
version 26 a damaged column chunk ends the process.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

Wanted: TypeAlias = Mapping[int, Any]
"""Fields that are kept, by number, with what each must be: `int`, `object` (anything), a mapping
for a struct, or a list of one mapping for a list of structs."""

DEEPEST: Final = 16
LONGEST_NUMBER: Final = 10  # bytes of 64 bits, seven in each

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


class Reader:
    """Read structs from bytes; `ValueError` where they are none.

    Parameters
    ----------
    data : bytes-like
        What is read.
    place : int, default=0
        Where to begin.
    """

    def __init__(self, data: Any, place: int = 0) -> None:
        self.data, self.place = data, place

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """Return the wanted fields of a struct by number.

        Parameters
        ----------
        wanted : mapping
            Which; the others are passed over.
        depth : int, default=0
            How many structs this one is in.
        """
        if depth > DEEPEST:
            raise ValueError("its description is nested too deep")
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = wanted.get(number)
            inner = kind[0] if isinstance(kind, list) else kind
            value = self._value(head & 15, inner if isinstance(inner, Mapping) else {}, depth)
            if kind is not None:
                if not _fits(value, kind):
                    raise ValueError("its description has a value of another type than it must be")
                found[number] = value
        return found

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        return self._element(kind, wanted, depth)

    def _element(self, kind: int, wanted: Any, depth: int) -> Any:
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == DOUBLE:
            return self._skip(8)
        if kind == BINARY:
            return self._skip(self._unsigned())
        if kind in (LIST, SET):
            return self._list(wanted, depth)
        if kind == MAP:
            return self._map(depth)
        if kind == STRUCT:
            return self.struct(wanted, depth + 1)
        raise ValueError(f"its description has a value of the unknown type {kind}")

    def _list(self, wanted: Any, depth: int) -> list[Any]:
        head = self._byte()
        size = self._unsigned() if head >> 4 == 15 else head >> 4
        if size > len(self.data) - self.place or depth > DEEPEST:
            raise ValueError(f"its description has a list of {size} values, longer than itself")
        return [self._element(head & 15, wanted, depth + 1) for _ in range(size)]

    def _map(self, depth: int) -> None:
        size = self._unsigned()
        if size == 0:
            return
        kinds = self._byte()
        if size > len(self.data) - self.place or depth > DEEPEST:
            raise ValueError(f"its description has a map of {size} values, longer than itself")
        for _ in range(size):
            self._element(kinds >> 4, {}, depth + 1)
            self._element(kinds & 15, {}, depth + 1)

    def _byte(self) -> int:
        if not 0 <= self.place < len(self.data):
            raise ValueError("its description is cut short")
        self.place += 1
        return int(self.data[self.place - 1])

    def _skip(self, n_bytes: int) -> None:
        if n_bytes > len(self.data) - self.place:
            raise ValueError("its description is cut short")
        self.place += n_bytes

    def _unsigned(self) -> int:
        result = 0
        for i in range(LONGEST_NUMBER):
            byte = self._byte()
            result |= (byte & 127) << (7 * i)
            if byte < 128:
                return result
        raise ValueError("its description has a number of more than 64 bits")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(isinstance(v, dict) for v in value)
    if isinstance(kind, Mapping):
        return isinstance(value, dict)
    return kind is object or (isinstance(value, int) and not isinstance(value, bool))
