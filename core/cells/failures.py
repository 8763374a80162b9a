"""Records of failed cells: small JSON files beside where the files of the cells would be.

    <root>/model=<m>/…/<name of the cell's file>.failed.json   a cell that failed
    <root>/model=<m>/model.failed.json                         a model that could not be used at all

A cell with its file is done. A cell with such a record has failed. Any other cell is pending. The
record is deleted when the cell is done.
"""

from __future__ import annotations

import logging

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.errors import StorageError
from core.storage.store import Store, path_part

SUFFIX = ".failed.json"
_log = logging.getLogger(__name__)


class CellFailure(BaseModel):
    """The reason of a failed cell, and the number of attempts."""

    model_config = ConfigDict(frozen=True)

    run: str  # id of the run in which it failed last
    cell: str  # the cell's name, for messages
    reason: str
    error: str  # name of the error's class
    may_pass: bool  # True if another attempt with the same inputs may succeed
    attempts: int  # number of runs in which it failed
    failed_at: AwareDatetime  # UTC
    protocol: str | None = None  # the only protocol under which a model was refused, or None

    def __str__(self) -> str:
        return f"{self.cell}: {self.reason}"

    def is_final(self, run: str) -> bool:
        """Return True if a run does not try the cell again without ``--retry-failed``."""
        return self.run == run or not self.may_pass


def stem_of_model(root: str, model: str) -> str:
    """Return the stem of the record of a model that could not be used; see ``note_failure``."""
    return f"{root}/model={path_part(model)}/model"


def note_failure(store: Store, stem: str, failure: CellFailure) -> None:
    """Write the record of a failure; add the attempts of earlier runs. Only log write errors.

    ``stem`` is the path of the cell's files without a suffix.
    """
    try:
        before = read_failure(store, stem)
        if before is not None:
            attempts = before.attempts + failure.attempts
            failure = failure.model_copy(update={"attempts": attempts})
        store.write_bytes(f"{stem}{SUFFIX}", failure.model_dump_json().encode())
    except StorageError as problem:  # a full disk, for example, is often the cause of the failure
        _log.warning("the failure of %s is not recorded: %s", failure.cell, problem)


def forget_failure(store: Store, stem: str) -> None:
    """Delete the record of a failure, if there is one."""
    store.delete(f"{stem}{SUFFIX}")


def read_failure(store: Store, stem: str) -> CellFailure | None:
    """Return the recorded failure of a cell or model, or None if there is none."""
    path = f"{stem}{SUFFIX}"
    return _read(store, path) if store.exists(path) else None


def read_failures(store: Store, root: str, model: str = "*") -> dict[str, CellFailure]:
    """Return the recorded failures of a model (default: of all models), by stem."""
    folder = "*" if model == "*" else path_part(model)
    found = {}
    for path in store.list(f"{root}/model={folder}/**/*{SUFFIX}"):
        record = _read(store, path)
        if record is not None:
            found[path.removesuffix(SUFFIX)] = record
    return found


def _read(store: Store, path: str) -> CellFailure | None:
    """Return a record, or None if it is damaged or was deleted meanwhile."""
    try:
        return CellFailure.model_validate_json(store.read_bytes(path))
    except (StorageError, ValidationError) as error:
        _log.warning("skipped: %s: %s", store.url(path), str(error).partition("\n")[0])
        return None
