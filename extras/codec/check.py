"""Check that stored losses equal real code lengths: code and decode a sample of chunks.

The scorer runs a whole window at once; the codec runs the model token by token. Their
probabilities differ in the last bits. So code length and loss may differ by 0.1 % and a few bytes.
A larger difference means that one of the two computations is wrong.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core import progress
from core.cells.losses import Cell
from core.corpus.partition import Seal, find_version, read_texts
from core.errors import NotMeasurable, StorageError
from core.settings import Settings
from core.storage.store import Store
from extras.codec.coding import Cutter, load_stepwise, open_files, rows_of_group
from extras.codec.stepwise import CodedChunk, StepwiseModel, decode_chunks, encode_chunks
from models.catalogue import ModelEntry
from models.scoring.scorer import Tokens

_TOLERANCE = 1e-3
_SPARE_BYTES = 16  # a code may be this much longer or shorter than predicted
_MISSING_BYTES = 1
_COLUMNS = ["document_id", "chunk_index", "num_tokens", "nll_nats"]


class SampledChunk(NamedTuple):
    """A chunk of the sample, with its stored loss and number of tokens."""

    cell: Cell
    document_id: str
    chunk_index: int
    num_tokens: int
    nll_nats: float

    @property
    def predicted_bytes(self) -> float:
        """The code length in bytes that the loss predicts."""
        return self.nll_nats / math.log(2) / 8


class Verdict(NamedTuple):
    """The result for a chunk: a ``problem`` with its code, or a ``note`` why it was not coded."""

    chunk: SampledChunk
    coded_bytes: int | None
    problem: str | None = None
    note: str | None = None


def check_losses(
    cells: Sequence[Cell], entry: ModelEntry, settings: Settings, num_chunks: int
) -> list[Verdict]:
    """Code and decode a sample of the cells' chunks, and compare code lengths with losses.

    Raises:
        ModelLoadError: the model's files are missing, unsafe or broken.
        NotMeasurable: the model gives no finite probabilities.
        StorageError: losses or documents are damaged, or the scored version of them is missing.
    """
    store = Store(settings.home)
    sample = _sample(store, cells, num_chunks)
    files = open_files(entry, settings)
    cutter = Cutter(files)
    verdicts = []
    found = []
    for chunk, ids in zip(sample, _tokens_of(store, sample, cutter), strict=True):
        if isinstance(ids, Verdict):
            verdicts.append(ids)
        else:
            found.append((chunk, ids))
    if found:
        model = load_stepwise(files, cutter)
        rows = rows_of_group(files, model, cutter.context)
        for begin in range(0, len(found), rows):
            verdicts += _check_group(found[begin : begin + rows], model, cutter)
            progress.report(f"code {entry.name}", min(begin + rows, len(found)), len(found))
    order = {chunk: place for place, chunk in enumerate(sample)}
    return sorted(verdicts, key=lambda verdict: order[verdict.chunk])


def _sample(store: Store, cells: Sequence[Cell], num_chunks: int) -> list[SampledChunk]:
    """Return a random sample of the measured chunks (the lowest hashes), sorted by cell."""

    def rank(chunk: SampledChunk) -> bytes:
        name = f"{chunk.cell.path}|{chunk.document_id}|{chunk.chunk_index}"
        return hashlib.sha256(name.encode()).digest()

    chosen = heapq.nsmallest(num_chunks, _measured_chunks(store, cells), key=rank)
    return sorted(chosen, key=lambda chunk: (chunk.cell.path, *chunk[1:]))


def _measured_chunks(store: Store, cells: Sequence[Cell]) -> Iterator[SampledChunk]:
    """Yield the chunks of text that have a finite landed loss."""
    for cell in cells:
        if not _seal_of(store, cell).is_text:
            continue
        try:
            with store.open(cell.path) as file:
                for batch in pq.ParquetFile(file).iter_batches(columns=_COLUMNS):
                    rows = zip(*(batch.column(name).to_pylist() for name in _COLUMNS), strict=True)
                    for document_id, chunk_index, num_tokens, nats in rows:
                        if nats is not None and math.isfinite(nats) and num_tokens:
                            yield SampledChunk(cell, document_id, chunk_index, num_tokens, nats)
        except (pa.ArrowInvalid, OSError) as error:
            raise StorageError(
                f"{store.url(cell.path)} is damaged ({error}); bring it back from a "
                "backup, or move it out of the data root and score the cell again"
            ) from error


def _tokens_of(
    store: Store, sample: Sequence[SampledChunk], cutter: Cutter
) -> list[Tokens | Verdict]:
    """Return each chunk's tokens, or the verdict that its text cannot be cut again."""
    wanted: dict[Cell, dict[str, list[SampledChunk]]] = {}
    for chunk in sample:
        wanted.setdefault(chunk.cell, {}).setdefault(chunk.document_id, []).append(chunk)
    found: dict[SampledChunk, Tokens | Verdict] = {}
    for cell, chunks in wanted.items():
        for document_id, text in read_texts(store, _seal_of(store, cell), chunks):
            for chunk in chunks[document_id]:
                found[chunk] = _cut_again(chunk, text, cutter)
    gone = "its document is no longer in the partition"
    return [found.get(chunk, Verdict(chunk, None, problem=gone)) for chunk in sample]


def _seal_of(store: Store, cell: Cell) -> Seal:
    seal = find_version(store, cell.partition, cell.partition_digest)
    if seal is None:
        raise StorageError(f"the text of {cell} is gone; bring the partition back from a backup")
    return seal


def _cut_again(chunk: SampledChunk, text: str, cutter: Cutter) -> Tokens | Verdict:
    """Return a chunk's tokens; a verdict if its text no longer gives the scored chunks."""
    try:
        chunks = cutter.cut(text).chunks
    except NotMeasurable:
        return Verdict(chunk, None, note="not coded: the tokenizer does not give this text back")
    if chunk.chunk_index >= len(chunks) or len(chunks[chunk.chunk_index]) != chunk.num_tokens:
        return Verdict(chunk, None, problem="the text is cut into other chunks than were scored")
    return chunks[chunk.chunk_index]


def _check_group(
    group: Sequence[tuple[SampledChunk, Tokens]], model: StepwiseModel, cutter: Cutter
) -> list[Verdict]:
    """Encode and decode chunks together; compare tokens and lengths of codes."""
    tokens = [ids for _, ids in group]
    coded = encode_chunks(model, tokens, cutter.first, _silent)
    codes = [(code.code, len(ids)) for code, ids in zip(coded, tokens, strict=True)]
    decoded = decode_chunks(model, codes, cutter.first, _silent)
    verdicts: list[Verdict] = []
    for (chunk, ids), code, back in zip(group, coded, decoded, strict=True):
        if np.array_equal(ids, back):
            problem = _disagreement(chunk, code)
        else:
            problem = "decoding gave other tokens than were coded"
        verdicts.append(Verdict(chunk, len(code.code), problem))
    return verdicts


def _silent(num_tokens: int) -> None:
    """Ignore the progress in tokens; ``check_losses`` reports progress in chunks instead."""


def _disagreement(chunk: SampledChunk, coded: CodedChunk) -> str | None:
    """Return how the length of a code differs from the landed loss; None if it agrees."""
    predicted = chunk.predicted_bytes
    size = len(coded.code)
    # A code may be shorter than the loss, because the codec's lowest probability is 2^-60.
    least = predicted * (1 - _TOLERANCE) - _MISSING_BYTES - coded.floored_bits / 8
    if least <= size <= predicted * (1 + _TOLERANCE) + _SPARE_BYTES:
        return None
    stepwise = coded.nats / math.log(2) / 8
    if abs(stepwise - predicted) > _TOLERANCE * predicted:
        return (
            f"token by token the model predicts {stepwise:.1f} bytes and its landed loss says "
            f"{predicted:.1f}: one of the two passes is wrong"
        )
    return f"the code has {size} bytes where the landed loss says {predicted:.1f}"
