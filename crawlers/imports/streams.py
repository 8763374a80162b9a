"""Bytes of plain and packed files (gzip, zstd); damage is located, and what is whole is kept.

A file that was cut gives what came before the cut. After damage within a gzip file, reading goes on
at its next member, if it has one: Common Crawl packs each record by itself.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import zstandard

_BLOCK = 2**15  # packed bytes read at a time
_ZSTD_BLOCK = 2**10  # fewer, since 4 of them may stand for 128 KiB
MOST_TIMES = 1000  # no text packs as well
FREE_BYTES = 2**25
_MEMBER = b"\x1f\x8b\x08"  # first bytes of a gzip member
_GZIP_WINDOW = 31  # zlib's ``wbits`` for gzip data with the largest window
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_WINDOW = 2**31  # of zstd; the command line's --long=31
_FIRST_BLOCK = 2**9  # of a member; bytes that only look like one fail within these
_BACK = 2**20  # bytes to search before noticed damage, which may have begun in an earlier member
_BUFFER = 2**17  # unpacked bytes
# Each damaged place costs a search, so that a file of nothing else is given up.
_FREE_DAMAGES = 100
_BYTES_PER_DAMAGE = 2**16


def open_stream(path: Path, faults: list[str]) -> io.BufferedReader:
    """Open a file for reading its unpacked bytes; damage that is met is appended to ``faults``."""
    file = path.open("rb")
    head = file.read(4)
    file.seek(0)
    if head.startswith(_MEMBER[:2]):
        return io.BufferedReader(_Unpacked(file, _gunzip(file, faults)), _BUFFER)
    if head == _ZSTD:
        return io.BufferedReader(_Unpacked(file, _unzstd(file, faults)), _BUFFER)
    return file


class _Unpacked(io.RawIOBase):
    """A stream of the bytes that an iterator yields; closing it closes the packed file."""

    def __init__(self, file: IO[bytes], blocks: Iterator[bytes]) -> None:
        self._file = file
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer's beginning; return the number of bytes written (0: at the end)."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _gunzip(file: IO[bytes], faults: list[str]) -> Iterator[bytes]:
    """Yield the unpacked bytes of all gzip members; after damage, go on at a later member."""
    # The time is linear in the sizes of the packed and the unpacked file.
    start = 0
    num_damaged = 0
    num_reread = 0  # bytes
    while True:
        file.seek(start)
        member = yield from _member(file, start)
        if member.fault:
            faults.append(member.fault)
        if not member.is_damaged:
            if member.end is None:
                return
            start = member.end
            continue
        num_damaged += 1
        if num_damaged > _FREE_DAMAGES + start // _BYTES_PER_DAMAGE:
            faults.append(f"{num_damaged} places are damaged; bytes after {start} were not read")
            return
        damaged_at = member.end or start
        search_from = max(start + 1, damaged_at - _BACK)
        if num_reread + damaged_at - search_from > _BACK + start:
            search_from = max(start + 1, damaged_at)  # else a file could be read again and again
        num_reread += max(0, damaged_at - search_from)
        following = _next_member(file, search_from)
        if following is None:
            return
        start = following


class _End(NamedTuple):
    """The end of a gzip member (None: the end of the file), and what is wrong with it."""

    end: int | None
    fault: str = ""
    is_damaged: bool = False  # else it was cut, if there is a fault


def _member(file: IO[bytes], start: int) -> Generator[bytes, None, _End]:
    """Yield a member's bytes; return the offset after it, or that of the damage in it."""
    engine = zlib.decompressobj(wbits=_GZIP_WINDOW)
    position = start
    size = _FIRST_BLOCK
    while block := file.read(size):
        if position == start and not block.strip(b"\0"):  # padding after the last member
            start = position = position + len(block)
            continue
        before = engine.copy()
        try:
            data = engine.decompress(block)
        except zlib.error as error:
            data, good = _until_error(before, block)
            yield data
            place = position + good
            fault = f"byte {place} of the packed file is damaged: {error}"
            return _End(place, fault, is_damaged=True)
        yield data
        position += len(block)
        if engine.eof:
            return _End(position - len(engine.unused_data))
        size = _BLOCK
    fault = f"the packed file was cut after byte {position}" if position > start else ""
    return _End(None, fault)


def _until_error(engine: Any, block: bytes) -> tuple[bytes, int]:
    """Return the bytes that can be unpacked, and the number of packed bytes before the damage."""
    # After an error, the block is tried again with half of its size, down to one byte.
    found = []
    start = 0
    size = len(block)
    while size:
        before = engine.copy()
        try:
            found.append(engine.decompress(block[start : start + size]))
            start += size
        except zlib.error:
            engine = before
            size //= 2
    return b"".join(found), start


def _next_member(file: IO[bytes], start: int) -> int | None:
    """Return the offset of the next gzip member from ``start`` on; None if there is none."""
    file.seek(start)
    overlap = b""
    while block := file.read(_BLOCK):
        window = overlap + block
        place = window.find(_MEMBER)
        if place >= 0:
            return start - len(overlap) + place
        start = start + len(block)
        overlap = window[-len(_MEMBER) + 1 :]
    return None


def _unzstd(file: IO[bytes], faults: list[str]) -> Iterator[bytes]:
    """Yield the unpacked bytes of all zstd frames, up to damage or an implausible amount."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    engine = unpacker.decompressobj()
    position = 0
    block = b""
    is_within_frame = False
    unpacked = 0
    while block := block or file.read(_ZSTD_BLOCK):
        try:
            data = engine.decompress(block)
        except zstandard.ZstdError as error:
            faults.append(f"bytes {position} and later of the packed file are damaged: {error}")
            return
        yield data
        position = position + len(block)
        is_within_frame = True
        unpacked += len(data)
        if unpacked > FREE_BYTES + MOST_TIMES * position:
            faults.append(f"its first {position} bytes stand for {unpacked}, so it is no text")
            return
        block = b""
        if engine.eof:
            block = engine.unused_data
            position -= len(block)
            engine = unpacker.decompressobj()
            is_within_frame = False
    if is_within_frame:
        faults.append(f"the packed file was cut after byte {position}")
