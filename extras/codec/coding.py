"""The codec: compress a text to the number of bytes that a model's loss predicts (Li et al. 2024).

The code of a chunk with probability P takes -log2 P bits, plus at most 0.1 % and 16 bytes. Decoding
restores the text exactly (arXiv 2402.00861, algorithms 1 and 2). Chunks are the windows of the
default protocol. Each chunk is coded independently.

Decoding works only if every probability equals the encoder's to the last bit. So a file records all
known influences on them: weights, library versions, hardware, number of threads, a digest of the
results of a short pass. Decoding fails with an error if any of these differs. A checksum of the
text detects all other differences. ``file.py`` defines the format; ``stepwise.py`` runs the model.
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
from extras.codec.file import (
    PROTOCOL,
    CodedFile,
    Header,
    check_device,
    check_files,
    check_pass,
    check_protocol,
    chunk_prefix,
    environment,
    folder_files_digest,
    model_digest,
    pack,
    torch_threads,
    unpack,
)
from extras.codec.stepwise import (
    Advance,
    CodedChunk,
    First,
    StepwiseModel,
    decode_chunks,
    encode_chunks,
    probe_digest,
)
from models.catalogue import ModelEntry, find_model, list_models
from models.scoring.accounting import Accountant, explained, token_bytes
from models.scoring.machine import name_of_dtype
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tokens
from models.scoring.windows import plan_windows
from models.weights.checkpoint import CheckpointFiles, open_checkpoint
from models.weights.loading import is_memory_full, load_weights

CODED_DEVICES = ("cpu", "cuda")
_MAX_ROWS = 64
_STATE_BYTES = {"cpu": 2**31, "cuda": 2**34}  # maximum size of a group's KV cache


class CutText(NamedTuple):
    """A text's tokens by chunk, and the way to convert them back to the text.

    ``by_decoder``: True if only the tokenizer's decoder restores the text, and joining the bytes of
    the tokens does not. ``has_space_in_front``: True if the result starts with an extra space.
    """

    chunks: list[Tokens]
    has_space_in_front: bool
    by_decoder: bool


class Cutter:
    """Splits texts into chunks of tokens as the default protocol does; converts tokens to text.

    Attributes:
        first: id of the start token; without a start token, all ids that may begin a chunk.
        largest_id: largest token id of the tokenizer.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        tokenizer = files.tokenizer
        bos = tokenizer.bos_token_id
        eos = tokenizer.eos_token_id
        start: int | None = eos if bos is None else bos
        ids = sorted(set(tokenizer.get_vocab().values()))
        self._location = files.location
        self._protocol = get_protocol(PROTOCOL)
        self._tokenizer = tokenizer.backend_tokenizer
        self._accountant = Accountant(self._tokenizer, tokenizer.all_special_tokens)
        self._table = token_bytes(self._tokenizer) or []
        self._num_prefix = 0 if start is None else 1
        self.context = self._protocol.effective_context(files.context)
        self.first: First = ids if start is None else start
        self.largest_id = ids[-1]

    def cut(self, text: str) -> CutText:
        """Split a text into chunks; raise NotMeasurable if its tokens do not restore the text."""
        raw = text.encode()
        [tokens] = self._accountant.tokenize([text], as_text=True)
        windows = plan_windows(len(tokens.ids), self._protocol, self.context, self._num_prefix)
        chunks = [tokens.ids[window.first : window.end] for window in windows]
        for by_decoder in (False, True):
            spelled = self.spell(tokens.ids, by_decoder)
            if spelled in (raw, b" " + raw):
                return CutText(chunks, len(spelled) > len(raw), by_decoder)
        raise NotMeasurable(
            f"{self._location}: its tokenizer does not give this text back (it normalises, drops "
            "or does not know some characters), so another text would be restored; use a model "
            "with byte-level BPE"
        )

    def spell(self, ids: Tokens, by_decoder: bool) -> bytes:
        """Return the bytes of tokens, int64 (n,); ids unknown to the tokenizer have no bytes."""
        if by_decoder:
            with explained():
                return self._tokenizer.decode(ids.tolist(), skip_special_tokens=False).encode()
        return b"".join(self._table[index] for index in ids.tolist() if index < len(self._table))


class Compressed(NamedTuple):
    """A compressed text, with its size and the size that the model predicts.

    ``data`` is the input of ``decompress``: a header, then ``coded_bytes`` bytes for the chunks.
    ``predicted_bytes`` is the sum of -log2 P / 8 over all tokens; P is a token's probability.
    """

    data: bytes
    num_chunks: int
    predicted_bytes: float
    coded_bytes: int


def open_files(entry: ModelEntry, settings: Settings) -> CheckpointFiles:
    """Open a model's files without reading its weights.

    Raises:
        ModelLoadError: the files are missing, unsafe or broken.
        NotMeasurable: the model is not a causal language model, or has no fast tokenizer.
        UsageError: the codec does not support this kind of model, the device or the dtype.
    """
    if not entry.backend.codes:
        raise UsageError(
            f"{entry.name} is of kind {entry.kind}; the codec takes its probabilities from Hugging "
            "Face causal language models alone"
        )
    files = open_checkpoint(entry.location, entry.revision, settings, entry.is_trusted)
    if files.device.type not in CODED_DEVICES:
        raise UsageError(
            f"the codec runs on {' and '.join(CODED_DEVICES)}, which compute in float64; set "
            f"TIDEMARK_DEVICE to one of them, not to {files.device.type}"
        )
    return files


def load_stepwise(files: CheckpointFiles, cutter: Cutter) -> StepwiseModel:
    """Load a model's weights in order to run the model token by token.

    Raise ModelLoadError if weights are missing, unsafe, broken, or do not fit the tokenizer.
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
    """Return the number of chunks to code together so that keys and values fit into memory."""
    config = files.config.get_text_config()
    layers, hidden = (getattr(config, key, 0) for key in ("num_hidden_layers", "hidden_size"))
    row = 2 * layers * hidden * context * files.dtype.itemsize
    fitting = _STATE_BYTES.get(files.device.type, 2**31) // max(1, row)
    return max(1, min(_MAX_ROWS, fitting, model.max_rows or _MAX_ROWS))


def compress(text: str, entry: ModelEntry, settings: Settings) -> Compressed:
    """Compress a text with a model's probabilities.

    Returns:
        The compressed text. The header has about 200 bytes. A chunk of probability P has at most
        1.001 * (-log2 P) / 8 + 16 bytes.

    Raises:
        ModelLoadError: the model's files are missing, unsafe or broken.
        NotMeasurable: the tokenizer cannot restore this text (checked first), or the model gives no
            finite probabilities.
        UsageError: the codec does not support this kind of model, the device or the dtype.
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
        dtype=name_of_dtype(files.dtype),
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
    """Replace characters of a folder's name that UTF-8 cannot encode."""
    return name.encode(errors="replace").decode()


def decompress(
    data: bytes, settings: Settings, model: str | None = None, where: str = "the file"
) -> bytes:
    """Restore a compressed text; raise an error if the exact text cannot be restored.

    Args:
        data: ``Compressed.data``, the result of ``compress``.
        settings: device and dtype of the settings are ignored; the file states both.
        model: name, folder or hub id of the model, if the model that the file names cannot be
            found. The model's files must equal those used for coding.
        where: name of the file in error messages.

    Returns:
        The text in UTF-8, verified by its checksum.

    Raises:
        MalformedInput: the file has another format, or is damaged or cut off.
        NotReproducible: model, protocol, device or library differ, so probabilities would differ.
        UsageError: the model that the file names is not available.
        ModelLoadError: the model's files are unsafe or broken.
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
    """Code all chunks in groups of ``batch``; in smaller groups if the device's memory is full."""
    while True:
        try:
            advance = _reporter("compress", sum(map(len, chunks)))
            coded = []
            for begin in range(0, len(chunks), batch):
                coded += encode_chunks(model, chunks[begin : begin + batch], first, advance)
            return coded, batch
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
    """Return the bytes of a compressed file, decoded in the groups that it was encoded in."""
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
            "the file was written; free memory of the device"
        ) from error
    spelled = cutter.spell(np.concatenate(ids), header.by_decoder)
    return spelled[header.has_space_in_front :]


def _reporter(step: str, total: int) -> Advance:
    """Return a function that reports progress, given the number of tokens of each step."""
    done = 0

    def advance(num_tokens: int) -> None:
        nonlocal done
        done += num_tokens
        progress.report(step, done, total)

    return advance


def _find(header: Header, settings: Settings, model: str | None, where: str) -> ModelEntry:
    """Find the model that a file names, or the given ``model``.

    A file may come from an untrusted source. So only two kinds of names are accepted: an entry of
    the catalogue, or a folder whose files equal those used for coding.
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
    # Use the recorded revision: the catalogue may list a newer revision of the same repository.
    is_same = entry.location == header.location and not Path(entry.location).is_dir()
    return dataclasses.replace(entry, revision=header.revision) if is_same else entry


def _is_folder_of(header: Header) -> bool:
    """Return True if the folder that a header names has the model that wrote the file."""
    folder = Path(header.location)
    if not folder.is_absolute() or not folder.is_dir():
        return False
    try:
        return folder_files_digest(folder) == header.digest.split("+")[0]
    except ModelLoadError:  # the folder contains no model
        return False
