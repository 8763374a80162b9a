"""Records of scoring: the cost of a cell, in a small JSON file in the folder of its losses.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<name of the loss file>.json

The record is written before the losses, so a cell with losses has a record. Only early versions of
tidemark wrote no records.
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
from core.storage.records import read_record
from core.storage.store import Store

MAX_TIMED = 24  # maximum number of records of a model that an estimate of time reads

# JSON readers may round integers above 2**53.
Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0)]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class Milestone(_Facts):
    """Sums over the first ``milestone`` tokens of each document that is long enough."""

    milestone: Annotated[Count, Field(ge=1)]  # number of scored tokens, from the document's start
    num_documents: Count  # number of documents with at least ``milestone`` tokens
    nll_nats: Amount  # summed negative log-likelihood of these tokens, in nats
    num_chars: Count  # number of code points that these tokens cover
    num_bytes: Count  # number of UTF-8 bytes that these tokens cover


class ByteClass(_Facts):
    """Sums over the bytes of one class, such as digits; a token's loss is shared over its bytes."""

    byte_class: str  # name of the class
    nll_nats: Amount  # summed negative log-likelihood, in nats
    num_bytes: Count  # number of UTF-8 bytes of measured chunks


class TokenizerFacts(_Facts):
    """The properties of a model's tokenizer."""

    vocabulary_size: Count  # number of token ids
    start_token: str | None  # token put before a text: BOS, else EOS, else None
    has_byte_tokens: bool  # True if every byte has its own token


class CellRecord(_Facts):
    """The cost of scoring one cell; unknown JSON keys are ignored.

    Every field is required, except those that records of earlier versions lack.

    ``context`` is the length of the context window in tokens, or None for compressors.
    ``milestones`` are in ascending order, and empty if the scorer gives no loss per token.
    """

    # Time at which scoring ended.
    scored_at: Annotated[AwareDatetime, AfterValidator(lambda at: at.astimezone(dt.UTC))]
    device: str  # kind and name of the device, such as ``cuda: NVIDIA H200``
    dtype: str  # dtype of the weights
    batch_tokens: Annotated[Count, Field(ge=1)] | None  # tokens per batch, or None without batches
    context: Annotated[Count, Field(ge=1)] | None
    versions: dict[str, str]  # versions of tidemark and of the libraries used, by name
    seconds: Amount  # wall-clock time of scoring
    num_tokens_read: Count  # number of input tokens, including context that is not scored
    peak_memory_bytes: Count  # peak memory on the GPU; on a CPU, peak resident memory
    energy_joules: Amount | None  # energy of scoring, or None if the driver does not report it
    # Parameters that a token is multiplied by, and the measured rate of matrix products on this
    # device in operations per second; None if unknown.
    active_parameters: Count | None = None
    matmul_flops: Amount | None = None
    num_lossy_documents: Count  # number of documents whose tokens do not decode to the same text
    tokenizer: TokenizerFacts | None  # properties of the tokenizer, or None for compressors
    milestones: tuple[Milestone, ...]
    # Sums by class of byte, which add up to those of the measured chunks; empty if the scorer gives
    # no loss per token, or the protocol joins documents to a stream.
    byte_classes: tuple[ByteClass, ...] = ()
    # Model of the same weights whose pass gave the losses, which were copied; None without a copy.
    copied_from: str | None = None

    def to_json(self) -> bytes:
        """Return the record as stored JSON."""
        return self.model_dump_json().encode()


def read_cell_record(store: Store, cell: Cell) -> CellRecord | None:
    """Return the record of a cell, or None if the file does not exist.

    Raises:
        MalformedInput: the file is not a record; the message names file and first bad field.
    """
    path = cell.record_path
    remedy = (
        "bring it back from a backup, or move it and the losses beside it (.parquet) out of the "
        "data root and score again"
    )
    if not store.exists(path):
        return None
    return read_record(CellRecord, store, path, "the record of a cell", remedy, MalformedInput)


def median_seconds(
    store: Store, record_paths: Sequence[str], per_token: bool = False
) -> float | None:
    """Return the median scoring time of a cell, or of a token, or None if no record can be read."""
    # Reading all records would take long, so read some at equal distances in the list.
    step = max(1, len(record_paths) // MAX_TIMED)
    seconds = []
    for path in record_paths[::step][:MAX_TIMED]:
        with contextlib.suppress(StorageError, ValidationError):
            record = CellRecord.model_validate_json(store.read_bytes(path))
            tokens = max(1, record.num_tokens_read) if per_token else 1
            seconds.append(record.seconds / tokens)
    return statistics.median(seconds) if seconds else None
