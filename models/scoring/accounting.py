"""Accounting: the exact part of the original text that each token covers.

Losses are divided by the number of characters or bytes of the scored text. So every byte of a text
must belong to exactly one token. For every i, this module counts the bytes and characters that the
first i tokens cover.

In byte-level BPE, a token is a sequence of bytes. In SentencePiece, a token is a byte, or text with
a special character for spaces. For both, the tokens' bytes are joined and must equal the text. So
the counts are exact. A character that is split between tokens counts at its last byte.

For other tokenizers, and for texts that a tokenizer changes (Unicode normalisation, dropped
spaces), the offsets that the tokenizer reports are used. A token then covers the text from the
previous token's end to its own end. The last token also covers all text after it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding, Tokenizer

from core.errors import NotMeasurable
from models.scoring.byte_classes import Classes
from models.scoring.control import ControlTokens
from models.weights.files import first_line
from models.weights.tokenizer_files import is_panic

Counts = npt.NDArray[np.int64]

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE_MARK = "\u2581"


class TokenizedText(NamedTuple):
    """A text's tokens; the first i tokens cover ``chars[i]`` characters and ``bytes[i]`` bytes.

    ``ids`` is int64 (n,). ``chars`` and ``bytes`` are int64 (n + 1,), begin with 0, never decrease,
    and end with the text's totals if n > 0. ``is_lossless``: True if the tokens restore the text.
    ``classes``: class of each byte (``byte_classes``), uint8 (bytes,), or None if not wanted.
    """

    ids: Counts
    chars: Counts
    bytes: Counts
    is_lossless: bool = True
    classes: Classes | None = None


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Convert errors of the tokenizers library; a panic of Rust code is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and not is_panic(error):
            raise
        raise NotMeasurable(
            f"the tokenizer fails on a text ({first_line(error)}), so its model is not scored; its "
            "tokenizer.json was not made for text"
        ) from None


class Accountant:
    """Tokenizes texts and counts the characters and bytes that tokens cover.

    ``named``: control tokens that the tokenizer's configuration names, besides its special tokens.
    """

    def __init__(self, tokenizer: Tokenizer, named: Iterable[str] = ()) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.control = ControlTokens(tokenizer, named)
        self._table = token_bytes(tokenizer)
        self._lengths = np.array([len(token) for token in self._table or ()], dtype=np.int64)

    def tokenize(
        self, texts: Sequence[str], special_tokens: bool = False, as_text: bool = False
    ) -> list[TokenizedText]:
        """Tokenize texts in parallel threads.

        Args:
            texts: any Unicode without lone surrogates.
            special_tokens: True to let the tokenizer add special tokens, which cover no text.
            as_text: True to read control tokens that are spelled in a text as text.
        """
        found = self._tokenize(self._tokenizer, texts, special_tokens)
        if not as_text:
            return found
        num_added = self._num_added if special_tokens else 0
        for row, tokens in enumerate(found):
            if self.control.count(tokens.ids) > num_added:
                [found[row]] = self._tokenize(self.control.plain, [texts[row]], special_tokens)
        return found

    def tokenize_marked(self, text: str, special_tokens: bool = False) -> Counts:
        """Return the ids of a text whose control tokens are marks of ``ControlTokens``."""
        with explained():
            encoding = self.control.plain.encode(text, add_special_tokens=special_tokens)
        return np.array(encoding.ids, dtype=np.int64)

    @cached_property
    def _num_added(self) -> int:
        """Number of control tokens that the tokenizer adds to a text."""
        ids = self._tokenizer.encode("", add_special_tokens=True).ids
        return self.control.count(np.array(ids, dtype=np.int64))

    def _tokenize(
        self, tokenizer: Tokenizer, texts: Sequence[str], special_tokens: bool
    ) -> list[TokenizedText]:
        """Tokenize texts; count by the tokens' bytes if they give the text, else by offsets."""
        if self._table is None:
            return [self._by_offsets(tokenizer, text, special_tokens) for text in texts]
        with explained():
            encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=special_tokens)
        return [
            self._by_bytes(text, encoding, special_tokens)
            or self._by_offsets(tokenizer, text, special_tokens)
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def _by_bytes(
        self, text: str, encoding: Encoding, special_tokens: bool
    ) -> TokenizedText | None:
        """Count by the tokens' bytes; return None if the joined bytes are not the text."""
        assert self._table is not None  # noqa: S101
        raw = text.encode()
        ids = np.array(encoding.ids, dtype=np.int64)
        if ids.size and ids.max() >= len(self._table):  # an id that is not in the vocabulary
            return None
        lengths = self._lengths[ids]
        own: Iterable[int] = ids.tolist()
        if special_tokens:  # tokens that the tokenizer added cover no text
            added = np.array(encoding.special_tokens_mask, dtype=bool)
            lengths[added] = 0
            own = ids[~added].tolist()
        spelled = b"".join(map(self._table.__getitem__, own))
        if spelled not in (raw, b" " + raw):
            return None
        in_front = len(spelled) - len(raw)  # 1 if the tokenizer added a leading space
        covered = np.maximum(_cumulated(lengths) - in_front, 0)
        return TokenizedText(ids, whole_characters(text, raw, covered), covered)

    def _by_offsets(self, tokenizer: Tokenizer, text: str, special_tokens: bool) -> TokenizedText:
        """Count by the offsets that the tokenizer reports for each token."""
        with explained():
            encoding = tokenizer.encode(text, add_special_tokens=special_tokens)
        ids = np.array(encoding.ids, dtype=np.int64)
        ends = np.array([0, *(end for _, end in encoding.offsets)], dtype=np.int64)
        chars = np.maximum.accumulate(np.minimum(ends, len(text)))
        if len(ids):
            chars[-1] = len(text)
        points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        # Bytes of each code point in UTF-8.
        sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
        return TokenizedText(
            ids, chars, _cumulated(sizes)[chars], self._gives_back(text, encoding, special_tokens)
        )

    def _gives_back(self, text: str, encoding: Encoding, special_tokens: bool) -> bool:
        """Return True if decoding the tokens gives the text, perhaps with a space in front."""
        own = encoding.ids
        if special_tokens:
            mask = encoding.special_tokens_mask
            own = [token for token, added in zip(own, mask, strict=True) if not added]
        with explained():
            return self._tokenizer.decode(own, skip_special_tokens=False) in (text, f" {text}")


def token_bytes(tokenizer: Tokenizer) -> list[bytes] | None:
    """Return the bytes of each token id, or None if this kind of tokenizer does not define them."""
    # The list is indexed by id; ids that are not used have empty bytes.
    kinds = set[str]()
    for part in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder):
        if part is not None:
            kinds |= _kinds(json.loads(part.__getstate__()))
    if "ByteLevel" in kinds:
        spell = _spell_byte_level
    elif kinds & {"Metaspace", "ByteFallback"}:
        spell = _spell_marked
    else:
        return None
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    table = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for token, index in vocabulary.items():
        table[index] = spell(token)
    for index, added in tokenizer.get_added_tokens_decoder().items():
        table[index] = added.content.encode()  # added tokens are stored as plain text
    return table


def _kinds(part: object) -> set[str]:
    """Return the types of all components in a part of the tokenizer's definition."""
    if isinstance(part, list):
        return set().union(*map(_kinds, part))
    if isinstance(part, dict):
        own = {part["type"]} if isinstance(part.get("type"), str) else set()
        return own.union(*map(_kinds, part.values()))
    return set()


def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each character stands for in byte-level BPE (Radford et al. 2019)."""
    # Printable bytes stand for themselves; code points from 256 on stand for the other bytes.
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + index): byte for index, byte in enumerate(hidden)}


_ALPHABET = _byte_alphabet()


def _spell_byte_level(token: str) -> bytes:
    try:
        return bytes(_ALPHABET[character] for character in token)
    except KeyError:  # a character outside the alphabet stands for itself
        return token.encode()


def _spell_marked(token: str) -> bytes:
    match = _BYTE_TOKEN.fullmatch(token)
    if match:
        return bytes([int(match[1], 16)])
    return token.replace(_SPACE_MARK, " ").encode()


def _cumulated(sizes: Counts) -> Counts:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


def whole_characters(text: str, raw: bytes, positions: Counts) -> Counts:
    """Count the characters that end at or before each byte position of ``raw``."""
    if len(raw) == len(text):
        return positions
    data = np.frombuffer(raw, dtype=np.uint8)
    is_start = (data & 0xC0) != 0x80  # no continuation byte of UTF-8
    started = np.concatenate([np.zeros(1, np.int32), np.cumsum(is_start, dtype=np.int32)])
    inside = np.append(~is_start, False)
    whole: Counts = (started[positions] - inside[positions]).astype(np.int64)
    return whole
