"""Cells: the losses of one model on one partition under one protocol, as one Parquet file.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<digest>-<version>.parquet

The path is a pure function of what decides the content, so a file that exists is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from core.corpus import Partition
from core.storage import Store, path_part


@dataclass(frozen=True, order=True)
class Cell:
    """What was scored, by what, and how.

    Attributes:
        model: name in the catalogue, last part of a folder's path, or ``control:<compressor>``.
        revision: commit of the hub, or digest of weights and tokenizer.
        partition: the documents.
        partition_digest: their seal's digest; another version of the partition makes new cells.
        protocol: name of the protocol.
        scoring: short hash over the protocol's definition, dtype and the scorer's version.
        partition_version: which version of the partition has the digest; None where it is not
            known. It follows from the digest, and tells no cells apart.
    """

    model: str
    revision: str
    partition: Partition
    partition_digest: str
    protocol: str
    scoring: str
    partition_version: int | None = field(default=None, compare=False)

    @property
    def path(self) -> str:
        """Where the losses are (or will be), under the data root."""
        folder = self.partition.path.removeprefix("corpus/")
        name = "-".join(
            path_part(part)
            for part in (
                self.protocol,
                self.revision[:12],
                self.partition_digest[:12],
                self.scoring,
            )
        )
        return f"losses/model={path_part(self.model)}/{folder}/{name}.parquet"

    @property
    def record_path(self) -> str:
        """Where the record of what scoring took is, beside the losses."""
        return f"{self.path.removesuffix('.parquet')}.json"

    @property
    def name(self) -> str:
        """What the command line calls it: model, source, month and protocol, with slashes."""
        month = self.partition.month or "undated"
        return f"{self.model}/{self.partition.source}/{month}/{self.protocol}"

    def __str__(self) -> str:
        return f"{self.model} on {self.partition} under {self.protocol}"


def list_losses(store: Store, model: str) -> set[str]:
    """Return the paths of all losses of a model: what is there is done.

    One listing: a look-up a cell is a round trip a cell on an object store.
    """
    return set(store.list(f"losses/model={path_part(model)}/source=*/month=*/*.parquet"))
