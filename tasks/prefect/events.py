"""Events for the Prefect server about assets: the data that a run produces, and its inputs.

Each asset has a key:

    tidemark://corpus/<source>/<month>                        a sealed partition
    tidemark://losses/<model>/<source>/<month>/<protocol>     losses of a cell; input: its partition
    tidemark://warehouse/<table or view>                      table chunk_losses, or a view of it
    tidemark://report                                         the report page; input: its views

Names in these keys are encoded: ``=2F`` is the byte 2F. The events are the same as those of
Prefect's ``@materialize``. For automations of operators, there are also the events
``tidemark.partition.sealed``, ``tidemark.partition.given-up`` and ``tidemark.model.landed``.
All events are sent in the background and may be lost, so no required action may depend on them.
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
from core.environment import prefect_server
from crawlers.crawling.manifest import lack_of
from tasks.prefect.outbox import outbox

LOSSES_TABLE = "chunk_losses"
REPORT_VIEWS = (
    "age_in_parameters",
    "ageing",
    "benchmark_correlation",
    "context_comparison",
    "coverage",
    "decay_after_release",
    "detectable_gap",
    "estimated_cutoff",
    "estimated_cutoff_by_source",
    "forecast_accuracy",
    "forecast_accuracy_monthly",
    "forecast_bias_test",
    "forecast_calibration",
    "forecast_position_bias",
    "forecast_tbi",
    "model_difference",
    "model_sensitivity",
    "month_difficulty",
    "monthly_loss",
    "run_costs",
    "scylla_critical_complexity",
    "scylla_divergence",
    "scylla_likelihood",
    "scylla_probes",
    "scylla_scores",
    "scylla_tokens",
    "source_months",
    "suspect_cells",
    "suspected_contamination",
    "tbi_likelihood",
    "text_difference",
    "tokenizer_comparison",
    "train_test_gap_at",
    "train_test_gap_overall",
    "unmeasured",
)
REPORT = "tidemark://report"
MAX_UPSTREAM = 80  # maximum number of inputs per event; Prefect allows 100 resources
MAX_AT_ONCE = 200  # maximum number of events in one request
GATHER_S = 0.5  # seconds to wait for further events for the same request

_MAX_SEGMENT = 140  # maximum length of a segment, as a key may have only 512 characters
_DIGEST = 32

_waiting: deque[Event] = deque(maxlen=10_000)  # a full queue drops the oldest event
_is_posted = False  # True if a call of _send_waiting is queued in the outbox
_lock = threading.Lock()

Metadata = Mapping[str, str | int | float | None]


def key_of_partition(partition: Partition) -> str:
    """Return the asset key of a partition."""
    return f"tidemark://corpus/{encode(partition.source)}/{partition.month or 'undated'}"


def key_of_losses(cell: Cell) -> str:
    """Return the asset key of a cell's losses, the same for all versions of text and model."""
    of = f"{encode(cell.partition.source)}/{cell.partition.month or 'undated'}"
    return f"tidemark://losses/{encode(cell.model)}/{of}/{encode(cell.protocol)}"


def key_of_warehouse(name: str) -> str:
    """Return the asset key of a table or view of the warehouse."""
    return f"tidemark://warehouse/{encode(name)}"


def encode(name: str) -> str:
    """Encode any text as one segment of an asset key; the end of long text becomes a digest."""
    raw = name.encode("utf-8", "surrogatepass")
    segment = quote(raw, safe="+@:").replace("~", "%7E").replace("%", "=")
    if not raw.strip(b"."):  # a segment must not be empty or ".."
        segment = "=2E" * len(raw) or "="
    if len(segment) <= _MAX_SEGMENT:
        return segment
    return f"{segment[: _MAX_SEGMENT - _DIGEST - 2]}=~{hashlib.sha256(raw).hexdigest()[:_DIGEST]}"


def sealed(seal: Seal) -> None:
    """Send the event that a partition was sealed, with the items that the partition lacks."""
    _tell_of(seal.partition, "sealed", documents=seal.num_documents, lacks=lack_of(seal))
    names = ("digest", "version", "num_documents", "num_bytes")
    facts = {name: getattr(seal, name) for name in names}
    facts["status"] = str(seal.manifest.get("status", "complete"))
    _materialized(key_of_partition(seal.partition), (), facts)


def scored(cell: Cell, facts: Metadata) -> None:
    """Send the event that the losses of a cell were computed from its partition."""
    names = ("revision", "partition_digest", "partition_version", "scoring")
    described = {**{name: getattr(cell, name) for name in names}, **facts}
    _materialized(key_of_losses(cell), [key_of_partition(cell.partition)], described)


def landed(cells: Sequence[Cell]) -> None:
    """Send the event that losses of cells have landed in the warehouse."""
    upstream = list(dict.fromkeys(map(key_of_losses, cells)))
    if upstream:
        _materialized(key_of_warehouse(LOSSES_TABLE), upstream, {"num_cells": len(cells)})


def published(address: str) -> None:
    """Send an event for each view of a newly published snapshot, with the snapshot's address."""
    for view in REPORT_VIEWS:
        upstream = [key_of_warehouse(LOSSES_TABLE)]
        _materialized(key_of_warehouse(view), upstream, {"snapshot": address})


def reported(address: str) -> None:
    """Send the event that the report page was written from the views."""
    _materialized(REPORT, [key_of_warehouse(view) for view in REPORT_VIEWS], {"address": address})


def tell_given_up(partition: Partition, why: str) -> None:
    """Send the event that the crawl of a partition failed, with the reason ``why``."""
    _tell_of(partition, "given-up", why=why)


def tell_landed(model: str, cells: int) -> None:
    """Send the event that cells of a model have landed, with their number."""
    facts = {"model": model, "cells": cells}
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
    """Queue events, to be sent with later events in one request, if a server is configured."""
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
        events = [event.model_dump(mode="json") for event in _waiting]
        _is_posted = False
        _waiting.clear()
    for start in range(0, len(events), MAX_AT_ONCE):
        client.request("POST", "/events", json=events[start : start + MAX_AT_ONCE])


def _parts(upstream: Sequence[str]) -> Iterator[Sequence[str]]:
    yield upstream[:MAX_UPSTREAM]
    for start in range(MAX_UPSTREAM, len(upstream), MAX_UPSTREAM):
        yield upstream[start : start + MAX_UPSTREAM]
