"""Assets: what a run makes, and from what, as events of the Prefect server.

    tidemark://corpus/<source>/<month>                        a sealed partition
    tidemark://losses/<model>/<source>/<month>/<protocol>     a cell's losses, from its partition
    tidemark://warehouse/<table or view>                      chunk_losses, from losses; the views
    tidemark://report                                         the page, from the views it shows

Names in keys are encoded: ``=2F`` is the byte 2F. The events are those that Prefect's
``@materialize`` emits, without a task run for each. They are sent in the background.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from prefect.client.orchestration import SyncPrefectClient
from prefect.events import Event, RelatedResource, Resource
from prefect.utilities.context import get_task_and_flow_run_ids

from core.cells import Cell
from core.corpus import Partition, Seal
from core.settings import prefect_server
from tasks.outbox import outbox

LOSSES_TABLE = "chunk_losses"
# Those that the page is made from.
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
GATHER_S = 0.5  # what comes meanwhile goes along in the same request

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+@:")
_MAX_SEGMENT = 140  # of a key's 512 characters
_DIGEST = 32

_waiting: deque[Event] = deque(maxlen=10_000)  # the oldest go first, if the server stays away
_is_posted = False  # that they are to be sent
_lock = threading.Lock()

Metadata = Mapping[str, str | int | float | None]


def key_of_partition(partition: Partition) -> str:
    """Return the key of a partition's documents."""
    return f"tidemark://corpus/{encode(partition.source)}/{partition.month or 'undated'}"


def key_of_losses(cell: Cell) -> str:
    """Return the key of a cell's losses, whatever version of the text and of the model."""
    of = f"{encode(cell.partition.source)}/{cell.partition.month or 'undated'}"
    return f"tidemark://losses/{encode(cell.model)}/{of}/{encode(cell.protocol)}"


def key_of_warehouse(name: str) -> str:
    """Return the key of a table or a view."""
    return f"tidemark://warehouse/{encode(name)}"


def encode(name: str) -> str:
    """Encode any text as one segment of a key; what is long ends in its digest instead."""
    raw = name.encode("utf-8", "surrogatepass")
    safe = _SAFE if raw.strip(b".") else frozenset()  # no segment is "..", none is empty
    segment = "".join(chr(byte) if byte in safe else f"={byte:02X}" for byte in raw) or "="
    if len(segment) <= _MAX_SEGMENT:
        return segment
    return f"{segment[: _MAX_SEGMENT - _DIGEST - 2]}=~{hashlib.sha256(raw).hexdigest()[:_DIGEST]}"


def decode(segment: str) -> str:
    """Undo ``encode``, for names that were not too long for it."""
    raw = re.sub(rb"=([0-9A-F]{2})", lambda code: bytes([int(code[1], 16)]), segment.encode())
    return "" if segment == "=" else raw.decode("utf-8", "surrogatepass")


def sealed(seal: Seal) -> None:
    """Say that a partition was sealed."""
    _materialized(
        key_of_partition(seal.partition),
        (),
        {
            "digest": seal.digest,
            "version": seal.version,
            "num_documents": seal.num_documents,
            "num_bytes": seal.num_bytes,
            "status": str(seal.manifest.get("status", "complete")),
        },
    )


def scored(cell: Cell, facts: Metadata) -> None:
    """Say that the losses of a cell were computed from its partition."""
    described = {
        "revision": cell.revision,
        "partition_digest": cell.partition_digest,
        "partition_version": cell.partition_version,
        "scoring": cell.scoring,
        **facts,
    }
    _materialized(key_of_losses(cell), [key_of_partition(cell.partition)], described)


def landed(cells: Sequence[Cell]) -> None:
    """Say that the losses of cells have landed in the warehouse."""
    upstream = list(dict.fromkeys(map(key_of_losses, cells)))
    if upstream:
        _materialized(key_of_warehouse(LOSSES_TABLE), upstream, {"num_cells": len(cells)})


def published(address: str) -> None:
    """Say that the views of a new snapshot can be read at an address."""
    for view in REPORT_VIEWS:
        upstream = [key_of_warehouse(LOSSES_TABLE)]
        _materialized(key_of_warehouse(view), upstream, {"snapshot": address})


def reported(address: str) -> None:
    """Say that the page was written from the views."""
    _materialized(REPORT, [key_of_warehouse(view) for view in REPORT_VIEWS], {"address": address})


def _materialized(key: str, upstream: Sequence[str], metadata: Metadata) -> None:
    if not prefect_server():
        return
    task_run, flow_run = get_task_and_flow_run_ids()
    run = [_related(f"prefect.flow-run.{flow_run}", "flow-run")] if flow_run else []
    run += [_related(f"prefect.task-run.{task_run}", "task-run")] if task_run else []
    events = [
        Event(
            event="prefect.asset.materialization.succeeded",
            resource=Resource({"prefect.resource.id": key}),
            related=[
                *(_related(each, "asset") for each in some),
                _related("tidemark", "asset-materialized-by"),
                *run,
            ],
            payload=dict(metadata),
        )
        for some in _parts(upstream)
    ]
    global _is_posted
    with _lock:
        _waiting.extend(events)
        _is_posted = _is_posted or outbox.post("asset events", _send_waiting)


def _related(resource: str, role: str) -> RelatedResource:
    return RelatedResource({"prefect.resource.id": resource, "prefect.resource.role": role})


def _send_waiting(client: SyncPrefectClient) -> None:
    global _is_posted
    time.sleep(GATHER_S)
    with _lock:
        events, _is_posted = [event.model_dump(mode="json") for event in _waiting], False
        _waiting.clear()
    for start in range(0, len(events), MAX_AT_ONCE):
        client.request("POST", "/events", json=events[start : start + MAX_AT_ONCE])


def _parts(upstream: Sequence[str]) -> Iterator[Sequence[str]]:
    """An event holds a bounded number: what is made from more is said in several."""
    yield upstream[:MAX_UPSTREAM]
    for start in range(MAX_UPSTREAM, len(upstream), MAX_UPSTREAM):
        yield upstream[start : start + MAX_UPSTREAM]
