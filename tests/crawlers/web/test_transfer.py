import gzip
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.web.connections import _BLOCK, _gunzip


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def unpack(data: bytes, size: int) -> bytes:
    return b"".join(_gunzip(pieces(data, size)))


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 64))
def test_members_in_any_pieces_give_the_whole(bodies: list[bytes], size: int) -> None:
    packed = b"".join(map(gzip.compress, bodies))
    assert unpack(packed, size) == b"".join(bodies)
    assert unpack(packed + bytes(7), size) == b"".join(bodies)  # tar pads with zeros


@pytest.mark.parametrize("length", [0, 1, _BLOCK - 1, _BLOCK, _BLOCK + 1, 5 * _BLOCK, 3_000_001])
def test_lengths_about_the_block(length: int) -> None:
    packed = gzip.compress(b"a" * length)
    for size in (1, 17, len(packed)):
        assert unpack(packed, size) == b"a" * length


def test_steps_are_small_however_well_it_was_packed() -> None:
    packed = gzip.compress(bytes(50 * 2**20))
    assert max(map(len, _gunzip(iter([packed])))) <= _BLOCK


@given(st.data())
def test_a_stream_that_ends_early_is_never_taken_for_whole(data: st.DataObject) -> None:
    packed = gzip.compress(b"some words, some words, and more")
    end = data.draw(st.integers(1, len(packed) - 1))
    with pytest.raises(zlib.error, match="ends early"):
        unpack(packed[:end], data.draw(st.integers(1, 20)))


def test_damage_is_noticed() -> None:
    packed = bytearray(gzip.compress(b"some words"))
    packed[-6] ^= 1  # in the checksum
    with pytest.raises(zlib.error):
        unpack(bytes(packed), 5)
