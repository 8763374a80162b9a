"""Artifacts: what a Prefect server shows of a run beside its states.

Progress of long steps, a table of a scoring run's cells, charts of the model, a link to the report.
Only where a server is configured; all is sent in the background (``tasks/outbox.py``).
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate
from prefect.utilities.context import get_task_and_flow_run_ids

from core.cell_record import read_cell_record
from core.cells import Cell
from core.errors import TidemarkError
from core.month import Month
from core.settings import Settings, prefect_server
from core.storage import Store
from models.catalogue import ModelEntry
from tasks.markup import key_of, plain, plain_cell
from tasks.outbox import outbox
from warehouse.query import query

UPDATE_S = 5.0  # a step's progress is sent this often at most
MAX_ROWS = 300  # of a table of cells
_MONTHLY = (
    "select source, month, num_documents, bits_per_byte from monthly_loss "
    "where model = ? and protocol = ?"
)


@dataclass
class _Step:
    sent_at: float
    artifact: str | None = None  # its id; None: not made yet, or not taken


class ProgressArtifacts:
    """A listener of ``core.progress`` that keeps one artifact a step and flow run.

    It costs a call when a step begins, one every ``UPDATE_S`` seconds, and one when it ends.
    """

    def __init__(self) -> None:
        self._steps: dict[tuple[UUID, str], _Step] = {}
        self._lock = threading.Lock()

    def report(self, step: str, done: int, total: int) -> None:
        """Take note of progress. Outside of a flow run, and without a server, nothing happens."""
        task_run, flow_run = get_task_and_flow_run_ids()
        if flow_run is None or not prefect_server():
            return
        now, is_over = time.monotonic(), done >= total
        with self._lock:
            known = self._steps.get((flow_run, step))
            if known and now < known.sent_at + UPDATE_S and not is_over:
                return
            shown = known or _Step(now)
            shown.sent_at = now
            self._steps[flow_run, step] = shown
            if is_over:
                del self._steps[flow_run, step]
        made = ArtifactCreate(
            key=key_of("progress", step),
            type="progress",
            description=f"{plain(step)}: {done} of {total}",
            data=100.0 * done / total if total else 100.0,
            flow_run_id=flow_run,
            task_run_id=task_run,
        )
        outbox.post(f"progress of {step}", lambda client: _send_progress(client, shown, made))


def _send_progress(client: SyncPrefectClient, step: _Step, progress: ArtifactCreate) -> None:
    if step.artifact is None:
        step.artifact = str(_create(client, progress)["id"])
    else:
        changed = {"data": progress.data, "description": progress.description}
        client.request("PATCH", "/artifacts/{id}", json=changed, path_params={"id": step.artifact})


def show_scoring(
    entry: ModelEntry, cells: Sequence[Cell], failures: Mapping[str, str], settings: Settings
) -> None:
    """Show the cells of a scoring run as a table, and the model's bits per byte as charts.

    Args:
        entry: the model.
        cells: all that the run was to have.
        failures: why some have no losses, by ``str(cell)``.
        settings: the data root; what is published there gives the figures.
    """
    if not prefect_server():
        return
    run = _this_run()

    def send(client: SyncPrefectClient) -> None:
        for made in _scoring(entry, cells, failures, settings):
            _create(client, made.model_copy(update=run))

    outbox.post(f"cells of {entry.name}", send)


def _scoring(
    entry: ModelEntry, cells: Sequence[Cell], failures: Mapping[str, str], settings: Settings
) -> Iterator[ArtifactCreate]:
    figures: dict[tuple[str, Month | None], tuple[int, float | None]] = {}
    with suppress(TidemarkError):  # nothing is published: a table without figures
        for row in query(settings, _MONTHLY, [entry.name, settings.protocol]).to_pylist():
            month = Month.of(row["month"]) if row["month"] else None
            figures[row["source"], month] = row["num_documents"], row["bits_per_byte"]
    rows = _rows(cells, failures, figures, Store(settings.home))
    more = f" {len(cells) - len(rows)} more are not shown." if len(cells) > len(rows) else ""
    text = f"{len(cells)} cells of {plain(entry.name)}, {len(failures)} failures.{more}"
    key = key_of("cells", entry.name)
    yield ArtifactCreate(type="table", key=key, description=text, data=json.dumps(rows))
    for source in sorted({cell.partition.source for cell in cells}):
        values = {month: bits for (of, month), (_, bits) in figures.items() if of == source}
        dated = {month: bits for month, bits in values.items() if month and bits is not None}
        if dated:
            yield _chart(entry, source, dated)


def _rows(
    cells: Sequence[Cell],
    failures: Mapping[str, str],
    figures: Mapping[tuple[str, Month | None], tuple[int, float | None]],
    store: Store,
) -> list[dict[str, str | int | float | None]]:
    """What failed comes first: it is what somebody looks for."""
    rows: list[dict[str, str | int | float | None]] = []
    in_order = sorted(cells, key=lambda cell: (str(cell) not in failures, cell.path))
    for cell in in_order[:MAX_ROWS]:
        why = failures.get(str(cell))
        documents, bits = figures.get((cell.partition.source, cell.partition.month), (None, None))
        record = None
        with suppress(TidemarkError):  # a record that is damaged is no reason to show no table
            record = read_cell_record(store, cell)
        rows.append(
            {
                "cell": plain_cell(cell.name),
                "state": _state(why, store.exists(cell.path)),
                "documents": documents,
                "bits per byte": None if bits is None else round(bits, 4),
                "seconds": None if record is None else round(record.seconds, 3),
            }
        )
    return rows


def _state(why: str | None, has_losses: bool) -> str:
    if why is not None:
        return plain_cell(f"failed: {why}")
    return "landed" if has_losses else "no losses"


def _chart(entry: ModelEntry, source: str, bits: Mapping[Month, float]) -> ArtifactCreate:
    from reports.charts import as_png, monthly_chart  # takes a second to import

    svg = monthly_chart(bits, (min(bits), max(bits)), entry.cutoff)
    image = base64.b64encode(as_png(svg)).decode()
    return ArtifactCreate(
        type="image",
        key=key_of("chart", entry.name, source),
        description=f"Bits per byte of {plain(entry.name)} on {plain(source)}, by month.",
        data=f"data:image/png;base64,{image}",
    )


def show_report(address: str, settings: Settings) -> None:
    """Show a link to the report: of the server that serves it, where the settings name one."""
    if not prefect_server():
        return
    link = settings.report_url or (address if "://" in address else Path(address).as_uri())
    # What would end the link's brackets early, or begin markup.
    safe = "".join(c if c.isascii() and c not in '<>()[]"`\\ \n' else _quoted(c) for c in link)
    made = ArtifactCreate(
        type="markdown",
        key=key_of("report"),
        description="The report.",
        data=f"[`{safe}`](<{safe}>)",  # Prefect shows backslashes within a link
    ).model_copy(update=_this_run())
    outbox.post("link to the report", lambda client: _create(client, made))


def _quoted(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))


def _this_run() -> dict[str, UUID | None]:
    """The run that this thread works for; the thread that sends works for none."""
    task_run, flow_run = get_task_and_flow_run_ids()
    return {"task_run_id": task_run, "flow_run_id": flow_run}


def _create(client: SyncPrefectClient, artifact: ArtifactCreate) -> dict[str, object]:
    """Create an artifact, without the event that Prefect's client sends after it.

    Nobody needs one more event, and at the end of a process, which may be when this is called,
    Prefect can send none.
    """
    made = artifact.model_dump(mode="json", exclude_unset=True)
    created: dict[str, object] = client.request("POST", "/artifacts/", json=made).json()
    return created
