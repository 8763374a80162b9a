"""Cells: the units of work, the paths of their files, and their stored records.

The key of a cell determines the names of its files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.storage.store import path_part


@dataclass(frozen=True, order=True)
class BaseCell:
    """The work of one model that one file holds; the path is a pure function of the key."""

    ROOT: ClassVar[str]  # first folder of the path

    model: str  # name in the catalogue
    revision: str  # commit on the hub, digest of weights and tokenizer, or id from a server

    @property
    def folder(self) -> str:
        """The folder below the model's folder."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the file name, in order."""
        raise NotImplementedError

    @property
    def stem(self) -> str:
        """The path of the files under the data root, without a suffix."""
        name = "-".join(map(path_part, self.parts))
        return f"{self.ROOT}/model={path_part(self.model)}/{self.folder}/{name}"

    @property
    def path(self) -> str:
        """The path of the table."""
        return f"{self.stem}.parquet"

    @property
    def record_path(self) -> str:
        """The path of the JSON record."""
        return f"{self.stem}.json"

    @property
    def done_path(self) -> str:
        """The path of the file that is written last; claims of the cell use this path as name."""
        return self.path
