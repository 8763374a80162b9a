"""Tokens and n-grams of a text, as 64-bit hashes.

A run of letters and digits of any script is a token. In scripts without spaces (Chinese, Thai, …),
each character is a token. In code, case matters, and each punctuation sign is a token. Fixed tables
classify characters, because Python's Unicode data differ between versions.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]

# Kinds of characters; an ``_ALONE`` character is a token by itself (in scripts without spaces).
_SPACE, _SIGN, _DIGIT, _LETTER, _ALONE = range(5)

_BLOCK = 2**18  # characters hashed at a time, so that a text of 16 MB does not take 1 GB of memory
_BASE = np.uint64(0x9E3779B97F4A7C15 | 1)
_ROLL = np.uint64(0xD6E8FEB86659FD93)
_CODEC = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"

# Kinds as ranges of code points (ends included). Code points beyond ASCII in no range are letters.
_SIGNS = (
    (0xA1, 0xA9), (0xAB, 0xB4), (0xB6, 0xB9), (0xBB, 0xBF), (0xD7, 0xD7), (0xF7, 0xF7),
    (0x2B9, 0x2FF), (0x37E, 0x37E), (0x387, 0x387), (0x55A, 0x55F), (0x589, 0x58A),
    (0x5BE, 0x5BE), (0x5F3, 0x5F4), (0x60C, 0x60C), (0x61B, 0x61F), (0x66A, 0x66D), (0x6D4, 0x6D4),
    (0x964, 0x965), (0x1360, 0x1368), (0x2010, 0x2027), (0x2030, 0x205E), (0x2070, 0x209F),
    (0x20A0, 0x20CF), (0x2100, 0x2BFF), (0x2E00, 0x2E7F), (0x3001, 0x3004), (0x3008, 0x3020),
    (0x3030, 0x3030), (0x30FB, 0x30FB), (0xE000, 0xF8FF), (0xFE10, 0xFE19), (0xFE30, 0xFE6F),
    (0xFF01, 0xFF0F), (0xFF1A, 0xFF20), (0xFF3B, 0xFF40), (0xFF5B, 0xFF65), (0xFFE0, 0xFFFF),
    (0x1F000, 0x1FAFF),
)  # fmt: skip
_SPACES = ((0x80, 0xA0), (0x1680, 0x1680), (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F),
           (0x3000, 0x3000))  # fmt: skip
_DIGITS = ((0x660, 0x669), (0x6F0, 0x6F9), (0x966, 0x96F), (0x9E6, 0x9EF), (0xFF10, 0xFF19))
_UNSPACED = ((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3041, 0x30FA), (0x30FC, 0x31FF),
             (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
             (0x20000, 0x3FFFF))  # fmt: skip


class Tokens(NamedTuple):
    """The tokens of a text, and counts of its characters."""

    hashes: Hashes  # hash of each token, in order; shape (num_tokens,)
    num_letters: int  # number of letters, with their combining marks
    num_visible: int  # number of characters other than white space


def tokens_of(text: str, is_code: bool) -> Tokens:
    """Hash the tokens of an NFC text; time and memory are linear in its length."""
    table = _kinds(is_code)
    hashes: list[Hashes] = []
    num_letters = num_visible = 0
    for block in _blocks(text if is_code else text.lower()):
        points = np.frombuffer(block.encode(_CODEC, "replace"), dtype=np.uint32)
        kinds = table[points]
        hashes.append(_hash_tokens(points, kinds, is_code))
        num_letters += int(np.count_nonzero(kinds >= _LETTER))
        num_visible += int(np.count_nonzero(kinds != _SPACE))
    joined = hashes[0] if len(hashes) == 1 else np.concatenate(hashes or [np.empty(0, np.uint64)])
    return Tokens(joined, num_letters, num_visible)


def ngrams(hashes: Hashes, n: int) -> Hashes:
    """Return the hash of every n consecutive tokens; shape (num_tokens - n + 1,)."""
    # A text of 1 to n - 1 tokens counts as one n-gram. A hash is a polynomial in ``_ROLL``, mixed.
    num = max(len(hashes) - n + 1, min(len(hashes), 1))
    grams = np.zeros(num, dtype=np.uint64)
    for offset in range(min(n, len(hashes))):
        grams *= _ROLL
        grams += hashes[offset : offset + num]
    return _mixed(grams + np.uint64(n))


def distinct(hashes: Hashes) -> Hashes:
    """Return the sorted hashes without repeats; ``numpy.unique`` takes four times as long."""
    hashes = np.sort(hashes)
    is_first = np.ones(len(hashes), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=is_first[1:])
    return hashes[is_first]


def _blocks(text: str) -> Iterator[str]:
    """Cut a long text at white space, so that tokens stay whole; cut anywhere if there is none."""
    begin = 0
    while begin < len(text):
        end = begin + _BLOCK
        if end < len(text):
            gap = max(text.rfind(" ", begin + 1, end), text.rfind("\n", begin + 1, end))
            end = gap if gap > 0 else end
        yield text[begin:end]
        begin = end


def _hash_tokens(points: npt.NDArray[np.uint32], kinds: _Bytes, is_code: bool) -> Hashes:
    """Hash each token as a polynomial of its characters, computed from cumulative sums."""
    is_single = (kinds == _ALONE) | (kinds == _SIGN) if is_code else kinds == _ALONE
    in_word = (kinds == _LETTER) | (kinds == _DIGIT)
    before = np.concatenate(([False], in_word[:-1]))
    after = np.concatenate((in_word[1:], [False]))
    begins = np.flatnonzero((in_word & ~before) | is_single)
    ends = np.flatnonzero((in_word & ~after) | is_single) + 1
    powers, inverses = _powers()
    sums = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum(points.astype(np.uint64) * powers[: len(points)], out=sums[1:])
    return _mixed((sums[ends] - sums[begins]) * inverses[begins])


def _mixed(values: Hashes) -> Hashes:
    """Mix the bits of each hash (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@functools.cache
def _powers() -> tuple[Hashes, Hashes]:
    """Return the powers of _BASE and of its inverse, modulo 2^64."""
    inverse = np.uint64(pow(int(_BASE), -1, 2**64))
    both = []
    for factor in (_BASE, inverse):
        powers = np.full(_BLOCK + 1, factor, dtype=np.uint64)
        powers[0] = 1
        both.append(np.cumprod(powers, dtype=np.uint64))
    return both[0], both[1]


@functools.cache
def _kinds(is_code: bool) -> _Bytes:
    """Return the kind (``_SPACE``, …) of every Unicode code point; shape (0x110000,)."""
    table = np.full(0x110000, _LETTER, dtype=np.uint8)
    for point in range(0x80):
        char = chr(point)
        if char.isspace() or not char.isprintable():
            table[point] = _SPACE
        elif char.isalpha():
            table[point] = _LETTER
        else:
            table[point] = _DIGIT if char.isdigit() else _SIGN
    for ranges, kind in (
        (_SIGNS, _SIGN), (_SPACES, _SPACE), (_DIGITS, _DIGIT), (_UNSPACED, _ALONE),
    ):  # fmt: skip
        for first, last in ranges:
            table[first : last + 1] = kind
    if is_code:
        table[ord("_")] = _LETTER
    return table
