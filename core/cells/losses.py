"""Cells: the losses of one model on one partition under one protocol, as one Parquet file.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<digest>-<version>.parquet

The path is a pure function of the inputs that decide the content, so a file that exists is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from core.cells import BaseCell
from core.corpus.partition import Partition
from core.storage.store import Store, path_part


@dataclass(frozen=True, order=True)
class Cell(BaseCell):
    """The key of a file of losses: the scored text, the model and the protocol.

    Attributes:
        partition_digest: digest of the seal; a new version of the partition has new cells.
        scoring: short hash over the protocol's definition, dtype and the scorer's version.
        partition_version: version number of the partition with this digest; None if unknown. It is
            not compared, since the digest determines it.
    """

    ROOT: ClassVar[str] = "losses"

    partition: Partition
    partition_digest: str
    protocol: str
    scoring: str
    partition_version: int | None = field(default=None, compare=False)

    @property
    def folder(self) -> str:
        """The folders of source and month."""
        return self.partition.path.removeprefix("corpus/")

    @property
    def parts(self) -> tuple[str, ...]:
        """Protocol, revision, digest and scoring."""
        return (self.protocol, self.revision[:12], self.partition_digest[:12], self.scoring)

    @property
    def name(self) -> str:
        """The name on the command line: ``model/source/month/protocol``."""
        month = self.partition.month or "undated"
        return f"{self.model}/{self.partition.source}/{month}/{self.protocol}"

    def __str__(self) -> str:
        return f"{self.model} on {self.partition} under {self.protocol}"


def list_losses(store: Store, model: str) -> set[str]:
    """Return the paths of all loss files of a model; a cell with a file is done.

    Use one listing: on an object store, a look-up per cell would cost one round trip each.
    """
    return set(store.list(f"losses/model={path_part(model)}/source=*/month=*/*.parquet"))
