"""Events for the Prefect server about assets: the data that a run produces, and its inputs.

Each asset has a key:

    tidemark://corpus/<source>/<month>                        a sealed partition
    tidemark://losses/<model>/<source>/<month>/<protocol>     losses of a cell; input: its partition
    tidemark://warehouse/chunk_losses                         the landed losses; input: the cells
    tidemark://warehouse/snapshot                             the published snapshot
    tidemark://report                                         the site; input: the snapshot

Names in these keys are encoded: ``=2F`` is the byte 2F. The events are the same as those of
Prefect's ``@materialize``, which needs the keys before a task runs. For automations of operators,
there are also the events ``tidemark.partition.sealed``, ``tidemark.partition.given-up`` and
``tidemark.model.landed``. Prefect sends all of them in the background. They may be lost, so no
required action may depend on them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from prefect.events import RelatedResource, emit_event

from core.cells.losses import Cell
from core.corpus.partition import Partition, Seal
from crawlers.crawling.manifest import lack_of

LOSSES_TABLE = "tidemark://warehouse/chunk_losses"
SNAPSHOT = "tidemark://warehouse/snapshot"
REPORT = "tidemark://report"
MAX_UPSTREAM = 80  # maximum number of inputs per event; Prefect allows 100 resources

_MAX_SEGMENT = 140  # maximum length of a segment, as a key may have only 512 characters
_DIGEST = 32

Metadata = Mapping[str, str | int | float | None]


def key_of_partition(partition: Partition) -> str:
    """Return the asset key of a partition."""
    return f"tidemark://corpus/{encode(partition.source)}/{partition.month or 'undated'}"


def key_of_losses(cell: Cell) -> str:
    """Return the asset key of a cell's losses, the same for all versions of text and model."""
    of = f"{encode(cell.partition.source)}/{cell.partition.month or 'undated'}"
    return f"tidemark://losses/{encode(cell.model)}/{of}/{encode(cell.protocol)}"


def encode(name: str) -> str:
    """Encode any text as one segment of an asset key; the end of long text becomes a digest."""
    raw = name.encode("utf-8", "surrogatepass")
    segment = quote(raw, safe="+@:").replace("~", "%7E").replace("%", "=")
    if not raw.strip(b"."):  # a segment must not be empty or ".."
        segment = "=2E" * len(raw) or "="
    if len(segment) <= _MAX_SEGMENT:
        return segment
    return f"{segment[: _MAX_SEGMENT - _DIGEST - 2]}=~{hashlib.sha256(raw).hexdigest()[:_DIGEST]}"


def partition_sealed(seal: Seal) -> None:
    """Send the event that a partition was sealed, with the items that the partition lacks."""
    _tell_of(seal.partition, "sealed", documents=seal.num_documents, lacks=lack_of(seal))
    names = ("digest", "version", "num_documents", "num_bytes")
    facts = {name: getattr(seal, name) for name in names}
    facts["status"] = str(seal.manifest.get("status", "complete"))
    _materialized(key_of_partition(seal.partition), (), facts)


def losses_scored(cell: Cell, facts: Metadata) -> None:
    """Send the event that the losses of a cell were computed from its partition."""
    names = ("revision", "partition_digest", "partition_version", "scoring")
    described = {**{name: getattr(cell, name) for name in names}, **facts}
    _materialized(key_of_losses(cell), [key_of_partition(cell.partition)], described)


def losses_landed(model: str, cells: Sequence[Cell]) -> None:
    """Send the events that losses of a model's cells have landed in the warehouse."""
    upstream = list(dict.fromkeys(map(key_of_losses, cells)))
    for start in range(0, len(upstream), MAX_UPSTREAM):
        some = upstream[start : start + MAX_UPSTREAM]
        _materialized(LOSSES_TABLE, some, {"num_cells": len(cells)})
    _send("tidemark.model.landed", f"tidemark.model.{model}", {"model": model, "cells": len(cells)})


def published(address: str) -> None:
    """Send the event that a snapshot was published at an address."""
    _materialized(SNAPSHOT, [LOSSES_TABLE], {"address": address})


def site_written(address: str) -> None:
    """Send the event that the site was written from the snapshot."""
    _materialized(REPORT, [SNAPSHOT], {"address": address})


def given_up(partition: Partition, why: str) -> None:
    """Send the event that the crawl of a partition failed, with the reason ``why``."""
    _tell_of(partition, "given-up", why=why)


def _tell_of(partition: Partition, what: str, **facts: object) -> None:
    facts = {"source": partition.source, "month": str(partition.month), **facts}
    resource = f"tidemark.partition.{partition.source}.{partition.month}"
    _send(f"tidemark.partition.{what}", resource, facts)


def _materialized(key: str, upstream: Sequence[str], metadata: Metadata) -> None:
    related = [_related(each, "asset") for each in upstream]
    related.append(_related("tidemark", "asset-materialized-by"))
    _send("prefect.asset.materialization.succeeded", key, metadata, related)


def _related(resource: str, role: str) -> RelatedResource:
    return RelatedResource({"prefect.resource.id": resource, "prefect.resource.role": role})


def _send(
    name: str, resource: str, facts: Mapping[str, object], related: Sequence[RelatedResource] = ()
) -> None:
    emit_event(name, {"prefect.resource.id": resource}, related=list(related), payload=dict(facts))
