"""Difference between the texts of two months: 1 - similarity, by Gestalt pattern matching.

The method is that of Li et al. 2024, arXiv 2402.00861, appendix B, with the similarity of Ratcliff
and Obershelp. Sources that crawl the same pages every month are compared page by page. The texts of
other sources are pooled. The library difflib-fast returns the same ratio as
``difflib.SequenceMatcher`` with ``autojunk`` off, in about linear time on real text.

On repetitive texts, difflib-fast takes quadratic time and memory. With version 0.4.0, comparing
20,000 equal characters with almost the same text took 2 to 5 s and 0.8 GB. 50,000 characters took
25 s and 4.8 GB. So the length of texts is limited, and comparisons run one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from difflib_fast import ratio

from core.corpus.partition import Seal, read_documents, read_texts
from core.storage.store import Store

VERSION = 1  # version of the measurement; increase it whenever results change
PIECE_CHARS = 20_000  # maximum length of each text in one comparison, in characters
MAX_PIECES = 16  # maximum number of pieces (of PIECE_CHARS characters) from one month
MAX_ARTICLES = 128

Method = Literal["articles", "pooled"]


class Against(StrEnum):
    """The earlier month of a comparison."""

    FIRST = "first"  # the first sealed month of the source
    PREVIOUS = "previous"  # the previous calendar month; no comparison if that month is not sealed


@dataclass(frozen=True)
class TextDifference:
    """The difference between a month's text and that of an earlier month."""

    method: Method
    num_documents: int  # number of compared documents of the later month
    num_bytes: int  # number of compared UTF-8 bytes of the later month
    difference: float | None  # 0 (equal) to 1 (nothing in common), or None if not measured
    reason: str | None = None  # reason why there is no measurement


def measure_difference(store: Store, earlier: Seal, later: Seal) -> TextDifference:
    """Compare the texts of two months of a source.

    If the two months share at least half of each month's ``native_id`` values, pages with the same
    value are compared. Otherwise the pooled texts are compared.

    Raises:
        StorageError: a Parquet file of a month is missing or damaged.
    """
    before, after = (set(_column(store, seal, "native_id")) for seal in (earlier, later))
    common = before & after
    if common and 2 * len(common) >= max(len(before), len(after)):
        return _by_article(store, earlier, later, _sample(common))
    return _pooled(store, earlier, later)


def text_difference(earlier: str, later: str) -> float:
    """Return 1 - similarity of two texts of at most PIECE_CHARS characters each."""
    return 0.0 if earlier == later else 1 - ratio(earlier, later)


def same_share(earlier: str, later: str) -> tuple[str, str]:
    """Cut both texts to the same fraction of their length, at most PIECE_CHARS characters each.

    With cuts of equal length, text that an insertion moves past a cut would count as lost.
    """
    longest = max(len(earlier), len(later))
    if longest <= PIECE_CHARS:
        return earlier, later
    one, other = (text[: len(text) * PIECE_CHARS // longest] for text in (earlier, later))
    return one, other


def _by_article(store: Store, earlier: Seal, later: Seal, chosen: list[str]) -> TextDifference:
    """Compare the chosen articles, each with its own earlier version."""
    before, after = (
        dict(read_texts(store, seal, set(chosen), "native_id")) for seal in (earlier, later)
    )
    pairs = [same_share(before[page], after[page]) for page in chosen]
    return TextDifference(
        method="articles",
        num_documents=len(pairs),
        num_bytes=sum(len(text.encode()) for _, text in pairs),
        difference=sum(text_difference(*pair) for pair in pairs) / len(pairs),
    )


def _sample(ids: set[str]) -> list[str]:
    """Choose MAX_ARTICLES ids by hash, so that an additional id replaces at most one chosen id."""
    ranked = sorted(ids, key=lambda each: (hashlib.sha256(each.encode()).digest(), each))
    return ranked[:MAX_ARTICLES]


def _pooled(store: Store, earlier: Seal, later: Seal) -> TextDifference:
    """Compare pieces of equal length, cut from all texts of each month."""
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
    """Return texts of at most PIECE_CHARS characters, MAX_PIECES * PIECE_CHARS in total.

    The first texts in order of id are taken. Ids are hashes, so the sample is random but
    reproducible.
    """
    columns = [_column(store, seal, name) for name in ("document_id", "num_chars")]
    chosen = []
    num_chars = 0
    for document_id, length in sorted(zip(*columns, strict=True)):
        if num_chars >= MAX_PIECES * PIECE_CHARS:
            break
        chosen.append(document_id)
        num_chars += min(length, PIECE_CHARS)
    texts = dict(read_texts(store, seal, set(chosen)))
    pool = [texts[document_id][:PIECE_CHARS] for document_id in chosen]
    return list(_take(pool, MAX_PIECES * PIECE_CHARS))


def _take(texts: Sequence[str], num_chars: int) -> Iterator[str]:
    """Yield the first characters of texts, so many in all."""
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
