"""Records of scoring: cost and facts of a cell, in a small JSON file beside its losses.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<as the losses>.json

The record is written before the losses, so a cell with losses has a record. Early versions of
tidemark wrote no records. The clock fields differ from run to run; the losses do not.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import statistics
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from core.cells.losses import Cell
from core.errors import MalformedInput, StorageError
from core.storage.store import Store

MAX_TIMED = 24  # records to read per model for time estimates; cells of a model take similar time


def _in_utc(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.UTC)


# JSON readers may round integers above 2**53.
Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0)]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class Milestone(_Facts):
    """Sums over the first tokens of each document that has at least ``milestone`` tokens."""

    milestone: Annotated[Count, Field(ge=1)]  # scored tokens per document, from the first on
    num_documents: Count  # documents with at least this number of tokens
    nll_nats: Amount  # summed negative log-likelihood of these tokens, natural log
    num_chars: Count  # code points of the text covered by these tokens
    num_bytes: Count  # UTF-8 bytes of the same text


class TokenizerFacts(_Facts):
    """The facts of a model's tokenizer."""

    vocabulary_size: Count  # number of token ids
    start_token: str | None  # token before a text (BOS, else EOS); None if the model has neither
    has_byte_tokens: bool  # True if every byte has its own token


class CellRecord(_Facts):
    """The cost of scoring one cell; every field is required, and unknown keys are ignored.

    ``context`` is in tokens, at most the model's limit; None for compressors. ``milestones`` are in
    order of length; empty if the scorer gives no loss per token.
    """

    scored_at: Annotated[AwareDatetime, AfterValidator(_in_utc)]  # when scoring ended
    device: str  # kind and name, such as ``cuda: NVIDIA H200``
    dtype: str  # dtype of the weights
    batch_tokens: Annotated[Count, Field(ge=1)] | None  # tokens per batch; None without batches
    context: Annotated[Count, Field(ge=1)] | None
    versions: dict[str, str]  # versions of tidemark and of the libraries used, by name
    seconds: Amount  # wall-clock time
    num_tokens_read: Count  # input tokens, including context that is not scored
    peak_memory_bytes: Count  # memory of the device; on a CPU, resident memory of the process
    energy_joules: Amount | None  # None if the driver does not report energy
    num_lossy_documents: Count  # documents that do not survive encoding and decoding
    tokenizer: TokenizerFacts | None  # None for compressors
    milestones: tuple[Milestone, ...]

    def to_json(self) -> bytes:
        """Return the record as stored JSON."""
        return self.model_dump_json().encode()


def read_cell_record(store: Store, cell: Cell) -> CellRecord | None:
    """Return the record of a cell, or None if there is none.

    Raises:
        MalformedInput: the file is not a record; the message names file and first bad field.
    """
    if not store.exists(cell.record_path):
        return None
    try:
        return CellRecord.model_validate_json(store.read_bytes(cell.record_path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise MalformedInput(
            f"{store.url(cell.record_path)} is not the record of a cell: {field}: {first['msg']}; "
            "delete it and the losses beside it (.parquet), and score again"
        ) from error


def median_seconds(store: Store, record_paths: Sequence[str]) -> float | None:
    """Return the median seconds per cell; None if no record can be read.

    Read at most MAX_TIMED records. Skip unreadable ones.
    """
    step = max(1, len(record_paths) // MAX_TIMED)
    seconds = []
    for path in record_paths[::step][:MAX_TIMED]:
        with contextlib.suppress(StorageError, ValidationError):
            seconds.append(CellRecord.model_validate_json(store.read_bytes(path)).seconds)
    return statistics.median(seconds) if seconds else None
