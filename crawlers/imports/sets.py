"""Import of ready-made sets: many files, in which each month becomes a sealed partition.

Rows come from tables (``tables``), web archives (``warc``), books and plain texts. They are written
to a temporary file for each month, and each month is sealed from its file. A row that cannot be
read, or that has no month, is a drop in the manifest of the first month; good rows are kept. A
month that cannot be sealed does not stop the others.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import progress
from core.corpus.partition import LOCAL_USE, Partition, Seal
from core.corpus.sealing import seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import EmptyPartition, TidemarkError, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.crawling import manifest
from crawlers.hygiene.month_texts import Spool
from crawlers.imports import tables
from crawlers.imports.books import read_epub, read_text
from crawlers.imports.dating import Dated, Dating
from crawlers.imports.sifting import Paragraphs, Repeats, judge, key_of
from crawlers.imports.tables import DataFile, Row, Rows
from crawlers.imports.text_files import regular_files, require_target
from crawlers.imports.texts import Import
from crawlers.imports.warc import read_archive
from crawlers.text.cleaning import MIN_CHARS, Gate, clean

FIELDS = ("text", "id", "title", "url", "date", "licence", "language", "category")
UNKNOWN = "LicenseRef-unknown"
_PENDING_CHARS = 2**24  # of rows that wait to be written, in all months together
MAX_MONTHS = 400
_PACKED = (".gz", ".zst")
_ARCHIVES = (".warc", ".wet")
_READERS = {
    **tables.READERS,
    **dict.fromkeys(_ARCHIVES, read_archive),
    ".epub": read_epub,
    ".txt": read_text,
    ".md": read_text,
}
_ODD = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class SetOptions:
    """The options of an import."""

    dating: Dating
    columns: Mapping[str, str] = field(default_factory=dict)  # column by field; default: its name
    sift: bool | None = None  # filter as ``sifting`` says; None: if there is a web archive
    clean: bool = False  # clean texts like crawled texts, and drop repeated ones
    min_chars: int = MIN_CHARS
    max_document_bytes: int = 16 * 2**20
    licence: str = UNKNOWN  # of rows that state none
    language: str | None = None  # of rows that state none; with ``sift``, the only one to keep
    regime: str | None = None
    replace: bool = False
    denied_hosts: Collection[str] = ()  # of web archives
    is_local: bool = False  # the texts may not be passed on; set by ``import_set``


@dataclass(frozen=True)
class Outcome:
    """The sealed months of an import, and the errors of the months that could not be sealed."""

    seals: tuple[Seal, ...]
    failures: tuple[str, ...]


def import_set(
    paths: Sequence[Path], source: str, store: Store, scratch: Path, options: SetOptions
) -> Outcome:
    """Seal the texts of files and folders, a partition for each month.

    Raise UsageError for an unknown field, a path that does not exist, or files of which none can be
    read; EmptyPartition, with counts and the first reason, if no row has a text and a month.
    """
    if odd := sorted({*options.columns} - {*FIELDS}):
        raise UsageError(f"there is no field {odd[0]!r}; fields are: {', '.join(FIELDS)}")
    files = _find_files(paths, options)
    has_web = any(_suffix(file.path) in _ARCHIVES for file in files)
    sift = has_web if options.sift is None else options.sift
    options = dataclasses.replace(options, sift=sift, is_local=has_web)
    require_target(Partition(source, None), "text", store)
    with ExitStack() as stack:
        months = _Months(stack, scratch, source, options)
        for number, file in enumerate(files, start=1):
            months.place(file, _read(file, options))
            progress.report("read", number, len(files))
        return months.seal(store, [file.name for file in files])


def _find_files(paths: Sequence[Path], options: SetOptions) -> list[DataFile]:
    found: list[DataFile] = []
    limits = options.max_document_bytes, options.denied_hosts
    try:
        for path in paths:
            if path.is_dir():
                names = regular_files(path)
                found += [DataFile(path / name, name, *limits) for name in names]
            elif path.is_file():
                found.append(DataFile(path, path.name, *limits))
            else:
                raise UsageError(f"there is no file or folder {path}")
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error}") from error
    counts = Counter(file.name for file in found)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise UsageError(f"two files are called {twice[0]}; import their common folder instead")
    return found


def _suffix(path: Path) -> str:
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in _PACKED]
    return suffixes[-1] if suffixes else ""


def _read(file: DataFile, options: SetOptions) -> Rows:
    suffix = _suffix(file.path)
    if (reader := _READERS.get(suffix)) is None:
        yield Drop(file.name, "unknown_format", _advice(suffix))
        return
    columns = {name: options.columns.get(name, name) for name in FIELDS}
    used = [*columns.values(), *options.dating.columns]
    try:
        for row in reader(file, used):
            if isinstance(row, Drop) or row.origin != "table":
                yield row
            else:
                yield _mapped(row, columns, options)
    except OSError as error:
        yield file.damaged("file", f"cannot be read: {error}")


def _advice(suffix: str) -> str:
    hints = {
        ".pdf": "PDF; make a text file of it first: pdftotext -layout FILE.pdf FILE.txt",
        ".zip": "a zip archive; unpack it first, and import the folder",
        ".html": "a page; import pages with `tidemark import-html`",
    }
    known = ", ".join(_READERS)
    return hints.get(suffix, f"{suffix or 'no suffix'}; known: {known}, each also {_PACKED}")


def _mapped(row: Row, columns: Mapping[str, str], options: SetOptions) -> Row | Drop:
    values = {name: row.values.get(column) for name, column in columns.items()}
    if columns["text"] not in row.values:
        known = ", ".join(map(str, row.values)) or "none"
        why = f"no column `{columns['text']}` (say --column text=…); its columns are: {known}"
        return Drop(row.place, "parse_error", f"{row.place}: {why}"[:500])
    if not isinstance(values["text"] or "", str):
        kind = type(values["text"]).__name__
        return Drop(row.place, "parse_error", f"{row.place}: the text is of type {kind}")
    named = {name: row.values.get(name) for name in options.dating.columns}
    return Row(row.place, {**values, **named})


class _Months:
    """The rows of an import by month, each month in a temporary file."""

    def __init__(self, stack: ExitStack, scratch: Path, source: str, options: SetOptions) -> None:
        self._stack, self._scratch, self._source = stack, scratch, source
        self._options = options
        self._months: dict[Month | None, _MonthRows] = {}
        self._unplaced: list[Drop] = []
        self._num_pending = 0

    def place(self, file: DataFile, rows: Rows) -> None:
        """Write each row to the file of its month."""
        dating = self._options.dating.of_file(file.name)
        for row in rows:
            if isinstance(row, Drop):
                self._unplaced.append(row)
            elif isinstance(dated := dating.month_of(row), Drop):
                self._unplaced.append(dated)
            else:
                self._add(row, dated)

    def _add(self, row: Row, dated: Dated) -> None:
        document = _document(row, dated, self._options)
        if isinstance(document, Drop):
            self._unplaced.append(document)
            return
        if dated.month not in self._months:
            if len(self._months) >= MAX_MONTHS:  # each has an open file
                raise UsageError(
                    f"{row.place} is of {dated.month}, after rows of {MAX_MONTHS} other months; "
                    "is that the right column of dates? If so, import fewer files at once"
                )
            spool = self._stack.enter_context(Spool(self._scratch))
            self._months[dated.month] = _MonthRows(spool, self._options)
        self._months[dated.month].add(row.values.get("id") is not None, document)
        self._limit_pending(len(document["text"]))

    def _limit_pending(self, num_chars: int) -> None:
        self._num_pending += num_chars
        if self._num_pending > _PENDING_CHARS:
            for each in self._months.values():
                each.spool.flush()
            self._num_pending = 0

    def seal(self, store: Store, names: Sequence[str]) -> Outcome:
        """Seal the months in their order; the first one gets the drops without a month."""
        if not self._months:
            counts = dict(Counter(drop.reason for drop in self._unplaced).most_common())
            first = f"; the first: {self._unplaced[0].detail}" if self._unplaced else ""
            raise EmptyPartition(f"{self._source}: nothing to keep (dropped: {counts or 0}){first}")
        seals: list[Seal] = []
        failures = []
        order = sorted(self._months, key=lambda month: (month is not None, str(month)))
        for number, month in enumerate(order):
            partition = Partition(self._source, month)
            sealing = _Sealing(partition, self._months[month], self._options, store)
            drops = [] if seals else self._unplaced
            try:
                seals.append(sealing.seal(names, drops))
            except TidemarkError as error:
                failures.append(f"{partition}: {error}")
            progress.report("seal", number + 1, len(order))
        return Outcome(tuple(seals), tuple(failures))


class _MonthRows:
    def __init__(self, spool: Spool, options: SetOptions) -> None:
        self.spool = spool
        self.ids = Repeats()  # stated ids that several rows have
        self.texts = Repeats() if options.clean and not options.sift else None
        self.lines = Paragraphs(spool.folder) if options.sift else None

    def add(self, has_id: bool, document: dict[str, Any]) -> None:
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


def _document(row: Row, dated: Dated, options: SetOptions) -> dict[str, Any] | Drop:
    """Return the columns of a document, or a drop for text that is no Unicode."""
    stated = {
        name: None if (value := row.values.get(name)) is None else str(value).strip() or None
        for name in FIELDS
        if name != "text"
    }
    language = stated["language"] or (None if options.sift else options.language)
    text = row.values["text"] or ""
    try:
        "".join([text, *filter(None, stated.values())]).encode()
    except UnicodeEncodeError as error:
        why = f"character {error.start} is half of a character, or was no UTF-8"
        return Drop(row.place, "damaged", f"{row.place}: {why}")
    if options.clean:
        text = clean(text, (language or "").startswith("code:"))
    extra = {"record": row.place, **({"date": stated["date"]} if stated["date"] else {})}
    return {
        "native_id": stated["id"] or row.place,
        "cluster_id": row.values.get("cluster"),
        "event_time": dated.moment,
        "date_kind": "given" if dated.month else "none",
        "url": stated["url"],
        "title": _ODD.sub(" ", stated["title"]) if stated["title"] else None,
        "category": stated["category"],
        "language": language,
        "licence": stated["licence"] or (UNKNOWN if row.origin == "web" else options.licence),
        "extra": json.dumps(extra),
        "text": text,
    }


class _Sealing:
    """Judges the rows of a month, and seals those that are kept."""

    def __init__(
        self, partition: Partition, rows: _MonthRows, options: SetOptions, store: Store
    ) -> None:
        self._partition, self._rows, self._options = partition, rows, options
        self._store, self._forgotten = store, list_tombstones(store)
        self._gate = Gate(options.min_chars, options.max_document_bytes, keeps_duplicates=True)
        self._ids: dict[str, str] = {}  # place of the first row of each repeated id
        self._texts: dict[int, str] = {}  # likewise of repeated texts

    def seal(self, names: Sequence[str], drops: Sequence[Drop]) -> Seal:
        self._rows.end()
        options, partition = self._options, self._partition
        rules: dict[str, object] = {
            "format": "set",
            "file": names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            "num_files": len(names),
            "columns": dict(options.columns),
            "dated_by": options.dating.describe(),
            "is_cleaned": options.clean,
            "is_sifted": options.sift,
            "min_chars": options.min_chars,
            "max_document_bytes": options.max_document_bytes,
        }
        if options.is_local:
            rules |= {"use": LOCAL_USE, "denied_hosts": list(options.denied_hosts)}
        is_cleaned = options.clean or options.sift
        regime = manifest.cleaned_regime(options.regime) if is_cleaned else options.regime
        if regime is not None:
            rules["regime"] = regime
        outcomes = self._outcomes(drops)
        run = Import(Path(names[0]), partition, outcomes, rules)
        return seal_partition(self._store, partition, run, options.replace)

    def _outcomes(self, drops: Sequence[Drop]) -> Iterator[dict[str, Any] | Drop]:
        yield from drops
        for batch in self._rows.spool.batches():
            kept = []
            for outcome in map(self._examine, batch):
                if isinstance(outcome, Drop):
                    yield outcome
                else:
                    kept.append(outcome)
            sifts = self._options.sift
            verdicts = judge(kept, self._options.language) if sifts else itertools.repeat(None)
            for row, verdict in zip(kept, verdicts, strict=False):
                yield Drop(row["native_id"], *verdict) if verdict else row

    def _examine(self, row: dict[str, Any]) -> dict[str, Any] | Drop:
        place, native_id = json.loads(row["extra"])["record"], row["native_id"]
        if is_forgotten(self._forgotten, self._partition.source, native_id, None):
            return Drop(item_key(self._partition.source, native_id), "forgotten")
        if self._rows.lines is not None:
            row["text"] = self._rows.lines.cut(row["text"])
        if refusal := self._gate.refuse(native_id, row["text"]):
            reason, detail = refusal
            return Drop(native_id, reason, f"{place}: {detail}")
        if self._rows.texts is not None and row["text"] in self._rows.texts:
            first = self._texts.setdefault(key_of(row["text"]), place)
            if first != place:
                return Drop(native_id, "exact_dup", f"{place}: same text as {first}")
        if native_id in self._rows.ids and self._ids.setdefault(native_id, place) != place:
            row["native_id"] = place  # the id of an earlier row
        return row
