"""The stages that need a whole month, in order; documents stream through a file on local disk.

    1. Write documents to the file as they arrive, and sample their lines.
    2. Count candidate lines, to find boilerplate.
    3. Cut, redact and judge each text by itself; store its n-grams and digest for comparison.
    4. Compare texts with each other and with sealed months, to find duplicates.
    5. Read the kept texts again, count their defects, and yield them in the order of the crawl.

The result for a text depends on the month's documents, and on the sealed months that the manifest
lists (``compared_with``). The order of documents has no effect.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus.partition import Partition, document_id
from core.corpus.sealing import Description
from core.schemas.tables import DocumentRow
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Drop, DropReason, SourceInfo
from crawlers.crawling.manifest import Outcome
from crawlers.hygiene import duplicates, sketches
from crawlers.hygiene.boilerplate import Boilerplate, LineSample
from crawlers.hygiene.mojibake import find_mojibake
from crawlers.hygiene.month_texts import MonthTexts, Spool
from crawlers.hygiene.quality import Ranks, low_quality, rank_languages, wrong_language
from crawlers.hygiene.redaction import redact
from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import Hashes, ngrams, tokens_of
from crawlers.text.cleaning import MIN_CHARS
from crawlers.text.defects import DefectCounts


class Hygiene:
    """Decides which documents of one month are kept, and changes their texts."""

    def __init__(
        self, partition: Partition, info: SourceInfo, store: Store, settings: Settings
    ) -> None:
        self._partition = partition
        self._info = info
        self._store = store
        self._settings = settings
        self._texts = MonthTexts()
        self._sample = sketches.GramSample()
        self._boilerplate = Boilerplate({})
        self._num_cut = 0  # texts from which boilerplate was cut
        self._defects = DefectCounts()

    def sift(self, outcomes: Iterable[Outcome]) -> Generator[Outcome | Description]:
        """Yield outcomes without a text at once; then yield each document or its drop.

        The last item has facts for the manifest, and files for the partition.
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
            sealed = duplicates.SealedMonths.of(self._store, self._partition, spool.folder)
            comparison = self._compare(sealed)
            later = None if self._info.keeps_versions else sealed.later_duplicates(self._texts)
            yield from self._hand_on(spool, comparison)
            description = self._describe(sealed, later)
        yield description

    def _has_boilerplate(self, row: DocumentRow) -> bool:
        """Return False for code, and for sources that keep versions of the same items."""
        return not (_is_code(row) or self._info.keeps_versions)

    def _count_lines(self, spool: Spool, lines: LineSample) -> None:
        """Find the boilerplate among the sampled lines, by counting them in all texts."""
        counts = lines.count_candidates()
        if counts is None:
            return
        for batch in spool.batches():
            for row in filter(self._has_boilerplate, batch):
                counts.add(row["text"])
        self._boilerplate = counts.boilerplate()

    def _judge(self, batch: list[DocumentRow]) -> None:
        """Store each text's data for comparison, and the reason to drop it, if any."""
        gram_sets = []
        prepared = [self._prepare(row) for row in batch]
        prose = [row for row, (_, is_gone) in zip(batch, prepared, strict=True) if not is_gone]
        prose = [row for row in prose if not _is_code(row)]
        languages = dict(
            zip(map(id, prose), rank_languages([row["text"] for row in prose]), strict=True)
        )
        for row, (redactions, is_gone) in zip(batch, prepared, strict=True):
            id_ = document_id(self._partition.source, row["native_id"], row["version_id"])
            number = self._texts.add(row, id_, hashlib.sha256(row["text"].encode()).digest())
            if redactions:
                self._texts.redactions[number] = redactions
            ranks = languages.get(id(row))
            grams, drop = (_NO_GRAMS, _GONE) if is_gone else self._examine(number, row, ranks)
            num_chars = len(row["text"])
            if drop is None and redactions and num_chars < MIN_CHARS:
                drop = ("too_short", f"{num_chars} characters, redacted")
            gram_sets.append(grams)
            if drop:
                self._texts.drops[number] = drop
        self._texts.sign(gram_sets)

    def _prepare(self, row: DocumentRow) -> tuple[dict[str, int], bool]:
        """Cut and redact a text; return its redactions, and True if too little of it is left."""
        is_cut = self._cut(row)
        is_gone = is_cut and len(row["text"]) < MIN_CHARS
        self._num_cut += is_cut
        return self._redact(row), is_gone

    def _cut(self, row: DocumentRow) -> bool:
        """Remove the boilerplate from a row's text; return True if the text changed."""
        if not self._boilerplate or not self._has_boilerplate(row):
            return False
        before = row["text"]
        row["text"] = self._boilerplate.cut(before)
        return row["text"] != before

    def _redact(self, row: DocumentRow) -> dict[str, int]:
        if not self._settings.redact:
            return {}
        row["text"], counts = redact(row["text"])
        return counts

    def _examine(
        self, number: int, row: DocumentRow, ranks: Ranks | None
    ) -> tuple[Hashes, tuple[DropReason, str] | None]:
        """Return a text's 5-grams and its drop, or None to keep it; ``ranks`` are None for code."""
        text = row["text"]
        tokens = tokens_of(text, is_code=ranks is None)
        grams = ngrams(tokens.hashes, SHINGLE)
        if ranks is not None:
            why = find_mojibake(text)
            if why:
                return grams, ("mojibake", why)
            score, why = wrong_language(ranks, row["language"] or "")
            if score is not None:
                self._texts.language_scores[number] = score
            if why:
                return grams, ("wrong_language", why)
            why = low_quality(text, tokens, grams)
            if why:
                return grams, ("low_quality", why)
        self._sample.add(number, ngrams(tokens.hashes, sketches.SEEN_GRAM))
        return grams, None

    def _compare(self, sealed: duplicates.SealedMonths) -> duplicates.Comparison:
        """Drop exact and near duplicates; return the comparison with earlier months."""
        duplicates.drop_exact(self._texts)
        comparison = sealed.compare(self._texts, self._sample, self._info.keeps_versions)
        if not self._info.keeps_versions:
            duplicates.drop_duplicates(self._texts, comparison.hits)
        return comparison

    def _hand_on(self, spool: Spool, comparison: duplicates.Comparison) -> Iterator[Outcome]:
        """Yield the drop of each text, or its row, cut and redacted again as in ``_judge``."""
        number = 0
        for batch in spool.batches():
            for row in batch:
                drop = self._texts.drops.get(number)
                if drop:
                    yield Drop(row["native_id"], *drop)
                else:
                    self._cut(row)
                    self._redact(row)
                    if not _is_code(row):
                        self._defects.add(row["text"])
                    yield {**row, **self._findings(number, comparison)}
                number += 1

    def _findings(self, number: int, comparison: duplicates.Comparison) -> DocumentRow:
        """Return the columns that hygiene computes for a kept text."""
        share = float(comparison.shares[number])
        is_seen = (
            share >= sketches.SEEN_BEFORE and comparison.num_sampled[number] >= sketches.MIN_SAMPLED
        )
        redactions = self._texts.redactions.get(number, {})
        score = self._texts.language_scores[number]
        return {
            "language_score": None if math.isnan(score) else score,
            "similarity_to_prev": comparison.similarities.get(number),
            "seen_share": None if math.isnan(share) else share,
            "flags": [sketches.FLAG] if is_seen else [],
            "redactions": json.dumps(redactions) if self._settings.redact else None,
        }

    def _describe(self, sealed: duplicates.SealedMonths, later: pa.Table | None) -> Description:
        """Return the manifest's facts, and the files: the sketch and later months' duplicates."""
        kept = np.sort(self._texts.kept())
        path = sealed.scratch / sketches.SKETCH_FILE
        sketches.sketch_of(self._texts, kept, self._sample, path)
        files = {sketches.SKETCH_FILE: path.read_bytes()}
        redactions: Counter[str] = Counter()
        for row in kept.tolist():
            redactions.update(self._texts.redactions.get(row, {}))
        facts: dict[str, object] = {}
        if later is not None:
            facts["later_duplicates"] = later.num_rows
        facts |= {
            "compared_with": sealed.digests,
            "boilerplate": {**self._boilerplate.as_manifest(), "texts_changed": self._num_cut},
            "redact": self._settings.redact,
            "redactions": dict(sorted(redactions.items())),
            "defects": self._defects.as_manifest(),
        }
        if later is not None and later.num_rows:
            sink = io.BytesIO()
            pq.write_table(later, sink, compression="zstd", write_page_checksum=True)
            files[duplicates.DUPLICATES_FILE] = sink.getvalue()
        return Description(facts, files)


_GONE: tuple[DropReason, str] = ("boilerplate", f"less than {MIN_CHARS} characters of its own")
_NO_GRAMS: Hashes = np.empty(0, dtype=np.uint64)


def drop_repeated_pieces(outcomes: Iterable[Outcome]) -> Generator[Outcome | Description]:
    """Yield the outcomes of a month of media, then an empty description."""
    # A piece of an image or recording whose bytes came before in the month becomes a drop.
    seen: dict[bytes, str] = {}  # digest of a piece -> its native id
    for outcome in outcomes:
        if isinstance(outcome, dict):
            digest = hashlib.sha256(outcome["media"]).digest()
            first = seen.setdefault(digest, outcome["native_id"])
            if first != outcome["native_id"]:
                yield Drop(outcome["native_id"], "exact_dup", f"same bytes as {first}")
                continue
        yield outcome
    yield Description()


def _is_code(row: DocumentRow) -> bool:
    return str(row["language"]).startswith("code:")
