"""The codec: a text as so many bytes as a model's loss on it says, and back (Li et al. 2024).

That makes a loss believable: the code of a chunk takes -log2 P bits, up to a thousandth and some
bytes, and gives the text back bit for bit (arXiv 2402.00861, algorithms 1 and 2). Chunks are the
windows of the default protocol, each coded by itself.

A code can be read only where every probability comes out as it was, to the last bit. So a file
records all that is known to decide that, and reading is refused where any of it differs: the
weights, the versions of the libraries, the hardware, the number of threads (set as recorded for the
while), and a probe: the floats of a short pass. What all that does not catch, the text's checksum
does. ``codec_file.py`` has the format, ``stepwise.py`` the pass.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from core import progress
from core.errors import ModelLoadError, NotMeasurable, NotReproducible, UsageError
from core.settings import Settings
from models.backend import Tokens
from models.catalogue import ModelEntry, find_model, list_models
from models.checkpoint import CheckpointFiles, load_weights, open_checkpoint
from models.codec_file import CodedFile, Header, chunk_prefix, pack, unpack
from models.codec_refusal import (
    check_device,
    check_files,
    check_pass,
    check_protocol,
    dtype_name,
    environment,
    folder_files_digest,
    model_digest,
    torch_threads,
)
from models.codec_text import PROTOCOL, Cutter
from models.placement import is_memory_full
from models.protocols import get_protocol
from models.stepwise import (
    Advance,
    CodedChunk,
    First,
    StepwiseModel,
    decode_chunks,
    encode_chunks,
    probe_digest,
)

CODED_KINDS = ("causal_lm", "reference")  # of models: those that transformers runs
CODED_DEVICES = ("cpu", "cuda")

_MAX_ROWS = 64
_STATE_BYTES = {"cpu": 2**31, "cuda": 2**34}  # of the keys and values of a group


class Compressed(NamedTuple):
    """A compressed text, and what its size is made of.

    ``data`` is what ``decompress`` reads; the rest of it than ``coded_bytes``, those of the chunks,
    is the header. ``predicted_bytes`` is the sum of -log2 P / 8 as the pass that coded had it.
    """

    data: bytes
    num_chunks: int
    predicted_bytes: float
    coded_bytes: int


def open_files(entry: ModelEntry, settings: Settings) -> CheckpointFiles:
    """Open a model's files, without its weights.

    Raises:
        ModelLoadError: they are missing, unsafe or broken.
        NotMeasurable: not a causal language model, or without a fast tokenizer.
        UsageError: a model of another kind, or the device or dtype cannot be had.
    """
    if entry.kind not in CODED_KINDS:
        raise UsageError(
            f"{entry.name} is of kind {entry.kind}; the codec takes its probabilities from Hugging "
            "Face causal language models alone"
        )
    files = open_checkpoint(entry.location, entry.revision, settings)
    if files.device.type not in CODED_DEVICES:
        raise UsageError(
            f"the codec runs on {' and '.join(CODED_DEVICES)}, which compute in float64; set "
            f"TIDEMARK_DEVICE to another than {files.device.type}"
        )
    return files


def load_stepwise(files: CheckpointFiles, cutter: Cutter) -> StepwiseModel:
    """Load a model's weights, to be fed token by token.

    Raises:
        ModelLoadError: they are missing, unsafe, broken, or not of this tokenizer.
    """
    weights = load_weights(files)
    try:
        model = StepwiseModel(weights)
    except ModelLoadError as error:
        raise ModelLoadError(f"{files.location}: {error}") from error
    if cutter.largest_id >= model.vocabulary_size:
        raise ModelLoadError(
            f"{files.location}: the tokenizer has ids up to {cutter.largest_id} and the model "
            f"predicts {model.vocabulary_size} tokens; they are not of the same model"
        )
    return model


def rows_of_group(files: CheckpointFiles, model: StepwiseModel, context: int) -> int:
    """Return how many chunks are coded together, so that their state fits into memory."""
    config = files.config.get_text_config()
    layers, hidden = (getattr(config, key, 0) for key in ("num_hidden_layers", "hidden_size"))
    row = 2 * layers * hidden * context * files.dtype.itemsize
    fitting = _STATE_BYTES.get(files.device.type, 2**31) // max(1, row)
    return max(1, min(_MAX_ROWS, fitting, model.max_rows or _MAX_ROWS))


def compress(text: str, entry: ModelEntry, settings: Settings) -> Compressed:
    """Code a text with a model's probabilities.

    Args:
        text: any Unicode without lone surrogates.
        entry: a Hugging Face causal language model.
        settings: device, dtype, allow_pickle_weights.

    Returns:
        A file that ``decompress`` reads: at most 1.001 * sum of -log2 P / 8 + 16 bytes a chunk,
        and a header of some 200 bytes.

    Raises:
        ModelLoadError: the model's files are missing, unsafe or broken.
        NotMeasurable: the tokenizer does not give this text back (found before any work is done),
            or the model gives no finite probabilities.
        UsageError: the entry is a control, or there is no such device or dtype.
    """
    files = open_files(entry, settings)
    cutter = Cutter(files)
    chunks, has_space, by_decoder = cutter.cut(text)
    model = load_stepwise(files, cutter)
    batch = max(1, min(rows_of_group(files, model, cutter.context), len(chunks)))
    coded, batch = _encode(model, chunks, cutter.first, batch)
    raw = text.encode()
    protocol = get_protocol(PROTOCOL)
    folder = Path(files.location).expanduser()
    header = Header(
        model=_printable(entry.name),
        location=_printable(str(folder.resolve()) if folder.is_dir() else files.location),
        revision=files.revision,
        digest=model_digest(files),
        protocol=protocol.name,
        protocol_digest=protocol.digest,
        context=cutter.context,
        num_bytes=len(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
        num_chunks=len(chunks),
        has_space_in_front=has_space,
        by_decoder=by_decoder,
        batch=batch,
        keeps_state=model.keeps_state,
        probe=probe_digest(model, batch),
        device=files.device.type,
        dtype=dtype_name(files),
        threads=torch.get_num_threads(),
        environment=environment(files),
    )
    codes = [(chunk.code, len(ids)) for chunk, ids in zip(coded, chunks, strict=True)]
    return Compressed(
        data=pack(CodedFile(header, codes)),
        num_chunks=len(codes),
        predicted_bytes=sum(chunk.nats for chunk in coded) / math.log(2) / 8,
        coded_bytes=sum(len(chunk_prefix(*code)) + len(code[0]) for code in codes),
    )


def _printable(name: str) -> str:
    """A name without what no UTF-8 can spell: a folder's may be in another encoding."""
    return name.encode(errors="replace").decode()


def decompress(
    data: bytes, settings: Settings, model: str | None = None, where: str = "the file"
) -> bytes:
    """Restore a text, or refuse.

    Args:
        data: of what ``compress`` returned.
        settings: the catalogue, allow_pickle_weights; device and dtype are the file's.
        model: name, folder or hub id of the model, where it is not found as it was; its files must
            be those that the text was coded with all the same.
        where: the file's name, for messages.

    Returns:
        The text in UTF-8, its checksum verified.

    Raises:
        MalformedInput: the file is none of these, damaged, or cut off.
        NotReproducible: another model, protocol, device or library: the probabilities would not
            come out the same.
        UsageError: the model that the file names is not here.
        ModelLoadError: its files are unsafe or broken.
    """
    header, codes = unpack(data, where)
    check_protocol(header, where)
    entry = _find(header, settings, model, where)
    check_device(header, where)
    recorded = settings.model_copy(update={"device": header.device, "dtype": header.dtype})
    files = open_files(entry, recorded)
    check_files(header, files, where)
    cutter = Cutter(files)
    with torch_threads(header.threads):
        stepwise = load_stepwise(files, cutter)
        check_pass(header, stepwise, rows_of_group(files, stepwise, cutter.context), where)
        raw = _decode(header, codes, stepwise, cutter)
    if len(raw) != header.num_bytes or hashlib.sha256(raw).hexdigest() != header.sha256:
        raise NotReproducible(
            f"{where} is intact, and yet another text came out than went in: the probabilities "
            "were not the same as when it was written; nothing is restored"
        )
    return raw


def _encode(
    model: StepwiseModel, chunks: Sequence[Tokens], first: First, batch: int
) -> tuple[list[CodedChunk], int]:
    """Code all chunks in groups, of fewer where the device's memory is too small for ``batch``."""
    while True:
        try:
            advance = _reporter("compress", sum(map(len, chunks)))
            return [
                coded
                for begin in range(0, len(chunks), batch)
                for coded in encode_chunks(model, chunks[begin : begin + batch], first, advance)
            ], batch
        except RuntimeError as error:
            if not is_memory_full(error):
                raise
            if batch == 1:
                raise NotMeasurable("one chunk does not fit into the device's memory") from error
        batch //= 2
        torch.cuda.empty_cache()


def _decode(
    header: Header, codes: Sequence[tuple[bytes, int]], model: StepwiseModel, cutter: Cutter
) -> bytes:
    advance = _reporter("decompress", sum(length for _, length in codes))
    ids: list[Tokens] = [np.zeros(0, dtype=np.int64)]
    try:
        for begin in range(0, len(codes), header.batch):
            group = codes[begin : begin + header.batch]
            ids += decode_chunks(model, group, cutter.first, advance)
    except RuntimeError as error:
        if not is_memory_full(error):
            raise
        raise NotReproducible(
            f"groups of {header.batch} chunks do not fit into the device's memory as they did when "
            "the file was written; free some of it"
        ) from error
    spelled = cutter.spell(np.concatenate(ids), header.by_decoder)
    return spelled[header.has_space_in_front :]


def _reporter(step: str, total: int) -> Advance:
    """Return what adds up the tokens that are done, and reports them."""
    done = 0

    def advance(num_tokens: int) -> None:
        nonlocal done
        done += num_tokens
        progress.report(step, done, total)

    return advance


def _find(header: Header, settings: Settings, model: str | None, where: str) -> ModelEntry:
    """Find the model that a file names, or that was given in its place.

    A file may come from anybody, so by itself it can name a folder whose files are those that it
    was coded with, or an entry of the catalogue; nothing else is opened or fetched at its word.
    """
    if model is not None:
        entry = find_model(model, settings)
    elif _is_folder_of(header):
        entry = find_model(header.location, settings)
    elif header.model in {known.name for known in list_models(settings)}:
        entry = find_model(header.model, settings)
    else:
        raise UsageError(
            f"{where} was written with {header.model} ({header.location}), which is neither in the "
            "catalogue nor a folder with the same files here; name the model with --model"
        )
    # The catalogue may have moved on to another revision of the same repository.
    is_same = entry.location == header.location and not Path(entry.location).is_dir()
    return dataclasses.replace(entry, revision=header.revision) if is_same else entry


def _is_folder_of(header: Header) -> bool:
    folder = Path(header.location)
    if not folder.is_absolute() or not folder.is_dir():
        return False
    try:
        return folder_files_digest(folder) == header.digest.split("+")[0]
    except ModelLoadError:  # a folder, but no model's
        return False
