"""Staging of losses before landing: read, check, sum per document, merge with landed rows.

A file with exactly the columns of schema LOSSES is read in place, in several passes. Other losses,
and losses of cells that have landed, are first copied into a table. Copying is slow.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.errors import CellConflict, SchemaMismatch, WarehouseError
from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from core.settings import MAX_NAME_BYTES
from warehouse.database.statements import Statements, show

_CHECKED_ROWS = 65_536  # number of rows whose names are checked at a time
_BATCH_ROWS = 245_760  # two full row groups; DuckDB would compress partial groups twice


class Incoming:
    """The losses to land: view ``incoming`` in the database, and a table of sums per document."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._is_staged = False

    def stage(self, tables: Iterable[pa.Table], where: str) -> None:
        """Copy losses from validated tables into the staging table.

        Raises:
            SchemaMismatch: there is no row, or a row is duplicate or has an impossible value.
        """
        self._statements.run("create_staged")
        self._is_staged = True
        for table in tables:
            with self._statements.given(losses_to_land=table):
                self._statements.run("read_given")
                self._statements.run("stage_incoming")
        self._statements.run("read_staged")
        self._group()
        self._check(where)

    @contextlib.contextmanager
    def read_file(self, path: Path) -> Iterator[None]:
        """Make a Parquet file the incoming losses in a ``with`` block, in place or as a copy.

        Raises:
            OSError, pa.ArrowInvalid: the file cannot be read.
            SchemaMismatch: a row violates schema LOSSES or is duplicate; the message names it.
        """
        with contextlib.ExitStack() as stack:
            if not self._read_in_place(path, stack):
                _require_short_names(path)
                self.stage(_read_valid(path), str(path))
            yield

    def _read_in_place(self, path: Path, stack: contextlib.ExitStack) -> bool:
        """Read the file in place; return False if DuckDB cannot read it, or a row is invalid."""
        if not _is_plain(path):
            return False
        # Use a link with a safe name: in a path, DuckDB takes [, * and ? as glob patterns.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-landing-")))
        link = folder / "losses.parquet"
        link.symlink_to(path.resolve())
        connection = self._statements.connection
        try:
            relation = connection.read_parquet(str(link))
            stack.enter_context(self._statements.given(losses_to_land=relation))
            if self._statements.run("count_broken")[0][0]:
                return False
            self._statements.run("read_given")
            self._group()
            self._is_staged = False
        except (duckdb.Error, WarehouseError):
            return False
        self._check(str(path))
        return True

    def read_partition(self, key: Mapping[str, object]) -> None:
        """Make the landed losses of the partition of a source and month the incoming losses."""
        schema = pa.schema([("source", pa.string()), ("month", pa.date32())])
        wanted = pa.Table.from_pylist([dict(key)], schema=schema)
        with self._statements.given(partition_to_read=wanted):
            self._statements.run("read_partition")
            self._group()
        self._statements.run("find_touched")

    def _group(self) -> None:
        self._statements.run("number_cells")
        self._statements.run("group_documents")

    def _check(self, where: str) -> None:
        """Raise SchemaMismatch for no rows, duplicate rows, or rows with impossible values."""
        [(num_rows, num_duplicates)] = self._statements.run("count_incoming")
        if not num_rows:
            raise SchemaMismatch(f"{where}: has no rows, so there is nothing to land")
        if num_duplicates:
            row = self._statements.first("find_duplicate")
            if row:
                raise SchemaMismatch(f"{where}: a chunk comes more than once: {show(row)}")
        today = dt.datetime.now(dt.UTC).date()
        self._statements.run("define_bad_names")
        row = self._statements.first("find_impossible", {"today": today})
        if row:
            # Names may have control characters, which a terminal obeys.
            shown = show({name: _escaped(value) for name, value in row.items() if name != "rule"})
            raise SchemaMismatch(
                f"{where}: {row['rule']}: {shown}. Nothing of it was landed; mend the row, then "
                "land it again"
            )

    def refuse_twin(self, where: str) -> None:
        """Raise SchemaMismatch if a new model, source or protocol looks like another one."""
        row = self._statements.first("find_twin")
        if row:
            kind = row["kind"]
            raise SchemaMismatch(
                f"{where}: the {kind} {row['name']!r} is new, and differs from {row['twin']!r} in "
                f"letter case or blanks alone, so one {kind} would become two. Nothing of it was "
                "landed; write the name as before, or another one, then land the rows again"
            )

    def count(self) -> tuple[int, int]:
        """Return the number of incoming rows and the number of incoming cells."""
        [(num_rows, _)] = self._statements.run("count_incoming")
        return int(num_rows), self._statements.count("incoming_cells")

    def merge(self, where: str, replace: bool) -> int:
        """Merge incoming rows with the landed rows of the same cells.

        Returns:
            Number of new rows.

        Raises:
            CellConflict: a row differs from the landed row with the same key; the message names it.
        """
        run = self._statements.run
        run("find_touched")
        if not self._statements.count("touched"):
            return self.count()[0]
        if not self._is_staged:
            run("create_staged")
            run("stage_incoming")
            run("read_staged")
        run("drop_landed_rows")
        row = None if replace else self._statements.first("find_conflict")
        if row:
            raise CellConflict(
                f"{where}: disagrees with what is landed: {show(row)}; nothing of it was landed. "
                "Use --replace to put the file's losses in their place"
            )
        self._group()
        num_rows = self.count()[0]
        run("find_touched")  # find the cells again: some may have no new rows
        run("merge_landed_rows")
        self._group()
        return num_rows


def _escaped(value: object) -> object:
    return ascii(value) if isinstance(value, str) else value


def _read_valid(path: Path) -> Iterator[pa.Table]:
    """Read a file of losses in parts, and validate each part."""
    num_rows = 0
    with path.open("rb") as stream, pq.ParquetFile(stream) as file:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            where = f"{path} (rows from {num_rows})" if num_rows else str(path)
            yield validate(pa.Table.from_batches([batch]), LOSSES, where)
            num_rows += batch.num_rows


def _require_short_names(path: Path) -> None:
    """Raise SchemaMismatch if a name is too long, before names are decoded for each row."""
    in_file = pq.read_schema(path).names
    texts = [field.name for field in LOSSES if pa.types.is_string(field.type)]
    present = [name for name in texts if in_file.count(name) == 1]
    with path.open("rb") as stream, pq.ParquetFile(stream, read_dictionary=present) as file:
        numbers = {file.schema.column(n).path: n for n in range(file.metadata.num_columns)}
        for group in range(file.num_row_groups):  # Arrow cannot join dictionaries of two groups
            for name in present:
                number = numbers.get(name)
                if number is not None:  # the mean size shows huge names before they are decoded
                    chunk = file.metadata.row_group(group).column(number)
                    mean = chunk.total_uncompressed_size / max(1, chunk.num_values)
                    _require_short(path, name, int(mean))
            for batch in file.iter_batches(_CHECKED_ROWS, row_groups=[group], columns=present):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    values = getattr(column, "dictionary", column)
                    if pa.types.is_string(values.type):
                        longest = pc.max(pc.binary_length(values)).as_py()
                        _require_short(path, name, longest or 0)


def _require_short(path: Path, name: str, num_bytes: int) -> None:
    if num_bytes > MAX_NAME_BYTES:
        raise SchemaMismatch(
            f"{path}: {name} has a value of {num_bytes:,} bytes; expected a name of at most "
            f"{MAX_NAME_BYTES:,}. Nothing of it was landed; shorten the name, then land it again"
        )


def _is_plain(path: Path) -> bool:
    """Return True if a Parquet file has exactly the columns of LOSSES, with their types."""
    fields = [(field.name, field.type) for field in pq.read_schema(path)]
    return len(fields) == len(LOSSES) and all((each.name, each.type) in fields for each in LOSSES)
