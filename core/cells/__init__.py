"""Cells, the units of work: their keys, the paths of their files, and their stored records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core.storage.store import path_part


@dataclass(frozen=True, order=True)
class BaseCell:
    """The key of one unit of work of one model, which determines the paths of the cell's files."""

    ROOT: ClassVar[str]  # name of the first folder in the path

    model: str  # name of the model in the catalogue
    revision: str  # commit on the hub, digest of weights and tokenizer, or a server's model id

    @property
    def folder(self) -> str:
        """The folder of the cell's files, relative to the folder of the model."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the file name, in order; hyphens join them."""
        raise NotImplementedError

    @property
    def stem(self) -> str:
        """The path of the cell's files, relative to the data root and without a suffix."""
        name = "-".join(map(path_part, self.parts))
        return f"{self.ROOT}/model={path_part(self.model)}/{self.folder}/{name}"

    @property
    def path(self) -> str:
        """The path of the Parquet file with the results, relative to the data root."""
        return f"{self.stem}.parquet"

    @property
    def record_path(self) -> str:
        """The path of the JSON record, relative to the data root."""
        return f"{self.stem}.json"

    @property
    def done_path(self) -> str:
        """The path of the file that is written last; the claim (lock) of the cell has this name."""
        return self.path
