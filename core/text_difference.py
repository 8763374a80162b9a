"""How different the text of two months is: 1 - similarity, by Gestalt pattern matching.

After Li et al. 2024, arXiv 2402.00861, appendix B. Pages that come back in both months are
compared article by article; the text of other sources is pooled. Similarity is Ratcliff and
Obershelp's: the ratio of ``difflib.SequenceMatcher`` with ``autojunk`` off, bit for bit, by
difflib-fast, whose time is about linear on real text where difflib's is quadratic.

Texts come from outside, and on repetitive ones time and memory stay quadratic: 20,000 times the
same character against nearly the same took 2 to 5 s and 0.8 GB, 50,000 took 25 s and 4.8 GB
(2026-11-22, difflib-fast 0.4.0). So the length and the number of comparisons are bounded, and they
run one after another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from difflib_fast import ratio

from core.corpus import Seal, read_documents
from core.storage import Store

VERSION = 1  # of what is computed here; raise it with every change of a figure
PIECE_CHARS = 20_000  # of each side of one comparison
MAX_PIECES = 16  # of a pool
MAX_ARTICLES = 128

Method = Literal["articles", "pooled"]


class Against(StrEnum):
    """What a month's text is compared with."""

    FIRST = "first"  # the first month of the source that is sealed
    PREVIOUS = "previous"  # the calendar month before; a month after a hole has none


@dataclass(frozen=True)
class TextDifference:
    """How much a month's text differs from that of an earlier one.

    Attributes:
        method: ``articles`` or ``pooled``.
        num_documents: of the month, whose text was compared.
        num_bytes: UTF-8, of the month's text that was compared.
        difference: 0 = the same, 1 = nothing in common; None where it was not measured.
        reason: why not; None where it was.
    """

    method: Method
    num_documents: int
    num_bytes: int
    difference: float | None
    reason: str | None = None


def measure_difference(store: Store, earlier: Seal, later: Seal) -> TextDifference:
    """Compare two months of a source.

    Article by article where at least half of each month's documents have an id of their source
    (``native_id``) that the other month has, too: monitored pages. Else pooled.

    Args:
        store: the data root.
        earlier: a sealed partition of texts.
        later: another of the same source; what is counted is counted of it.

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
    """Return the beginnings of two versions: of both the same share, at most PIECE_CHARS long.

    The same length of both would count what an insertion pushes out as lost.
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
    """Choose by a hash, so that one page more does not change all the others."""
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
    """Return texts, each cut to a piece's length, up to what all pieces take.

    In the order of their ids, which are hashes: a sample of the month that is the same each time.
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
    """Yield key and text of the chosen documents; of several with one key, the last one stays."""
    for batch in read_documents(store, seal, columns=[key, "text"]):
        for name, text in zip(batch[key].to_pylist(), batch["text"], strict=True):
            if name in chosen:
                yield name, text.as_py()
