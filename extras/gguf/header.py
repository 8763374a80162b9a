"""The header of a GGUF file, checked before a library reads the file.

A header states counts and lengths, which a reader takes as they are. So each is compared here with
the bytes that follow it, before anything of this size is allocated. The format is that of versions
2 and 3: magic, version, counts, metadata by key, a table of tensors, padding, the tensors' data
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import ModelLoadError

Value = int | float | bool | str | tuple["Value", ...]

_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
_STRING = 8
_ARRAY = 9
_MOST_COUNT = 2**16  # of keys, and of tensors
_MOST_ELEMENTS = 2**22  # of all arrays; readers make some hundred bytes of each
_MOST_NAME = 2**10  # bytes of a key, of a tensor's name, and of a token of a vocabulary
_MOST_TEXT = 2**24  # bytes of another string, such as a chat template
_MOST_DIMENSIONS = 4
# Bytes and elements of a block, by number of the type in ggml.h; the names are those of GGML.
BLOCKS = {
    0: ("F32", 4, 1), 1: ("F16", 2, 1), 2: ("Q4_0", 18, 32), 3: ("Q4_1", 20, 32),
    6: ("Q5_0", 22, 32), 7: ("Q5_1", 24, 32), 8: ("Q8_0", 34, 32), 10: ("Q2_K", 84, 256),
    11: ("Q3_K", 110, 256), 12: ("Q4_K", 144, 256), 13: ("Q5_K", 176, 256), 14: ("Q6_K", 210, 256),
    16: ("IQ2_XXS", 66, 256), 17: ("IQ2_XS", 74, 256), 18: ("IQ3_XXS", 98, 256),
    19: ("IQ1_S", 50, 256), 20: ("IQ4_NL", 18, 32), 21: ("IQ3_S", 110, 256),
    22: ("IQ2_S", 82, 256), 23: ("IQ4_XS", 136, 256), 29: ("IQ1_M", 56, 256), 30: ("BF16", 2, 1),
    34: ("TQ1_0", 54, 256), 35: ("TQ2_0", 66, 256), 39: ("MXFP4", 17, 32), 40: ("NVFP4", 36, 64),
}  # fmt: skip
_UNREAD = {9: "Q8_1", 15: "Q8_K", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64"}


@dataclass(frozen=True)
class Tensor:
    """A tensor's place in the file; the dimensions are in the order of the file, fastest first."""

    name: str
    dimensions: tuple[int, ...]
    type_name: str
    offset: int
    num_bytes: int

    @property
    def num_elements(self) -> int:
        """Return the number of elements."""
        return math.prod(self.dimensions)


@dataclass(frozen=True)
class GgufHeader:
    """A checked header: metadata by key, and the table of tensors."""

    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]

    @property
    def architecture(self) -> str:
        """Return the name of the architecture, such as ``llama``."""
        return str(self.metadata["general.architecture"])


def read_gguf_header(path: Path) -> GgufHeader:
    """Read and check the header of a file.

    Raise ModelLoadError if this is no GGUF file, or if a count, length, type or place is not that
    of a whole file.
    """
    try:
        if not path.stat().st_size:
            raise ModelLoadError(f"{path}: the GGUF file is empty; get the file again")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Parser(data, str(path)).read()
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{path}: cannot be read as a GGUF file ({error})") from error


class _Parser:
    """Reads a header from its first byte on; ``_at`` is the place of the next byte."""

    def __init__(self, data: mmap.mmap, location: str) -> None:
        self._data = data
        self._location = location
        self._at = 0
        self._num_elements = 0

    def read(self) -> GgufHeader:
        """Parse the header; raise an error at the first thing that is no GGUF."""
        if bytes(self._data[:4]) != b"GGUF":
            raise self._fault("it does not begin with GGUF, so it is no GGUF file")
        self._at = 4
        version = self._number("I")
        if version not in _VERSIONS:
            raise self._fault(f"it has version {version}; expected little-endian version 2 or 3")
        num_tensors = self._count("tensors")
        num_keys = self._count("keys")
        metadata: dict[str, Value] = {}
        for _ in range(num_keys):
            key = self._string(_MOST_NAME, "a key")
            if key in metadata:
                raise self._fault(f"the key {key!r} is there twice")
            metadata[key] = self._value(int(self._number("I")), key)
        entries = [self._entry() for _ in range(num_tensors)]
        self._require_architecture(metadata)
        begin = -(-self._at // self._alignment(metadata)) * self._alignment(metadata)
        self._require_places(entries, begin)
        return GgufHeader(metadata, tuple(entries))

    def _fault(self, what: str) -> ModelLoadError:
        return ModelLoadError(
            f"{self._location}: the header of the GGUF file is damaged or foreign: {what} "
            f"(byte {self._at:,}); get the file again"
        )

    def _require_bytes(self, size: int, what: str) -> None:
        left = len(self._data) - self._at
        if size > left:
            raise self._fault(f"{what} needs {size:,} bytes and the file has {left:,} more")

    def _number(self, form: str) -> int | float | bool:
        """Read a number of a type of ``struct``."""
        size = struct.calcsize(f"<{form}")
        self._require_bytes(size, "a number")
        (found,) = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += size
        number: int | float | bool = found
        return number

    def _count(self, what: str) -> int:
        count = int(self._number("Q"))
        if count > _MOST_COUNT:
            raise self._fault(f"it states {count:,} {what}; expected at most {_MOST_COUNT:,}")
        return count

    def _string(self, most: int, what: str) -> str:
        """Read a string of at most ``most`` bytes; ``what`` names it in errors."""
        size = int(self._number("Q"))
        if size > most:
            raise self._fault(f"{what} has {size:,} bytes; expected at most {most:,}")
        self._require_bytes(size, what)
        raw = self._data[self._at : self._at + size]
        self._at += size
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fault(f"{what} is not UTF-8") from error

    def _value(self, kind: int, key: str) -> Value:
        """Read a value of a key: a number, a string or an array."""
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind == _STRING:
            return self._string(_MOST_TEXT, key)
        if kind == _ARRAY:
            return self._array(key)
        raise self._fault(f"{key} has the unknown type {kind}")

    def _array(self, key: str) -> Value:
        """Read an array of numbers or strings; count elements, so that memory has a limit."""
        kind = int(self._number("I"))
        count = int(self._number("Q"))
        self._num_elements += count
        if self._num_elements > _MOST_ELEMENTS:
            raise self._fault(
                f"{key} has {count:,} elements; expected at most {_MOST_ELEMENTS:,} in all arrays"
            )
        if kind == _STRING:
            self._require_bytes(8 * count, key)
            return tuple(self._string(_MOST_NAME, f"an element of {key}") for _ in range(count))
        if kind not in _SCALARS:
            raise self._fault(f"{key} is an array of the type {kind}; expected numbers or strings")
        form = f"<{count}{_SCALARS[kind]}"
        self._require_bytes(struct.calcsize(form), key)
        values: tuple[int | float | bool, ...] = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def _entry(self) -> Tensor:
        """Read the description of a tensor: name, dimensions, type and place."""
        name = self._string(_MOST_NAME, "a tensor's name")
        num_dimensions = int(self._number("I"))
        if not 1 <= num_dimensions <= _MOST_DIMENSIONS:
            raise self._fault(f"the tensor {name!r} has {num_dimensions:,} dimensions")
        dimensions = tuple(int(self._number("Q")) for _ in range(num_dimensions))
        kind = int(self._number("I"))
        offset = int(self._number("Q"))
        if kind not in BLOCKS:
            readable = ", ".join(sorted(each for each, _, _ in BLOCKS.values()))
            raise ModelLoadError(
                f"{self._location}: the tensor {name!r} has the type {_UNREAD.get(kind, kind)}, "
                f"which transformers does not read from GGUF files; expected one of {readable}"
            )
        type_name, block_bytes, block_elements = BLOCKS[kind]
        if dimensions[0] % block_elements or not all(dimensions):
            raise self._fault(
                f"the tensor {name!r} has the dimensions {dimensions}; expected positive numbers, "
                f"and rows of whole blocks of {block_elements}"
            )
        num_bytes = math.prod(dimensions) // block_elements * block_bytes
        return Tensor(name, dimensions, type_name, offset, num_bytes)

    def _require_architecture(self, metadata: Mapping[str, Value]) -> None:
        found = metadata.get("general.architecture")
        if not isinstance(found, str) or not re.fullmatch(r"[a-z0-9_.-]{1,64}", found):
            raise self._fault(f"general.architecture is {str(found)[:80]!r}; expected a name")

    def _alignment(self, metadata: Mapping[str, Value]) -> int:
        found = metadata.get("general.alignment", 32)
        if not isinstance(found, int) or not 1 <= found <= 2**16 or found & (found - 1):
            raise self._fault(f"general.alignment is {found!r}; expected a power of two")
        return found

    def _require_places(self, entries: list[Tensor], begin: int) -> None:
        """Raise an error unless each tensor has a name and bytes of its own within the file."""
        names = {entry.name for entry in entries}
        if len(names) < len(entries) or not entries:
            raise self._fault("it has no tensors, or two of one name")
        end = 0
        for entry in sorted(entries, key=lambda each: each.offset):
            if entry.offset < end:
                raise self._fault(f"the tensor {entry.name!r} overlaps another one")
            end = entry.offset + entry.num_bytes
        if begin + end > len(self._data):
            raise self._fault(
                f"its tensors end at byte {begin + end:,} and the file has {len(self._data):,}, so "
                "it is cut off"
            )
