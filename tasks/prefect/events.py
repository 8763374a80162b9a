"""Events of the Prefect server: the assets that a run makes, and their origins.

Assets:

    tidemark://corpus/<source>/<month>                        a sealed partition
    tidemark://losses/<model>/<source>/<month>/<protocol>     a cell's losses, from its partition
    tidemark://warehouse/<table or view>                      chunk_losses, from losses; the views
    tidemark://report                                         the page, from the views it shows

Names in keys are encoded: ``=2F`` is the byte 2F. The events are those that Prefect's
``@materialize`` emits, without a task run for each. For operators' automations there are also
``tidemark.partition.sealed``, ``tidemark.partition.given-up`` and ``tidemark.model.landed``.
All are sent in the background and may be lost; no required action may depend on them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from prefect.client.orchestration import SyncPrefectClient
from prefect.events import Event, RelatedResource, Resource
from prefect.utilities.context import get_task_and_flow_run_ids

from core.cells.losses import Cell
from core.corpus.partition import Partition, Seal
from core.settings import prefect_server
from crawlers.manifest import lack_of
from tasks.prefect.outbox import outbox

LOSSES_TABLE = "chunk_losses"
REPORT_VIEWS = (
    "estimated_cutoff",
    "monthly_loss",
    "tbi_likelihood",
    "tbi_likelihood_overall",
    "train_test_gap",
    "train_test_gap_overall",
)
REPORT = "tidemark://report"
MAX_UPSTREAM = 80  # an event has 100 related resources at most
MAX_AT_ONCE = 200  # events in one request
GATHER_S = 0.5  # later events join the same request

_MAX_SEGMENT = 140  # characters; a key has 512 at most
_DIGEST = 32

_waiting: deque[Event] = deque(maxlen=10_000)  # a full queue drops its oldest
_is_posted = False  # the outbox has a call of _send_waiting
_lock = threading.Lock()

Metadata = Mapping[str, str | int | float | None]


def key_of_partition(partition: Partition) -> str:
    """Return the key of a partition's documents."""
    return f"tidemark://corpus/{encode(partition.source)}/{partition.month or 'undated'}"


def key_of_losses(cell: Cell) -> str:
    """Return the key of a cell's losses, for all versions of the text and the model."""
    of = f"{encode(cell.partition.source)}/{cell.partition.month or 'undated'}"
    return f"tidemark://losses/{encode(cell.model)}/{of}/{encode(cell.protocol)}"


def key_of_warehouse(name: str) -> str:
    """Return the key of a table or a view."""
    return f"tidemark://warehouse/{encode(name)}"


def encode(name: str) -> str:
    """Encode any text as one segment of a key; shorten long text to end in its digest."""
    raw = name.encode("utf-8", "surrogatepass")
    segment = quote(raw, safe="+@:").replace("~", "%7E").replace("%", "=")
    if not raw.strip(b"."):  # no segment is "..", none is empty
        segment = "=2E" * len(raw) or "="
    if len(segment) <= _MAX_SEGMENT:
        return segment
    return f"{segment[: _MAX_SEGMENT - _DIGEST - 2]}=~{hashlib.sha256(raw).hexdigest()[:_DIGEST]}"


def sealed(seal: Seal) -> None:
    """Emit the event of a sealed partition, with the items that it lacks."""
    _tell_of(seal.partition, "sealed", documents=seal.num_documents, lacks=lack_of(seal))
    names = ("digest", "version", "num_documents", "num_bytes")
    facts = {name: getattr(seal, name) for name in names}
    facts["status"] = str(seal.manifest.get("status", "complete"))
    _materialized(key_of_partition(seal.partition), (), facts)


def scored(cell: Cell, facts: Metadata) -> None:
    """Emit the event of a cell's losses, computed from its partition."""
    names = ("revision", "partition_digest", "partition_version", "scoring")
    described = {**{name: getattr(cell, name) for name in names}, **facts}
    _materialized(key_of_losses(cell), [key_of_partition(cell.partition)], described)


def landed(cells: Sequence[Cell]) -> None:
    """Emit the event of losses that have landed in the warehouse."""
    upstream = list(dict.fromkeys(map(key_of_losses, cells)))
    if upstream:
        _materialized(key_of_warehouse(LOSSES_TABLE), upstream, {"num_cells": len(cells)})


def published(address: str) -> None:
    """Emit the events of a new snapshot's views, with its address."""
    for view in REPORT_VIEWS:
        upstream = [key_of_warehouse(LOSSES_TABLE)]
        _materialized(key_of_warehouse(view), upstream, {"snapshot": address})


def reported(address: str) -> None:
    """Emit the event of the report page, written from the views."""
    _materialized(REPORT, [key_of_warehouse(view) for view in REPORT_VIEWS], {"address": address})


def tell_given_up(partition: Partition, why: str) -> None:
    """Emit the event of a partition of which nothing could be sealed."""
    _tell_of(partition, "given-up", why=why)


def tell_landed(model: str, cells: int, holes: int) -> None:
    """Emit the event of a model's landed cells, with the numbers of cells and holes."""
    facts = {"model": model, "cells": cells, "holes": holes}
    _send([_event("tidemark.model.landed", f"tidemark.model.{model}", facts)])


def _tell_of(partition: Partition, what: str, **facts: object) -> None:
    facts = {"source": partition.source, "month": str(partition.month), **facts}
    resource = f"tidemark.partition.{partition.source}.{partition.month}"
    _send([_event(f"tidemark.partition.{what}", resource, facts)])


def _materialized(key: str, upstream: Sequence[str], metadata: Metadata) -> None:
    by = _related("tidemark", "asset-materialized-by")
    _send(
        _event(
            "prefect.asset.materialization.succeeded",
            key,
            metadata,
            [*(_related(each, "asset") for each in some), by],
        )
        for some in _parts(upstream)
    )


def _event(
    name: str, resource: str, facts: Mapping[str, object], related: Sequence[RelatedResource] = ()
) -> Event:
    task_run, flow_run = get_task_and_flow_run_ids()
    runs = {"flow-run": flow_run, "task-run": task_run}
    return Event(
        event=name,
        resource=Resource({"prefect.resource.id": resource}),
        related=[
            *related,
            *(_related(f"prefect.{role}.{run}", role) for role, run in runs.items() if run),
        ],
        payload=dict(facts),
    )


def _related(resource: str, role: str) -> RelatedResource:
    return RelatedResource({"prefect.resource.id": resource, "prefect.resource.role": role})


def _send(events: Iterable[Event]) -> None:
    """Send events soon, gathered with later ones, if a server is configured."""
    if not prefect_server():
        return
    global _is_posted
    with _lock:
        _waiting.extend(events)
        _is_posted = _is_posted or outbox.post("events", _send_waiting)


def _send_waiting(client: SyncPrefectClient) -> None:
    global _is_posted
    time.sleep(GATHER_S)
    with _lock:
        events, _is_posted = [event.model_dump(mode="json") for event in _waiting], False
        _waiting.clear()
    for start in range(0, len(events), MAX_AT_ONCE):
        client.request("POST", "/events", json=events[start : start + MAX_AT_ONCE])


def _parts(upstream: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split the upstream keys, because one event holds at most ``MAX_UPSTREAM``."""
    yield upstream[:MAX_UPSTREAM]
    for start in range(MAX_UPSTREAM, len(upstream), MAX_UPSTREAM):
        yield upstream[start : start + MAX_UPSTREAM]
