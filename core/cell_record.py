"""What scoring a cell took, and what it found beside the losses: one small JSON file a cell.

    losses/model=<m>/source=<s>/month=<YYYY-MM>/<as the losses>.json

It is written before the losses: a cell that is done has its record, unless a version of tidemark
that wrote none has scored it. Its clock fields differ from run to run; the losses do not.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from core.cells import Cell
from core.errors import MalformedInput
from core.storage import Store


def _in_utc(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.UTC)


# Above 2**53 a reader of JSON need not keep a whole number as it is.
Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0)]


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class Milestone(_Facts):
    """Sums over the beginnings of those documents that are long enough.

    Attributes:
        milestone: how many scored tokens of each document count, from its first on.
        num_documents: documents that have at least so many.
        nll_nats: summed negative log-likelihood of these tokens, natural log.
        num_chars: code points of exactly the text that they cover.
        num_bytes: its UTF-8 bytes.
    """

    milestone: Annotated[Count, Field(ge=1)]
    num_documents: Count
    nll_nats: Amount
    num_chars: Count
    num_bytes: Count


class TokenizerFacts(_Facts):
    """What a model's tokenizer is like.

    Attributes:
        vocabulary_size: ids that it can give.
        start_token: what precedes a text (BOS, else EOS); None where it has neither.
        has_byte_tokens: whether every byte has a token of its own.
    """

    vocabulary_size: Count
    start_token: str | None
    has_byte_tokens: bool


class CellRecord(_Facts):
    """What scoring one cell took; every field has to be given, unknown keys are passed over.

    Attributes:
        scored_at: when scoring ended (UTC).
        device: kind and name, such as ``cuda: NVIDIA H200``.
        dtype: of the weights.
        batch_tokens: token budget of a batch; None where there are no batches.
        context: tokens of a window, no more than the model takes; None for compressors.
        versions: of tidemark and of the libraries that computed, by name.
        seconds: wall-clock time.
        num_tokens_read: inputs that the model read, context that was not scored included.
        peak_memory_bytes: of the device (on a CPU: resident memory of the process).
        energy_joules: None where the driver does not tell.
        num_lossy_documents: documents that the tokenizer does not give back as they were.
        tokenizer: None where there is none (a compressor).
        milestones: by rising length; none where the scorer does not give every token's loss.
    """

    scored_at: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    device: str
    dtype: str
    batch_tokens: Annotated[Count, Field(ge=1)] | None
    context: Annotated[Count, Field(ge=1)] | None
    versions: dict[str, str]
    seconds: Amount
    num_tokens_read: Count
    peak_memory_bytes: Count
    energy_joules: Amount | None
    num_lossy_documents: Count
    tokenizer: TokenizerFacts | None
    milestones: tuple[Milestone, ...]

    def to_json(self) -> bytes:
        """Return the record as it is stored."""
        return self.model_dump_json().encode()


def read_cell_record(store: Store, cell: Cell) -> CellRecord | None:
    """Return the record of a cell, or None where there is none.

    Raises:
        MalformedInput: the file is not a record; names it and the first field that is wrong.
        StorageError: it cannot be read.
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
