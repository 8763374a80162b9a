"""What is remembered of each text of a month: some 350 bytes, never the text itself."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlers.contract import DropReason
from crawlers.hygiene.signatures import NUM_PERMUTATIONS, SIGNATURE_BYTES, Rows, Signatures, sign
from crawlers.hygiene.tokens import Hashes

Digests = npt.NDArray[np.void]
DIGEST_BYTES = 32


class MonthTexts:
    """The texts of a month by row: the number of the document in the order in which it came."""

    def __init__(self) -> None:
        self.native_ids: list[str] = []
        self.drops: dict[int, tuple[DropReason, str]] = {}
        self._language_scores = array("f")
        self.redactions: dict[int, dict[str, int]] = {}
        self._document_ids = bytearray()
        self._digests = bytearray()
        self._signatures = bytearray()
        self._times = array("q")
        self._is_signed = bytearray()

    def __len__(self) -> int:
        return len(self.native_ids)

    def add(self, row: dict[str, Any], document_id: str, digest: bytes) -> int:
        """Remember a document of the spool, and return its row."""
        self._language_scores.append(math.nan)
        self.native_ids.append(row["native_id"])
        self._document_ids += bytes.fromhex(document_id)
        self._digests += digest
        self._times.append(int(row["event_time"].timestamp() * 1e6))
        return len(self.native_ids) - 1

    def sign(self, gram_sets: Sequence[Hashes]) -> None:
        """Sign the texts that came since the last call; an empty set of n-grams has no signature.

        Args:
            gram_sets: 5-grams of each.
        """
        none = np.zeros(1, dtype=np.uint64)
        self._signatures += sign([grams if len(grams) else none for grams in gram_sets]).tobytes()
        self._is_signed += bytes(len(grams) > 0 for grams in gram_sets)

    def set_language_score(self, row: int, score: float) -> None:
        """Remember how probable the document's language is."""
        self._language_scores[row] = score

    def language_score(self, row: int) -> float | None:
        """How probable the document's language is; None where that was not asked."""
        score = self._language_scores[row]
        return None if math.isnan(score) else score

    def document_id(self, row: int) -> str:
        """The document's id, as the corpus has it."""
        return self._document_ids[16 * row : 16 * row + 16].hex()

    @property
    def digests(self) -> Digests:
        """SHA-256 of each text; (num_texts,) of 32 bytes."""
        return np.frombuffer(self._digests, dtype=f"V{DIGEST_BYTES}")

    @property
    def signatures(self) -> Signatures:
        """(num_texts, 128)."""
        flat = np.frombuffer(self._signatures, dtype="<u2")
        return flat.reshape(len(self._signatures) // SIGNATURE_BYTES, NUM_PERMUTATIONS)

    def kept(self) -> Rows:
        """Rows that are not dropped, earliest first; of one instant, by native id.

        That order, unlike the one in which they came, is the same in every crawl.
        """
        is_kept = np.ones(len(self), dtype=bool)
        is_kept[list(self.drops)] = False
        rows = np.flatnonzero(is_kept).tolist()
        rows.sort(key=lambda row: (self._times[row], self.native_ids[row], row))
        return np.array(rows, dtype=np.int64)

    def is_signed(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether there is a signature of each row's text."""
        return np.frombuffer(self._is_signed, dtype=np.bool_)[rows]
