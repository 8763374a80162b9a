"""Cells of losses: the losses of one model on one partition under one protocol.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<protocol>-<revision>-<digest>-<scoring>.parquet

Paths contain hashes of all inputs, and writes are atomic, so an existing file is complete.
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
        partition_digest: digest of the sealed version; each version has cells of its own.
        scoring: short hash over the protocol's definition, dtype and the scorer's version.
        partition_version: number of the version with this digest, or None if unknown. Comparisons
            of cells ignore the number, since the digest identifies the version.
    """

    ROOT: ClassVar[str] = "losses"

    partition: Partition
    partition_digest: str
    protocol: str
    scoring: str
    partition_version: int | None = field(default=None, compare=False)

    @property
    def folder(self) -> str:
        """The folders of the source and of the month, relative to the folder of the model."""
        return self.partition.path.removeprefix("corpus/")

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the file name: protocol, revision, partition digest, hash ``scoring``."""
        return (self.protocol, self.revision[:12], self.partition_digest[:12], self.scoring)

    @property
    def name(self) -> str:
        """The cell's name on the command line: ``model/source/month/protocol``."""
        month = self.partition.month or "undated"
        return f"{self.model}/{self.partition.source}/{month}/{self.protocol}"

    def __str__(self) -> str:
        return f"{self.model} on {self.partition} under {self.protocol}"


def list_losses(store: Store, model: str) -> set[str]:
    """Return the paths of all loss files of a model; a cell is done if its file exists.

    The paths come from one listing, because separate look-ups of cells on an object store would
    cost one round trip each.
    """
    return set(store.list(f"losses/model={path_part(model)}/source=*/month=*/*.parquet"))
