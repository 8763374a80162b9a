"""The table of a model's landed cells, and the link to the site, on the Prefect server.

A failure to send one is logged, and fails no task.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from prefect.artifacts import create_link_artifact, create_table_artifact

from core.cells.losses import Cell
from core.errors import TidemarkError
from core.progress import counted
from core.settings import Settings
from core.within import answer_within
from warehouse.read.query import query

MAX_ROWS = 300  # maximum number of rows in a table of cells
MAX_BYTES = 250_000  # of the rows as JSON; proxies such as nginx refuse requests above 1 MB
SEND_S = 60.0  # limit for one artifact, with the retries of Prefect's client
_MAX_REASON = 300  # characters of an error; a page of HTML may be in it
_FIGURES = (
    "select source, month, num_documents, bits_per_byte from monthly_loss "
    "where model = ? and protocol = ?"
)
# ASCII punctuation, which a backslash makes literal in Markdown (CommonMark, section 2.4).
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_KEY_CHARS = 60
_log = logging.getLogger(__name__)


def show_cells(model: str, cells: Sequence[Cell], settings: Settings) -> None:
    """Show a table of a model's landed cells; its description tells how many did not fit.

    A table has at most ``MAX_ROWS`` rows and ``MAX_BYTES`` as JSON, since proxies refuse large
    requests.
    """
    if not cells:
        return
    shown = sorted(cells)[:MAX_ROWS]
    figures = _read_figures(model, settings)
    rows: list[dict[str, str | float | None]] = []
    for cell in shown:
        month = cell.partition.month
        first_day = month.first_day if month else None
        documents, bits = figures.get((cell.partition.source, first_day), (None, None))
        rows.append({"cell": cell.name, "documents": documents, "bits per byte": bits})
    rows = _fitting(rows)
    name = _PUNCTUATION.sub(r"\\\1", model)
    text = f"{counted(len(cells), 'cell')} of {name}."
    if len(cells) > len(rows):
        text += (
            f" {len(cells) - len(rows):,} more did not fit, and are not shown. "
            "All are in the warehouse: `tidemark sql 'from monthly_loss'`."
        )
    key = _key_of("cells", model)
    table = partial(create_table_artifact, rows, key=key, description=text)
    _send(f"the table of cells of {model}", table)


def _fitting(rows: list[dict[str, str | float | None]]) -> list[dict[str, str | float | None]]:
    """Return the first rows that have at most ``MAX_BYTES`` as JSON."""
    num_bytes = 0
    for number, row in enumerate(rows):
        num_bytes += len(json.dumps(row))
        if num_bytes > MAX_BYTES:
            return rows[:number]
    return rows


def show_link(address: str, settings: Settings) -> None:
    """Show a link to the site: the setting ``report_url``, or else the address."""
    link = settings.report_url or (address if "://" in address else Path(address).as_uri())
    # Percent-encode characters that could end the brackets of the link or begin markup.
    safe = quote(link, safe="!#$%&'*+,/:;=?@^{|}", errors="replace")
    link_to_site = partial(
        create_link_artifact, safe, "the site", key="tidemark-report", description="The report."
    )
    _send("the link to the report", link_to_site)


def _read_figures(
    model: str, settings: Settings
) -> dict[tuple[str, object], tuple[int, float | None]]:
    """Return documents and bits per byte of each source and month; none without a snapshot."""
    figures = {}
    with contextlib.suppress(TidemarkError):
        for row in query(settings, _FIGURES, [model, settings.protocol]).to_pylist():
            bits = row["bits_per_byte"]
            rounded = None if bits is None else round(bits, 4)
            figures[row["source"], row["month"]] = row["num_documents"], rounded
    return figures


def _send(what: str, artifact: Callable[[], Any]) -> None:
    """Send an artifact within ``SEND_S``; a failure is logged."""
    try:
        answer_within(SEND_S, artifact)
    except Exception as error:  # noqa: BLE001 - Prefect's and httpx's are no family
        reason = f"{type(error).__name__}: {error}"[:_MAX_REASON]
        _log.warning("%s is not shown on the Prefect server (%s)", what, reason)


def _key_of(kind: str, name: str) -> str:
    """Return an artifact key of ``[a-z0-9-]``, with a digest if the name has other characters."""
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:_KEY_CHARS].strip("-")
    if slug != name:
        slug += f"-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"tidemark-{kind}-{slug}"
