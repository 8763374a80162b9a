"""JSON files of the data root that hold pydantic models."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import StorageError, TidemarkError
from core.storage.store import Store
from core.version import explain_newer

Record = TypeVar("Record", bound=BaseModel)


def read_record(
    kind: type[Record],
    store: Store,
    path: str,
    what: str,
    remedy: str,
    error: type[TidemarkError] = StorageError,
) -> Record:
    """Return the record in a file; raise ``error``, with its first bad field, if it is damaged.

    If a later version of tidemark wrote the record, the error says so.
    """
    content = store.read_bytes(path)
    try:
        return kind.model_validate_json(content)
    except ValidationError as problem:
        newer = explain_newer(content)
        if newer:
            raise error(f"{store.url(path)} {newer}") from problem
        first = problem.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise error(
            f"{store.url(path)} is not {what}: {field}: {first['msg']}; {remedy}"
        ) from problem
