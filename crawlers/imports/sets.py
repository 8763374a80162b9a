"""Import of texts: many files, in which each month of each source becomes a sealed partition.

Rows come from tables (``tables``), plain texts and saved pages (``plain``), and the files that
extras read. Each month's rows are written to a temporary file, from which the month is sealed. All
rows are of one source, or a column gives the source (``naming``). A row that cannot be read, or has
no month or source, is a drop in the manifest of the first partition. A month that cannot be sealed
does not stop the others. A strict import seals nothing if a row or month has such an error.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from core import progress
from core.corpus.partition import LOCAL_USE, Partition, Seal
from core.corpus.sealing import seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import EmptyPartition, MalformedInput, TidemarkError, UnknownName, UsageError
from core.plugins import import_parts
from core.schemas.tables import DocumentRow
from core.storage.store import Store
from crawlers.contract import Drop, DropReason
from crawlers.crawling import manifest
from crawlers.hygiene.month_texts import Spool
from crawlers.imports.dating import Dating
from crawlers.imports.documents import COLUMNS, FIELDS, ImportOptions, by_field, document_of
from crawlers.imports.naming import source_of
from crawlers.imports.readers import find_files, is_archive, read_rows
from crawlers.imports.repeats import Repeats, key_of
from crawlers.imports.tables import DataFile, Row
from crawlers.imports.target import contents_of, require_target
from crawlers.text.cleaning import refuse_length

MAX_PARTITIONS = 400  # each has an open file while the rows are read
_PENDING_CHARS = 2**24  # of rows that wait to be written, in all months together


@dataclass(frozen=True)
class Outcome:
    """The sealed months of an import, and the errors of the months that could not be sealed."""

    seals: tuple[Seal, ...]
    failures: tuple[str, ...]


def import_set(paths: Sequence[Path], source: str, store: Store, options: ImportOptions) -> Outcome:
    """Seal the texts of files and folders, a partition for each month of each source.

    With ``options.source_column``, the sources are ``<source>:<value>``.

    Raise UsageError for an unknown field, a path that does not exist, or files of which none can be
    read; EmptyPartition, with counts and the first reason, if no row has a text, a month and a
    source. Raise MalformedInput for damage, if ``options.is_strict``.
    """
    unknown = sorted({*options.columns} - {*FIELDS})
    if unknown:
        raise UnknownName("field", unknown[0], [*FIELDS])
    require_target(Partition(source, options.dating.month), "text", store)
    files = find_files(paths, options)
    has_web = any(is_archive(file.path) for file in files)
    sift = has_web if options.sift is None else options.sift
    if sift:
        find_sifting()
    options = dataclasses.replace(options, sift=sift, is_local=has_web or options.is_local)
    with ExitStack() as stack:
        months = _Months(stack, source, options, files)
        # With a pipe, rows are read while the month is sealed.
        if not months.pipe:
            for _ in months.place():
                pass
        names = [paths[0].name] if options.is_strict else [file.name for file in files]
        and_others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return months.seal(store, f"{names[0]}{and_others}" if names else "no file", len(files))


def find_sifting() -> ModuleType:
    """Return the module of an extra that filters texts; raise UsageError if there is none."""
    for part in import_parts("sifting"):
        return part
    raise UsageError(
        "texts of web archives are filtered by the extra import_sets, which is missing; add it"
    )


class _Pipe:
    """Takes the place of a temporary file if all rows are of one month: sealed while being read."""

    def __init__(self, place: Callable[[], Iterator[None]]) -> None:
        self._place = place
        self._rows: list[DocumentRow | Drop] = []
        self.add = self._rows.append

    def batches(self) -> Iterator[list[DocumentRow | Drop]]:
        for _ in self._place():
            yield self._rows.copy()
            self._rows.clear()

    def flush(self) -> None:
        pass

    end = flush


class _Months:
    """The rows of an import by month, each month in a temporary file."""

    def __init__(
        self, stack: ExitStack, source: str, options: ImportOptions, files: Sequence[DataFile]
    ) -> None:
        self._stack = stack
        self._source = source
        self._options = options
        self._files = files
        self.pipe = _Pipe(self.place) if options.is_strict and not options.clean else None
        self._columns = {name: options.columns.get(name, name) for name in FIELDS}
        self._months: dict[Partition, _MonthRows] = {}
        named = {*options.columns.values(), *options.dating.columns, *options.naming_columns}
        self._missing = named - {self._columns["text"]}  # no row of a table has these so far
        self._has_tables = False
        self._unplaced = manifest.Ledger(source)  # drops that have no partition
        self._first = ""  # the detail of the first of them
        self._num_pending = 0
        if options.is_strict:
            self._rows_of(Partition(source, options.dating.month))  # even without a row

    def place(self) -> Iterator[None]:
        """Write each row of the files to the temporary file of its month, and yield."""
        for number, file in enumerate(self._files, start=1):
            yield from self._place(file)
            progress.report("read", number, len(self._files))
        if self._missing and self._has_tables:
            missing = ", ".join(f"`{column}`" for column in sorted(self._missing))
            raise UsageError(f"no row has a column {missing}, which your options name")

    def _place(self, file: DataFile) -> Iterator[None]:
        """Write the rows of one file to the temporary files of their months; yield after each."""
        dating = self._options.dating.of_file(file.name)
        columns = [*self._columns.values(), *dating.columns, *self._options.naming_columns]
        for row in read_rows(file, self._options.format, columns):
            placed = row
            source: str | Drop = self._source
            if not isinstance(row, Drop):
                source = source_of(row, self._source, self._options.source_column)
                if row.origin == "table":
                    self._missing = self._missing - row.values.keys()
                    self._has_tables = True
                    placed = by_field(row, self._columns, self._options)
            self._take(placed, source, dating)
            yield

    def _take(self, row: Row | Drop, source: str | Drop, dating: Dating) -> None:
        """Write a row to the temporary file of its month, or record the first reason to drop it."""
        if isinstance(row, Drop):
            self._drop(row)
            return
        if isinstance(source, Drop):
            self._drop(source)
            return
        dated = dating.month_of(row)
        if isinstance(dated, Drop):
            self._drop(dated)
            return
        document = document_of(row, dated, self._options)
        if isinstance(document, Drop):
            self._drop(document)
            return
        rows = self._rows_of(Partition(source, dated.month), row.place)
        if row.origin == "web" and rows.has_page(document["url"]):
            why = f"{row.place}: the address came before in {dated.month}"
            self._drop(Drop(row.place, "exact_dup", why))
            return
        rows.add(row.values.get("id") is not None, document)
        self._limit_pending(len(document["text"]))

    def _drop(self, drop: Drop) -> None:
        """Record a drop that has no partition; a strict import raises MalformedInput for damage."""
        if self._options.is_strict and drop.reason in ("damaged", "parse_error"):
            raise MalformedInput(drop.detail)
        self._first = self._first or f"; the first: {drop.detail}"
        if self.pipe:
            self.pipe.add(drop)
        else:
            self._unplaced.pass_over(drop)

    def _rows_of(self, partition: Partition, place: str = "") -> _MonthRows:
        """Return the collected rows of a partition; raise UsageError beyond MAX_PARTITIONS."""
        if partition not in self._months:
            if len(self._months) >= MAX_PARTITIONS:
                asked = self._options.source_column
                what = f"dates, and `{asked}` that of sources" if asked else "dates"
                raise UsageError(
                    f"{place} is of {partition}, after rows of {MAX_PARTITIONS} other months; "
                    f"is that the right column of {what}? If so, import fewer files at once"
                )
            spool = Spool(self._options.scratch, COLUMNS)
            rows = self.pipe or self._stack.enter_context(spool)
            self._months[partition] = _MonthRows(rows, self._options)
        return self._months[partition]

    def _limit_pending(self, num_chars: int) -> None:
        """Write all waiting rows to their files once they have too many characters together."""
        self._num_pending += num_chars
        if self._num_pending > _PENDING_CHARS:
            for each in self._months.values():
                each.spool.flush()
            self._num_pending = 0

    def seal(self, store: Store, name: str, num_files: int) -> Outcome:
        """Seal the partitions in their order; the first one gets the drops that have none."""
        if not self._months:
            dropped = self._unplaced.count(Drop) or 0
            why = f"nothing to keep (dropped: {dropped}){self._first}"
            raise EmptyPartition(f"{self._source}: {why}")
        seals: list[Seal] = []
        failures = []
        order = sorted(self._months, key=lambda at: (at.source, at.month is not None, str(at)))
        for partition in order:
            sealing = _Sealing(partition, self._months[partition], self._options, store)
            try:
                if partition.source != self._source:  # else it was asked before reading
                    require_target(partition, "text", store)
                seals.append(sealing.seal(name, num_files, None if seals else self._unplaced))
            except TidemarkError as error:
                if self._options.is_strict:
                    raise
                failures.append(f"{partition}: {error}")
            progress.report("seal", len(seals), len(order), len(failures))
        return Outcome(tuple(seals), tuple(failures))


class _MonthRows:
    """The rows of one month, with the values that several rows have in common."""

    def __init__(self, spool: Spool | _Pipe, options: ImportOptions) -> None:
        self.spool = spool
        self.ids = Repeats()  # stated ids that several rows have
        self.texts = Repeats() if options.clean and not options.sift else None
        self.lines = None
        if isinstance(spool, Spool) and options.sift:
            self.lines = find_sifting().Paragraphs(spool.folder)
        self._pages: set[int] = set()  # hashes of the addresses in web archives

    def has_page(self, url: str | None) -> bool:
        """Return True if a page of this address came before; else remember the address."""
        if not url:
            return False
        key = hash(url)
        if key in self._pages:
            return True
        self._pages.add(key)
        return False

    def add(self, has_id: bool, document: DocumentRow) -> None:
        """Keep a row; ``has_id`` is True if its file states an id for it."""
        self.spool.add(document)
        if has_id:
            self.ids.add(document["native_id"])
        if self.texts is not None:
            self.texts.add(document["text"])
        if self.lines is not None:
            self.lines.add(document["text"])

    def end(self) -> None:
        self.spool.end()
        for each in (self.ids, self.texts, self.lines):
            if each is not None:
                each.end()


class _Sealing:
    """Judges the rows of a month, and seals those that are kept."""

    def __init__(
        self, partition: Partition, rows: _MonthRows, options: ImportOptions, store: Store
    ) -> None:
        self._partition = partition
        self._rows = rows
        self._options = options
        self._store = store
        self._forgotten = list_tombstones(store)
        self._ids: dict[str, str] = {}  # place of the first row of each repeated id
        self._texts: dict[int, str] = {}  # likewise of repeated texts

    def seal(self, name: str, num_files: int, unplaced: manifest.Ledger | None) -> Seal:
        """Seal the month; its manifest also counts ``unplaced``, the drops without a partition."""
        self._rows.end()
        rules = self._rules(num_files)
        contents = contents_of(name, self._partition, self._outcomes(), rules, unplaced)
        return seal_partition(self._store, self._partition, contents, self._options.replace)

    def _rules(self, num_files: int) -> dict[str, object]:
        """Return the options of the import for the manifest."""
        options = self._options
        rules: dict[str, object] = {
            "format": "set" if options.format == "auto" else options.format,
            "num_files": num_files,
            "columns": dict(options.columns),
            "dated_by": options.dating.describe(),
            **({"source_column": options.source_column} if options.source_column else {}),
            "is_sifted": options.sift,
            "is_cleaned": options.clean,
            "min_chars": options.min_chars,
            "max_document_bytes": options.max_document_bytes,
        }
        if options.origins:
            rules |= {"origins": [dict(each) for each in options.origins]}
        if options.is_local:
            rules |= {"use": LOCAL_USE, "denied_hosts": list(options.denied_hosts)}
        is_cleaned = options.clean or options.sift
        regime = manifest.cleaned_regime(options.regime) if is_cleaned else options.regime
        return rules if regime is None else {**rules, "regime": regime}

    def _outcomes(self) -> Iterator[DocumentRow | Drop]:
        """Yield each row to keep, or its drop."""
        for batch in self._rows.spool.batches():
            kept = []
            for outcome in map(self._examine, batch):
                if isinstance(outcome, Drop):
                    yield outcome
                else:
                    kept.append(outcome)
            verdicts: Iterable[tuple[DropReason, str] | None] = itertools.repeat(None)
            if self._options.sift:
                verdicts = find_sifting().judge(kept, self._options.language)
            for row, verdict in zip(kept, verdicts, strict=False):
                yield Drop(row["native_id"], *verdict) if verdict else row
        if self._rows.ids.end():  # of a pipe: found after the rows, which are read again
            for batch in self._rows.spool.batches():
                deque(map(self._examine, batch), maxlen=0)

    def _examine(self, row: DocumentRow | Drop) -> DocumentRow | Drop:
        """Return a row to keep, or its drop: it is forgotten, too short or long, or repeated."""
        if isinstance(row, Drop):
            return row
        native_id = row["native_id"]
        place = row.pop("attribution") or native_id
        if is_forgotten(self._forgotten, self._partition.source, native_id, None):
            return Drop(item_key(self._partition.source, native_id), "forgotten")
        if self._rows.lines is not None:
            row["text"] = self._rows.lines.cut(row["text"])
        options = self._options
        refusal = refuse_length(row["text"], options.max_document_bytes, options.min_chars)
        if refusal:
            reason, detail = refusal
            return Drop(native_id, reason, f"{place}: {detail}")
        if self._rows.texts is not None and row["text"] in self._rows.texts:
            first = self._texts.setdefault(key_of(row["text"]), place)
            if first != place:
                return Drop(native_id, "exact_dup", f"{place}: same text as {first}")
        if native_id in self._rows.ids and self._ids.setdefault(native_id, place) != place:
            if self._options.is_strict:
                raise MalformedInput(
                    f"{place} has the id {native_id!r} of {self._ids[native_id]}; "
                    "ids must be unique (without `id` fields, records are numbered)"
                )
            row["native_id"] = place  # the id of an earlier row
        return row
