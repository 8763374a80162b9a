"""Importing texts that are there already: a user's files as one sealed partition.

Formats:
    json-list: one JSON list of strings, as Uncheatable Eval publishes its data.
    jsonl: a line is a JSON object with ``text`` or a bare JSON string; blank lines do not count.
    parquet: a ``text`` column.
    folder: each regular file is one document, ordered by relative path; links and hidden files
        are left out.

Objects and Parquet rows may also have ``id``, ``title``, ``url``, ``date``, ``language``,
``licence`` and ``category``; a date is kept in ``extra``, and never decides the month.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.corpus import Partition, Seal, tables_of
from core.errors import MalformedInput
from core.sealing import seal_partition
from core.settings import MAX_DOCUMENT_BYTES
from core.storage import Store
from core.tombstones import is_forgotten, item_key, list_tombstones
from crawlers import manifest
from crawlers.cleaning import MIN_CHARS, Gate, clean
from crawlers.contract import Drop
from crawlers.text_files import Record, find_format, read_records
from crawlers.user_files import require_target


@dataclass(frozen=True)
class ImportOptions:
    """How to import.

    Attributes:
        format: ``auto`` or one of the formats above.
        clean: clean the texts as crawled ones are; else they are kept code point for code point.
        min_chars: shorter texts are dropped as ``too_short``.
        max_document_bytes: longer ones as ``too_long`` (TIDEMARK_MAX_DOCUMENT_BYTES).
        licence: SPDX id, of records that have none of their own.
        language: BCP 47, or ``code:python`` and the like; of records that have none of their own.
        replace: seal as the next version where other content is sealed.
    """

    format: str = "auto"
    clean: bool = False
    min_chars: int = MIN_CHARS
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    licence: str = "LicenseRef-unknown"
    language: str | None = None
    replace: bool = False


def import_texts(path: Path, partition: Partition, store: Store, options: ImportOptions) -> Seal:
    """Seal the texts of a file or folder as one partition.

    Nothing is written unless all of the file is well-formed. Empty, too short, too long and
    repeated texts are dropped; the manifest counts them by reason.

    Args:
        path: a file or a folder.
        partition: the source's name, and the month that the user says the texts are from.
        store: the data root.
        options: how.

    Returns:
        The seal; the old one where the same texts are sealed already.

    Raises:
        UsageError: there is no such file or format, the month is not over, the name is empty or
            that of a source of images or audio.
        MalformedInput: the file is not what it claims; names file and record.
        EmptyPartition: every record was dropped; the message counts the reasons.
        PartitionSealed: other content is sealed there and ``replace`` is not set.
    """
    require_target(partition, "text", store)
    run = _Import(path, find_format(path, options.format), partition, options)
    run.forgotten = list_tombstones(store)
    return seal_partition(store, partition, run.tables(), run.describe, options.replace, run.beside)


class _Import:
    """One run: its tables, and what the manifest says of it once they are used up."""

    def __init__(
        self, path: Path, format_: str, partition: Partition, options: ImportOptions
    ) -> None:
        self._path, self._format = path, format_
        self._partition, self._options = partition, options
        self._ledger = manifest.Ledger(partition)
        # A published corpus is measured as it is; who wants it cleaned wants duplicates out, too.
        self._gate = Gate(options.min_chars, options.max_document_bytes, not options.clean)
        self._ids: dict[str, str] = {}  # native_id -> the record that has it
        self.forgotten: frozenset[str] = frozenset()
        self.describe: dict[str, object] = {}
        self.beside: dict[str, bytes] = {}

    def tables(self) -> Iterator[pa.Table]:
        started_at = manifest.now()
        options = self._options
        records = read_records(self._path, self._format, options.max_document_bytes)
        rows = self._ledger.sift(map(self._examine, records))
        yield from tables_of(rows, self._partition)
        self.describe.update(
            kind="import",
            code_version=manifest.code_version(),
            file=self._path.name,
            format=self._format,
            is_cleaned=options.clean,
            started_at=started_at,
            ended_at=manifest.now(),
            min_chars=options.min_chars,
            max_document_bytes=options.max_document_bytes,
            **self._ledger.close(),
        )
        self.beside[manifest.DROPPED_FILE] = self._ledger.dropped_items()

    def _examine(self, record: Record | Drop) -> dict[str, Any] | Drop:
        """Return the row of a record, or why it has none."""
        if isinstance(record, Drop):
            return record
        source = self._partition.source
        if is_forgotten(self.forgotten, source, record.native_id, None):
            return Drop(item_key(source, record.native_id), "forgotten")
        row = self._row(record)
        if refusal := self._gate.refuse(record.native_id, row["text"]):
            reason, detail = refusal
            return Drop(record.native_id, reason, f"{record.where}: {detail}")
        if (first := self._ids.setdefault(record.native_id, record.where)) != record.where:
            raise MalformedInput(
                f"{record.where} has the id {record.native_id!r} of {first}; "
                "ids must be unique (without `id` fields, records are numbered)"
            )
        return row

    def _row(self, record: Record) -> dict[str, Any]:
        details = record.details
        language = details.get("language") or self._options.language
        is_code = (language or "").startswith("code:")
        return {
            "native_id": record.native_id,
            "date_kind": "given" if self._partition.month else "none",
            "url": details.get("url"),
            "title": details.get("title"),
            "category": details.get("category"),
            "language": language,
            "licence": details.get("licence") or self._options.licence,
            "extra": json.dumps({"date": details["date"]}) if "date" in details else None,
            "text": clean(record.text, is_code) if self._options.clean else record.text,
        }
