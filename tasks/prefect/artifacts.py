"""Artifacts on the Prefect server: progress, tables of cells, charts, links to the report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate
from prefect.utilities.context import get_task_and_flow_run_ids

from core.cells.losses import Cell
from core.cells.record import read_cell_record
from core.environment import prefect_server
from core.errors import TidemarkError
from core.month import Period
from core.periods import kind_of
from core.progress import counted
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import ModelEntry
from tasks.prefect.outbox import outbox
from warehouse.read.query import query

UPDATE_S = 5.0  # minimum time between two messages about a step, in seconds
MAX_ROWS = 300  # maximum number of rows in a table of cells
_MONTHLY = (
    "select source, month, num_documents, bits_per_byte from monthly_loss "
    "where model = ? and protocol = ?"
)

# ASCII punctuation, which a backslash makes literal in Markdown (CommonMark, section 2.4).
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# Characters that may begin markup, an entity or a link. Dashes, dots and underscores within a
# word are left out, so that names stay readable if a page shows cells as plain text.
_RISKY = re.compile(
    r"([!\"#$%&'*+<=>?@\[\\\]^`{|}~]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])|://|^[-+.)])"
)
_WWW = re.compile(r"(www)(?=\.)", re.IGNORECASE)
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_KEY_CHARS = 60


@dataclass
class _Step:
    sent_at: float
    artifact: str | None = None  # id of the artifact, or None before its creation


class ProgressArtifacts:
    """The progress artifacts, one for each step of a flow run, updated every ``UPDATE_S`` s."""

    def __init__(self) -> None:
        self._steps: dict[tuple[UUID, str], _Step] = {}
        self._lock = threading.Lock()

    def report(self, step: str, done: int, total: int, failed: int = 0) -> None:
        """Send the progress of a step; do nothing outside of a flow run or without a server."""
        task_run, flow_run = get_task_and_flow_run_ids()
        if flow_run is None or not prefect_server():
            return
        now = time.monotonic()
        is_over = done + failed >= total
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
            description=f"{plain(step)}: {done} of {total}" + (f", {failed} failed" * bool(failed)),
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


def show_scoring(entry: ModelEntry, cells: Sequence[Cell], settings: Settings) -> None:
    """Send a table of a model's landed cells, and its charts."""
    if not prefect_server():
        return
    run = _this_run()

    def send(client: SyncPrefectClient) -> None:
        for made in _scoring(entry, cells, settings):
            _create(client, made.model_copy(update=run))

    outbox.post(f"cells of {entry.name}", send)


def _scoring(
    entry: ModelEntry, cells: Sequence[Cell], settings: Settings
) -> Iterator[ArtifactCreate]:
    figures: dict[tuple[str, Period | None], tuple[int, float | None]] = {}
    with suppress(TidemarkError):  # without a snapshot, the table has no losses
        for row in query(settings, _MONTHLY, [entry.name, settings.protocol]).to_pylist():
            month = kind_of(row["source"]).of(row["month"]) if row["month"] else None
            figures[row["source"], month] = row["num_documents"], row["bits_per_byte"]
    rows = _rows(cells, figures, Store(settings.home))
    more = f" {len(cells) - len(rows)} more are not shown." if len(cells) > len(rows) else ""
    text = f"{counted(len(cells), 'cell')} of {plain(entry.name)}.{more}"
    key = key_of("cells", entry.name)
    yield ArtifactCreate(type="table", key=key, description=text, data=json.dumps(rows))
    for source in sorted({cell.partition.source for cell in cells}):
        values = {month: bits for (of, month), (_, bits) in figures.items() if of == source}
        dated = {month: bits for month, bits in values.items() if month and bits is not None}
        if dated:
            yield _chart(entry, source, dated)


def _rows(
    cells: Sequence[Cell],
    figures: Mapping[tuple[str, Period | None], tuple[int, float | None]],
    store: Store,
) -> list[dict[str, str | int | float | None]]:
    rows: list[dict[str, str | int | float | None]] = []
    for cell in sorted(cells)[:MAX_ROWS]:
        documents, bits = figures.get((cell.partition.source, cell.partition.month), (None, None))
        record = None
        with suppress(TidemarkError):  # the cell's record may be damaged
            record = read_cell_record(store, cell)
        rows.append(
            {
                "cell": plain_cell(cell.name),
                "documents": documents,
                "bits per byte": None if bits is None else round(bits, 4),
                "seconds": None if record is None else round(record.seconds, 3),
            }
        )
    return rows


def _chart(entry: ModelEntry, source: str, bits: Mapping[Period, float]) -> ArtifactCreate:
    import polars as pl

    from reports.site.charts import draw, with_data  # the import takes a second
    from reports.site.pages.source import level_lines

    months = {"month": [month.first_day for month in sorted(bits)]}
    losses = {"bits_per_byte": [bits[month] for month in sorted(bits)]}
    rows = pl.DataFrame({"model": [entry.name] * len(bits), **months, **losses})
    drawing = draw(with_data(level_lines([entry.name], rows), rows))
    image = base64.b64encode(drawing.png).decode()
    return ArtifactCreate(
        type="image",
        key=key_of("chart", entry.name, source),
        description=f"Bits per byte of {plain(entry.name)} on {plain(source)}, by month.",
        data=f"data:image/png;base64,{image}",
    )


def show_report(address: str, settings: Settings) -> None:
    """Send a link to the report: the setting ``report_url``, or else the address of the file."""
    if not prefect_server():
        return
    link = settings.report_url or (address if "://" in address else Path(address).as_uri())
    # Percent-encode characters that could end the brackets of the link or begin markup.
    safe = quote(link, safe="!#$%&'*+,/:;=?@^{|}", errors="replace")
    made = ArtifactCreate(
        type="markdown",
        key=key_of("report"),
        description="The report.",
        data=f"[`{safe}`](<{safe}>)",  # not escaped, as Prefect would show backslashes in a link
    ).model_copy(update=_this_run())
    outbox.post("link to the report", lambda client: _create(client, made))


def _this_run() -> dict[str, UUID | None]:
    """Return the ids of the current flow run and task run; the sending thread cannot find them."""
    task_run, flow_run = get_task_and_flow_run_ids()
    return {"task_run_id": task_run, "flow_run_id": flow_run}


def _create(client: SyncPrefectClient, artifact: ArtifactCreate) -> dict[str, object]:
    """Create an artifact by a plain request, since Prefect's function also sends an event."""
    made = artifact.model_dump(mode="json", exclude_unset=True)
    created: dict[str, object] = client.request("POST", "/artifacts/", json=made).json()
    return created


def plain(text: str) -> str:
    """Return a text on one line, with all Markdown and HTML escaped."""
    return _PUNCTUATION.sub(r"\\\1", _one_line(text))


def plain_cell(text: str) -> str:
    """Return a text for a cell of a table, escaped with as few backslashes as possible.

    Old versions of Prefect render cells as Markdown. Newer versions show cells unchanged.
    """
    return _WWW.sub(r"\1\\", _RISKY.sub(r"\\\1", _one_line(text)))


def _one_line(text: str) -> str:
    # File names that are not UTF-8 contain lone surrogates, which cannot be encoded.
    shown = text.encode("utf-8", "replace").decode()
    return _SPACES.sub(" ", shown).strip()


def key_of(*parts: str) -> str:
    """Return an artifact key of ``[a-z0-9-]``, with a digest if ``parts`` have other characters."""
    words = "-".join(("tidemark", *parts))
    slug = re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")
    if slug == words and len(slug) <= _KEY_CHARS:
        return slug
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:_KEY_CHARS].rstrip('-')}-{digest}"
