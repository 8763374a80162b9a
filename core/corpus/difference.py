"""Difference between the text of two months: 1 - similarity, by Gestalt pattern matching.

After Li et al. 2024, arXiv 2402.00861, appendix B. Pages in both months are compared article by
article; the text of other sources is pooled. Similarity is that of Ratcliff and Obershelp. The
library difflib-fast gives exactly the ratio of ``difflib.SequenceMatcher`` with ``autojunk`` off.
Its time is about linear on real text; that of difflib is quadratic.

Time and memory stay quadratic on repetitive texts. Measured on 2026-11-22 with difflib-fast 0.4.0:
20,000 equal characters against almost the same text took 2 to 5 s and 0.8 GB. 50,000 took 25 s and
4.8 GB. So length and number of comparisons are limited, and comparisons run sequentially.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from difflib_fast import ratio

from core.corpus.partition import Seal, read_documents
from core.storage.store import Store

VERSION = 1  # version of these figures; increase it with every change of a figure
PIECE_CHARS = 20_000  # maximal length of each text in one comparison
MAX_PIECES = 16  # maximal number of pieces of a pool
MAX_ARTICLES = 128

Method = Literal["articles", "pooled"]


class Against(StrEnum):
    """The earlier month in a comparison."""

    FIRST = "first"  # the first sealed month of the source
    PREVIOUS = "previous"  # the previous calendar month; no comparison if that is not sealed


@dataclass(frozen=True)
class TextDifference:
    """The difference between a month's text and that of an earlier month."""

    method: Method
    num_documents: int  # compared documents of the later month
    num_bytes: int  # compared UTF-8 bytes of the later month
    difference: float | None  # 0 = the same, 1 = nothing in common; None if not measured
    reason: str | None = None  # reason for a missing measurement


def measure_difference(store: Store, earlier: Seal, later: Seal) -> TextDifference:
    """Compare two months of a source.

    Compare article by article if the two months share at least half of each month's ``native_id``
    values (monitored pages). Else compare pooled text. The counts in the result are those of the
    later month.

    Raises:
        StorageError: a part is missing or damaged.
    """
    before, after = (set(_column(store, seal, "native_id")) for seal in (earlier, later))
    common = before & after
    if common and 2 * len(common) >= max(len(before), len(after)):
        return _by_article(store, earlier, later, _sample(common))
    return _pooled(store, earlier, later)


def text_difference(earlier: str, later: str) -> float:
    """Return 1 - similarity of two texts, at most PIECE_CHARS long each."""
    return 0.0 if earlier == later else 1 - ratio(earlier, later)


def same_share(earlier: str, later: str) -> tuple[str, str]:
    """Return the same fraction of both texts, from the start, at most PIECE_CHARS long each.

    Equal lengths would count text that an insertion moved beyond the end as lost.
    """
    longest = max(len(earlier), len(later))
    if longest <= PIECE_CHARS:
        return earlier, later
    one, other = (text[: len(text) * PIECE_CHARS // longest] for text in (earlier, later))
    return one, other


def _by_article(store: Store, earlier: Seal, later: Seal, chosen: list[str]) -> TextDifference:
    before, after = (
        dict(_texts(store, seal, "native_id", set(chosen))) for seal in (earlier, later)
    )
    pairs = [same_share(before[page], after[page]) for page in chosen]
    return TextDifference(
        method="articles",
        num_documents=len(pairs),
        num_bytes=sum(len(text.encode()) for _, text in pairs),
        difference=sum(text_difference(*pair) for pair in pairs) / len(pairs),
    )


def _sample(ids: set[str]) -> list[str]:
    """Choose ids by hash, so that one additional page changes at most one choice."""
    ranked = sorted(ids, key=lambda each: (hashlib.sha256(each.encode()).digest(), each))
    return ranked[:MAX_ARTICLES]


def _pooled(store: Store, earlier: Seal, later: Seal) -> TextDifference:
    before, after = (_pool(store, seal) for seal in (earlier, later))
    num_pieces = min(sum(map(len, pool)) // PIECE_CHARS for pool in (before, after))
    if not num_pieces:
        return TextDifference("pooled", 0, 0, None, "too_little_text")
    compared = list(_take(after, num_pieces * PIECE_CHARS))
    pairs = zip(_pieces(before, num_pieces), _pieces(compared, num_pieces), strict=True)
    return TextDifference(
        method="pooled",
        num_documents=len(compared),
        num_bytes=sum(len(text.encode()) for text in compared),
        difference=sum(text_difference(*pair) for pair in pairs) / num_pieces,
    )


def _pool(store: Store, seal: Seal) -> list[str]:
    """Return texts of at most PIECE_CHARS each, up to MAX_PIECES * PIECE_CHARS in total.

    Texts are in the order of their ids. Ids are hashes, so this is a reproducible random sample.
    """
    columns = [_column(store, seal, name) for name in ("document_id", "num_chars")]
    chosen, num_chars = [], 0
    for document_id, length in sorted(zip(*columns, strict=True)):
        if num_chars >= MAX_PIECES * PIECE_CHARS:
            break
        chosen.append(document_id)
        num_chars += min(length, PIECE_CHARS)
    texts = dict(_texts(store, seal, "document_id", set(chosen)))
    pool = [texts[document_id][:PIECE_CHARS] for document_id in chosen]
    return list(_take(pool, MAX_PIECES * PIECE_CHARS))


def _take(texts: Sequence[str], num_chars: int) -> Iterator[str]:
    for text in texts:
        if num_chars <= 0:
            return
        yield text[:num_chars]
        num_chars -= len(text)


def _pieces(pool: Sequence[str], num_pieces: int) -> Iterator[str]:
    text = "".join(pool)
    for start in range(0, num_pieces * PIECE_CHARS, PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def _column(store: Store, seal: Seal, name: str) -> list[Any]:
    batches = read_documents(store, seal, columns=[name])
    return [value for batch in batches for value in batch[name].to_pylist()]


def _texts(store: Store, seal: Seal, key: str, chosen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield key and text of the chosen documents, including documents with the same key."""
    for batch in read_documents(store, seal, columns=[key, "text"]):
        for name, text in zip(batch[key].to_pylist(), batch["text"], strict=True):
            if name in chosen:
                yield name, text.as_py()
