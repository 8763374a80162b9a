"""Rebuilding of the warehouse from the cells in the data root.

    <scratch>/rebuild/writer.duckdb    the new database, which replaces the old one when complete

Rows that came from files of other people are in no cell. They are copied from the old database, or
from the published snapshot if the database is lost or damaged. A database that could not be read is
kept beside the new one, as ``writer.duckdb.kept-1``.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from core import progress
from core.cells.files import FoundCells, find_cells
from core.errors import (
    DamagedDatabase,
    DiskFull,
    NewerVersion,
    StorageError,
    TidemarkError,
    WarehouseError,
)
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors, replace_durably
from instruments.landing import land_losses
from instruments.written import land_texts_of
from models.catalogue import ModelEntry, list_models
from warehouse.database import writer
from warehouse.database.faults import ADVICE_ON_NEWER, find_fault
from warehouse.database.lock import FILE as WRITER_FILE
from warehouse.database.lock import require_writer
from warehouse.database.repair import require_known_databases
from warehouse.database.schema import SNAPSHOT, WRITER, qualify
from warehouse.database.statements import explain_database_errors, quoted
from warehouse.database.writer import (
    connected,
    locked,
    transaction,
    write_journal,
    writer_path,
)
from warehouse.land.losses import open_warehouse

FOLDER = "rebuild"
# Tables whose rows are in no cell of the data root, or not all of them.
_CARRIED = (
    "benchmark_scores", "canary_runs", "forgotten_documents", "human_difficulty",
    "published_rates", "text_comparisons",
)  # fmt: skip
_BYTES_PER_LOSS = 100  # of the database, with sums and replicates
_LOSSES_PER_S = 100_000


@dataclass(frozen=True)
class RebuildPlan:
    """The work of a rebuild: cells to land, and the space and time that it needs."""

    cells: FoundCells
    num_file_bytes: int  # size of the files of losses
    num_free_bytes: int  # free space on the disk of the scratch folder

    @property
    def num_losses(self) -> int:
        """An estimate of the number of losses; one takes about 24 bytes of a file."""
        return self.num_file_bytes // 24

    @property
    def num_bytes(self) -> int:
        """An estimate of the size of the new database."""
        return self.num_losses * _BYTES_PER_LOSS

    @property
    def seconds(self) -> float:
        """An estimate of the duration."""
        cells = self.cells
        num_cells = len(cells.losses) + len(cells.answers) + len(cells.puzzles)
        return self.num_losses / _LOSSES_PER_S + num_cells * 0.05


@dataclass(frozen=True)
class Rebuilt:
    """The result of a rebuild."""

    num_cells: int  # number of landed cells
    problems: tuple[str, ...]  # what could not be landed, and why
    is_replaced: bool  # True if the new database has replaced the old one
    notes: tuple[str, ...] = ()  # which files were damaged, and where they are kept


def plan_rebuild(settings: Settings) -> RebuildPlan:
    """List the cells of the data root, and estimate space and time.

    Raises:
        NewerVersion: a later version wrote the database or the snapshot.
    """
    require_known_databases(settings)
    store = Store(settings.home)
    stamps = store.list_stamped("losses/model=*/source=*/month=*/*.parquet")
    folder = settings.scratch
    with explain_disk_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        num_free = shutil.disk_usage(folder).free
    num_bytes = sum(stamp.num_bytes for stamp in stamps.values())
    return RebuildPlan(find_cells(store), num_bytes, num_free)


def rebuild(settings: Settings, plan: RebuildPlan, may_lack: bool = False) -> Rebuilt:
    """Land all cells of the data root in a new database, and replace the old one.

    Other writers wait meanwhile. If something cannot be landed, the old database stays, unless
    ``may_lack``. Publish afterwards. After a kill, repeat the call: it begins again.

    Raises:
        DiskFull: there is no space for a second database; the old one stays.
        NewerVersion: a later version wrote the old database; it stays.
    """
    new = settings.model_copy(update={"work_dir": settings.scratch / FOLDER})
    with locked(settings):
        require_writer(settings)
        problems = list(plan.cells.problems)
        unread = _carry(settings, new, problems)  # first, because cells replace rows of their keys
        num_cells = _land_all(new, plan.cells, problems)
        with connected(new) as connection:
            write_journal(connection)
        is_replaced = may_lack or not problems
        notes = []
        if is_replaced:
            notes = _keep(settings, unread, is_partial=bool(problems))
            writer_path(settings).with_name(f"{WRITER}.wal").unlink(missing_ok=True)
            replace_durably(writer_path(new), writer_path(settings))
        shutil.rmtree(new.scratch, ignore_errors=True)
    return Rebuilt(num_cells, tuple(problems), is_replaced, tuple(notes))


def _begin(settings: Settings, new: Settings) -> None:
    """Create an empty database that this machine may write."""
    shutil.rmtree(new.scratch, ignore_errors=True)  # of a killed rebuild, or of an attempt before
    new.scratch.mkdir(parents=True)
    named = settings.scratch / WRITER_FILE
    if named.exists():
        shutil.copyfile(named, new.scratch / WRITER_FILE)
    writer.connect_file(writer_path(new), new).close()


def _land_all(new: Settings, cells: FoundCells, problems: list[str]) -> int:
    """Land all cells of each model; note problems, and return the number that landed."""
    entries = {entry.name: entry for entry in list_models(new)}
    num_landed = 0
    for number, model in enumerate(cells.models, start=1):
        entry = entries.get(model)
        has_losses = any(cell.model == model for cell in cells.losses)
        if entry is None and has_losses:
            problems.append(
                f"{model} is not in the catalogue: add it with `tidemark models add`, then run "
                "the same command again"
            )
        lands = [partial(land_texts_of, model, cells, new)]
        if entry is not None:
            lands.insert(0, partial(_land_losses_of, new, entry, cells))
        for land in lands:
            try:
                num_landed += land()
            except TidemarkError as error:
                problems.append(f"{model}: {error}")
        progress.report("rebuild", number, len(cells.models), len(problems))
    return num_landed


def _land_losses_of(new: Settings, entry: ModelEntry, cells: FoundCells) -> int:
    losses = tuple(cell for cell in cells.losses if cell.model == entry.name)
    return len(land_losses(entry, losses, new)) if losses else 0


def _carry(settings: Settings, new: Settings, problems: list[str]) -> dict[str, str]:
    """Begin the new database with the rows of an old one that are in no cell.

    The first of these that can be read in full is taken: the writer's database, this database
    without its journal, the published snapshot. If none can be read, ``problems`` says so.

    Returns:
        Those that cannot be read, and why.
    """
    unread: dict[str, str] = {}
    for name, fetch in _former_databases(settings):
        _begin(settings, new)
        copy = new.scratch / "former.duckdb"
        try:
            with explain_disk_errors(str(copy)):
                fetch(copy)
            fault = find_fault(copy)
            if fault and fault.kind == "newer":
                raise NewerVersion(f"{name} {fault.reason}. {ADVICE_ON_NEWER}")
            if fault:
                raise DamagedDatabase(f"{name} {fault.reason}")
            _carry_from(copy, new)
        except (DiskFull, NewerVersion):
            raise
        except (StorageError, WarehouseError) as error:
            unread[name] = str(error)
            continue
        return unread
    _begin(settings, new)
    if unread:
        problems.append(
            f"rows of other people's files cannot be copied: {'; '.join(unread.values())}. "
            f"Bring {Store(settings.home).url(SNAPSHOT)} back from a backup, then run the same "
            "command again; or run `tidemark rebuild --partial`, then land those files again"
        )
    return unread


def _former_databases(settings: Settings) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield the name of each copy of the warehouse, and a function that copies it to a path."""
    path = writer_path(settings)
    journal = path.with_name(f"{WRITER}.wal")
    if path.exists() and journal.exists():
        yield f"{path} with its journal {journal.name}", partial(_copy_both, path, journal)
    if path.exists():
        yield str(path), partial(shutil.copyfile, path)
    store = Store(settings.home)
    if store.exists(SNAPSHOT):
        yield store.url(SNAPSHOT), partial(store.fetch, SNAPSHOT)


def _copy_both(path: Path, journal: Path, copy: Path) -> None:
    shutil.copyfile(path, copy)
    shutil.copyfile(journal, copy.with_name(f"{copy.name}.wal"))


def _carry_from(old: Path, new: Settings) -> None:
    """Copy the rows that are in no cell from an old database, after migrating it."""
    writer.connect_file(old, new).close()
    imported = new.scratch / "imported.parquet"
    with (
        contextlib.closing(writer.connect_file(writer_path(new), new)) as connection,
        explain_database_errors(f"read {old}"),
    ):
        connection.execute(f"attach {quoted(str(old))} as former")
        with transaction(connection, "copy rows of the old warehouse"):
            _copy_rows(connection)
        num_losses = _write_imported(connection, imported)
        connection.execute("detach former")
    if num_losses:
        with open_warehouse(new) as warehouse:
            warehouse.land_file(imported)


def _keep(settings: Settings, unread: Mapping[str, str], is_partial: bool) -> list[str]:
    """Keep copies of what the new database may lack rows of; return what is kept, and where."""
    if not unread and not is_partial:
        return []
    path = writer_path(settings)
    store = Store(settings.home)
    kept = []
    if path.exists():
        target = _free_name(path)
        journal = path.with_name(f"{WRITER}.wal")
        if journal.exists():
            _give_name(journal, Path(f"{target}.wal"))
        _give_name(path, target)
        kept.append(f"{path} is kept as {target}")
    url = store.url(SNAPSHOT)
    if url in unread:
        target = _free_name(settings.scratch / SNAPSHOT)
        with contextlib.suppress(StorageError, OSError):  # a folder, or unreadable as a whole
            store.fetch(SNAPSHOT, target)
            kept.append(f"a copy of {url} is kept as {target}")
    reasons = [f"{reason}: its rows were not used" for reason in unread.values()]
    return [
        *reasons, *kept,
        "land again what came from other people's files since the last publication, and run "
        "`tidemark check --deep`; delete what is kept when it finds nothing and no row is missing",
    ]  # fmt: skip


def _give_name(path: Path, name: Path) -> None:
    """Give a file a second name, so that it can be replaced at once; rename a folder."""
    if path.is_dir():
        path.rename(name)
    else:
        name.hardlink_to(path)


def _free_name(path: Path) -> Path:
    """Return the first of ``<path>.kept-1``, ``<path>.kept-2``, … that does not exist."""
    names = (path.with_name(f"{path.name}.kept-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _copy_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Copy rows that no cell holds from the former database to the new one."""
    for table in map(qualify, _CARRIED):
        connection.execute(
            f"insert into {table} by name (from former.{table} except all from {table})"
        )
    for table, key in (("models", "model"), ("sources", "source"), ("protocols", "protocol")):
        connection.execute(
            f"insert into {table} by name from former.main.{table} "  # noqa: S608 - constant names
            f"where {key} not in (select {key} from {table})"
        )
    connection.execute(
        "insert into forecast_answers by name from former.main.forecast_answers "
        "where answer_cell is null"
    )
    connection.execute(
        "insert into forecast_questions by name from former.main.forecast_questions as theirs "
        "where not exists (from forecast_questions as ours "
        "where ours.source = theirs.source and ours.question_id = theirs.question_id)"
    )


def _write_imported(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Write the losses that others computed to a file; return their number."""
    target = str(path).replace("'", "''")
    [(num_losses,)] = connection.execute(
        f"""copy (
            select losses.* from former.main.chunk_losses as losses
            semi join (
                from former.internal.landed_cells
                where partition_digest is null or scoring is null
            ) as imported
                on losses.model = imported.model
                and losses.source = imported.source
                and losses.month is not distinct from imported.month
                and losses.protocol = imported.protocol
        ) to '{target}' (format parquet)"""  # noqa: S608 - a path of ours
    ).fetchall()
    return int(num_losses)
