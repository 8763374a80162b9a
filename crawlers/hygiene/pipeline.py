"""The stages that need a whole month, in order; documents stream through a file on local disk.

    1. as they come, documents are spooled, and their lines are sampled
    2. where lines are suspicious, they are counted                            (boilerplate)
    3. each text is revised and judged by itself, and what is compared of it is remembered
    4. texts are compared with each other and with sealed months               (duplicates)
    5. the kept ones are read again, and handed on in the order in which they came

A text's fate depends on the documents of its month and on the sealed months that the manifest
names (``compared_with``), not on the order of anything.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np

from core.corpus import Partition, document_id
from core.settings import Settings
from core.storage import Store
from crawlers.cleaning import MIN_CHARS
from crawlers.contract import Drop, DropReason, SourceInfo
from crawlers.hygiene.boilerplate import Boilerplate, LineSample
from crawlers.hygiene.duplicates import drop_duplicates, drop_exact
from crawlers.hygiene.language import wrong_language
from crawlers.hygiene.month_texts import MonthTexts
from crawlers.hygiene.other_months import (
    DUPLICATES_FILE,
    Comparison,
    SealedMonths,
    duplicates_as_bytes,
)
from crawlers.hygiene.quality import low_quality
from crawlers.hygiene.redaction import redact
from crawlers.hygiene.seen import FLAG, MIN_SAMPLED, SEEN_BEFORE, SEEN_GRAM, GramSample
from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.sketches import SKETCH_FILE, sketch_of
from crawlers.hygiene.spool import Spool
from crawlers.hygiene.tokens import Hashes, ngrams, tokens_of
from crawlers.manifest import Outcome, Row


class Hygiene:
    """Judges the documents of one month.

    Args:
        partition: the month.
        info: its source.
        store: where the sealed months are.
        settings: scratch folder, and whether to redact.
    """

    def __init__(
        self, partition: Partition, info: SourceInfo, store: Store, settings: Settings
    ) -> None:
        self._partition, self._info = partition, info
        self._store, self._settings = store, settings
        self._texts, self._sample = MonthTexts(), GramSample()
        self._boilerplate = Boilerplate({})
        self._num_cut = 0
        self.describe: dict[str, object] = {}
        self.beside: dict[str, bytes] = {}

    def sift(self, outcomes: Iterable[Outcome]) -> Generator[Outcome]:
        """Yield what is no document as it comes; then each document, or why it is dropped.

        ``describe`` (for the manifest) and ``beside`` (files for the partition's folder) are
        filled once all is yielded.

        Args:
            outcomes: rows are cleaned documents.

        Raises:
            StorageError: a sealed month of the source is damaged, or the disk is full.
        """
        with Spool(self._settings.scratch) as spool:
            lines = LineSample()
            for outcome in outcomes:
                if isinstance(outcome, dict):
                    spool.add(outcome)
                    if self._has_boilerplate(outcome):
                        lines.add(outcome["text"])
                else:
                    yield outcome
            spool.end()
            self._count_lines(spool, lines)
            for batch in spool.batches():
                self._judge(batch)
            sealed = SealedMonths.of(self._store, self._partition, spool.folder)
            comparison = self._compare(sealed)
            yield from self._hand_on(spool, comparison)
            self._conclude(sealed)

    def _has_boilerplate(self, row: Row) -> bool:
        """Whether lines are taken out: not of code, nor of versions, which must be comparable."""
        return not (_is_code(row) or self._info.keeps_versions)

    def _count_lines(self, spool: Spool, lines: LineSample) -> None:
        if (counts := lines.count_candidates()) is None:
            return
        for batch in spool.batches():
            for row in filter(self._has_boilerplate, batch):
                counts.add(row["text"])
        self._boilerplate = counts.boilerplate()

    def _judge(self, batch: list[Row]) -> None:
        """Judge some texts one by one, and remember what is compared of them."""
        gram_sets = []
        for row in batch:
            is_cut = self._cut(row)
            is_gone = is_cut and len(row["text"]) < MIN_CHARS
            self._num_cut += is_cut
            redactions = self._redact(row)
            number = self._remember(row)
            if redactions:
                self._texts.redactions[number] = redactions
            grams, drop = (_NO_GRAMS, _GONE) if is_gone else self._examine(number, row)
            if drop is None and redactions and (num_chars := len(row["text"])) < MIN_CHARS:
                drop = ("too_short", f"{num_chars} characters, redacted")
            gram_sets.append(grams)
            if drop:
                self._texts.drops[number] = drop
        self._texts.sign(gram_sets)

    def _cut(self, row: Row) -> bool:
        """Take boilerplate out of a row's text; return whether there was any."""
        if not self._boilerplate or not self._has_boilerplate(row):
            return False
        before = row["text"]
        row["text"] = self._boilerplate.cut(before)
        return bool(row["text"] != before)

    def _redact(self, row: Row) -> dict[str, int]:
        """Redact a row's text if that is asked for; return how many of which kind."""
        if not self._settings.redact:
            return {}
        row["text"], counts = redact(row["text"])
        return counts

    def _remember(self, row: Row) -> int:
        id_ = document_id(self._partition.source, row["native_id"], row["version_id"])
        return self._texts.add(row, id_, hashlib.sha256(row["text"].encode()).digest())

    def _examine(self, number: int, row: Row) -> tuple[Hashes, tuple[DropReason, str] | None]:
        """Return the 5-grams of a revised text, and why it is dropped."""
        text, is_code = row["text"], _is_code(row)
        tokens = tokens_of(text, is_code)
        grams = ngrams(tokens.hashes, SHINGLE)
        if not is_code:
            score, why = wrong_language(text, row["language"])
            if score is not None:
                self._texts.set_language_score(number, score)
            if why:
                return grams, ("wrong_language", why)
            if why := low_quality(text, tokens, grams):
                return grams, ("low_quality", why)
        self._sample.add(number, ngrams(tokens.hashes, SEEN_GRAM))
        return grams, None

    def _compare(self, sealed: SealedMonths) -> Comparison:
        drop_exact(self._texts)
        comparison = sealed.compare(self._texts, self._sample, self._info.keeps_versions)
        if not self._info.keeps_versions:
            drop_duplicates(self._texts, comparison.hits)
            later = sealed.later_duplicates(self._texts)
            if later.num_rows:
                self.beside[DUPLICATES_FILE] = duplicates_as_bytes(later)
            self.describe["later_duplicates"] = later.num_rows
        return comparison

    def _hand_on(self, spool: Spool, comparison: Comparison) -> Iterator[Outcome]:
        number = 0
        for batch in spool.batches():
            for row in batch:
                if drop := self._texts.drops.get(number):
                    yield Drop(row["native_id"], *drop)
                else:
                    self._cut(row)
                    self._redact(row)
                    yield {**row, **self._findings(number, comparison)}
                number += 1

    def _findings(self, number: int, comparison: Comparison) -> dict[str, Any]:
        """The columns of DOCUMENTS that hygiene fills."""
        share = float(comparison.shares[number])
        is_seen = share >= SEEN_BEFORE and comparison.num_sampled[number] >= MIN_SAMPLED
        redactions = self._texts.redactions.get(number, {})
        return {
            "language_score": self._texts.language_score(number),
            "similarity_to_prev": comparison.similarities.get(number),
            "seen_share": None if math.isnan(share) else share,
            "flags": [FLAG] if is_seen else [],
            "redactions": json.dumps(redactions) if self._settings.redact else None,
        }

    def _conclude(self, sealed: SealedMonths) -> None:
        kept = np.sort(self._texts.kept())
        path = sealed.scratch / SKETCH_FILE
        sketch_of(self._texts, kept, self._sample, path)
        self.beside[SKETCH_FILE] = path.read_bytes()
        redactions: Counter[str] = Counter()
        for row in kept.tolist():
            redactions.update(self._texts.redactions.get(row, {}))
        self.describe.update(
            compared_with=sealed.digests,
            boilerplate={**self._boilerplate.as_manifest(), "texts_changed": self._num_cut},
            redact=self._settings.redact,
            redactions=dict(sorted(redactions.items())),
        )


_GONE: tuple[DropReason, str] = ("boilerplate", f"less than {MIN_CHARS} characters of its own")
_NO_GRAMS: Hashes = np.empty(0, dtype=np.uint64)


def _is_code(row: Row) -> bool:
    return str(row["language"]).startswith("code:")
