"""Import of texts: a user's files become one sealed partition.

Formats:
    json-list: one JSON list of strings, as Uncheatable Eval publishes its data.
    jsonl: each line is a JSON object with ``text`` or a JSON string; blank lines are ignored.
    parquet: each row is a document, with a ``text`` column.
    folder: each regular file is a document (id: its path); links and hidden files are skipped.

Objects and Parquet rows may also have ``id``, ``title``, ``url``, ``date``, ``language``,
``licence`` and ``category``; ``names`` has other names of these fields. A date is stored in
``extra``, and has no effect on the month.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.corpus.partition import Partition, Seal, tables_of
from core.corpus.sealing import Description, seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import MalformedInput
from core.settings import MAX_DOCUMENT_BYTES
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.crawling import manifest
from crawlers.imports.text_files import Record, find_format, read_records, require_target
from crawlers.text.cleaning import MIN_CHARS, Gate, clean


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    format: str = "auto"  # ``auto``, or a format from the module's docstring
    clean: bool = False  # True: clean texts like crawled texts; False: keep them unchanged
    min_chars: int = MIN_CHARS  # shorter texts are dropped as ``too_short``
    # texts with more bytes are dropped as ``too_long`` (TIDEMARK_MAX_DOCUMENT_BYTES)
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    licence: str = "LicenseRef-unknown"  # SPDX id for records that state no licence
    language: str | None = None  # BCP 47 tag or ``code:python``, for records that state no language
    regime: str | None = None  # label of how the texts came about, to tell months apart
    replace: bool = False  # write a new version if different content is sealed already
    names: Mapping[str, str] = field(default_factory=dict)  # the file's names of fields, by ours


def import_texts(path: Path, partition: Partition, store: Store, options: ImportOptions) -> Seal:
    """Seal the texts of a file or folder as one partition.

    Nothing is written unless the whole file is well-formed. Texts that are empty, too short or too
    long are dropped. With ``clean``, repeated texts are dropped, too. The manifest counts drops by
    reason. If the same texts are sealed already, their seal is kept. Raise UsageError for an
    unknown file or format, a month that is not over, or a source without name or with images or
    recordings. Raise MalformedInput if the file is not well-formed; the error names file and
    record. Raise EmptyPartition if every record was dropped; the message counts the reasons. Raise
    PartitionSealed if different content is sealed already and ``replace`` is not set.
    """
    require_target(partition, "text", store)
    format_ = find_format(path, options.format)
    records = read_records(path, format_, options.max_document_bytes, options.names)
    return import_records(path, partition, store, options, format_, records)


def import_records(
    path: Path,
    partition: Partition,
    store: Store,
    options: ImportOptions,
    format_: str,
    records: Iterable[Record | Drop],
) -> Seal:
    """Seal records as one partition; raise the errors of ``import_texts``."""
    require_target(partition, "text", store)
    judge = _Judge(partition, options, list_tombstones(store))
    rules = {
        "format": format_,
        "is_cleaned": options.clean,
        "min_chars": options.min_chars,
        "max_document_bytes": options.max_document_bytes,
    }
    regime = manifest.cleaned_regime(options.regime) if options.clean else options.regime
    if regime is not None:
        rules["regime"] = regime
    run = Import(path, partition, map(judge.examine, records), rules)
    return seal_partition(store, partition, run, options.replace)


class Import:
    """The documents and the manifest of an import; the manifest includes the settings ``rules``."""

    def __init__(
        self,
        path: Path,
        partition: Partition,
        outcomes: Iterable[dict[str, Any] | Drop],
        rules: Mapping[str, object],
    ) -> None:
        self._path, self._partition = path, partition
        self._outcomes, self._rules = outcomes, rules
        self._ledger = manifest.Ledger(partition)
        self._started_at = manifest.now()

    def documents(self) -> Generator[pa.Table]:
        """Yield the kept documents; raise MalformedInput if a file cannot be read."""
        yield from tables_of(filter(self._ledger.keeps, self._outcomes), self._partition)

    def finish(self) -> Description:
        """Return the manifest and the dropped items; raise EmptyPartition if all are dropped."""
        described = {
            "kind": "import",
            "code_version": manifest.code_version(),
            "file": self._path.name,
            **self._rules,
            "started_at": self._started_at,
            "ended_at": manifest.now(),
            **self._ledger.close(),
        }
        return Description(described, {manifest.DROPPED_FILE: self._ledger.dropped_items()})


class _Judge:
    def __init__(
        self, partition: Partition, options: ImportOptions, forgotten: frozenset[str]
    ) -> None:
        self._partition, self._options, self._forgotten = partition, options, forgotten
        # Duplicates are dropped only with ``clean``, so that a published corpus stays unchanged.
        self._gate = Gate(options.min_chars, options.max_document_bytes, not options.clean)
        self._ids: dict[str, str] = {}  # native id -> place of the record that has it

    def examine(self, record: Record | Drop) -> dict[str, Any] | Drop:
        if isinstance(record, Drop):
            return record
        source = self._partition.source
        if is_forgotten(self._forgotten, source, record.native_id, None):
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
