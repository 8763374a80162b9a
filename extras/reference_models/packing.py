"""Packing: a corpus as token ids on disk, and as batches of windows for training.

The windows are those of the default protocol: a start token, then text of one document. So inputs
in training equal those in scoring. Tokens are stored as uint32 in one memory-mapped file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from core.corpus.partition import Seal, read_documents
from core.storage.store import Store, replace_durably

START = "<|start|>"
END = "<|end|>"
START_ID = 0
END_ID = 1
IGNORED = -100  # target of padding, which torch's cross_entropy ignores
_POOL_BATCHES = 16  # number of batches whose windows are sorted by length together

Numbers = npt.NDArray[np.int64]


def write_durably(path: Path, data: bytes) -> None:
    """Write a whole file atomically: after a kill, either the old or the new file exists."""
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        temporary.write_bytes(data)
        replace_durably(temporary, path)
    finally:  # on a full disk the partial file would use the last space
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class PackedCorpus:
    """The corpus as windows of token ids.

    Attributes:
        tokens: tokens of all documents, with an end token after each document; (num_tokens,).
        bounds: begin and end of each window in ``tokens``, without start token; (num_windows, 2).
    """

    tokenizer: Tokenizer
    tokens: npt.NDArray[np.uint32]
    bounds: Numbers

    def epoch(self, batch: int, *seed: int) -> list[Numbers]:
        """Return batches of window indices in random order; a batch has similar lengths."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.bounds))
        lengths = self.bounds[:, 1] - self.bounds[:, 0]
        batches = []
        for begin in range(0, len(order), _POOL_BATCHES * batch):
            pool = order[begin : begin + _POOL_BATCHES * batch]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches += [pool[at : at + batch] for at in range(0, len(pool), batch)]
        return [batches[number] for number in rng.permutation(len(batches))]

    def tensors(self, rows: Numbers) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs (with start tokens) and targets, int64 (batch, longest window)."""
        begins, ends = self.bounds[rows].T
        length = int((ends - begins).max())
        inputs = np.full((len(rows), length), END_ID, dtype=np.int64)
        targets = np.full((len(rows), length), IGNORED, dtype=np.int64)
        for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            targets[row, : end - begin] = self.tokens[begin:end]
        inputs[:, 0] = START_ID
        inputs[:, 1:] = np.where(targets[:, :-1] == IGNORED, END_ID, targets[:, :-1])
        return torch.from_numpy(inputs), torch.from_numpy(targets)


def pack_corpus(
    folder: Path, seals: Sequence[Seal], store: Store, vocabulary_size: int, context: int
) -> PackedCorpus:
    """Train a tokenizer and tokenize all documents; use existing results in the folder.

    Raise StorageError if a partition is damaged.
    """
    vocabulary = folder / "tokenizer.json"
    packed = folder / "tokens.uint32"
    ends = folder / "ends.int64"
    if not vocabulary.is_file():
        tokenizer = _train_tokenizer(_texts(store, seals), vocabulary_size)
        write_durably(vocabulary, tokenizer.to_str().encode())
    tokenizer = Tokenizer.from_file(str(vocabulary))
    if not ends.is_file():  # written last
        document_ends = _pack(tokenizer, _batches_of_texts(store, seals), packed)
        write_durably(ends, np.array(document_ends, dtype=np.int64).tobytes())
    tokens = np.memmap(packed, dtype=np.uint32, mode="r")
    bounds = _windows(np.fromfile(ends, dtype=np.int64), context - 1)
    return PackedCorpus(tokenizer, tokens, bounds)


def _batches_of_texts(store: Store, seals: Sequence[Seal]) -> Iterator[list[str]]:
    for seal in seals:
        for batch in read_documents(store, seal, columns=["text"]):
            yield batch["text"].to_pylist()


def _texts(store: Store, seals: Sequence[Seal]) -> Iterator[str]:
    for texts in _batches_of_texts(store, seals):
        yield from texts


def _train_tokenizer(texts: Iterator[str], vocabulary_size: int) -> Tokenizer:
    """Return a byte-level BPE tokenizer trained on the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[START, END],  # these tokens get the ids 0 and 1
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _pack(tokenizer: Tokenizer, batches: Iterator[list[str]], path: Path) -> list[int]:
    """Write the tokens of all documents as uint32; return the index of each document's end."""
    ends = []
    position = 0
    tokenizer.encode_special_tokens = True  # a spelled control token is text, as when it is scored
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        with temporary.open("wb") as file:
            for texts in batches:
                for encoding in tokenizer.encode_batch_fast(texts):
                    ids = np.array([*encoding.ids, END_ID], dtype=np.uint32)
                    file.write(ids.tobytes())
                    position += len(ids)
                    ends.append(position)
        replace_durably(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return ends


def _windows(ends: Numbers, length: int) -> Numbers:
    """Cut every document into windows of at most ``length`` tokens; (num_windows, 2)."""
    begins = np.concatenate([[0], ends[:-1]])
    counts = -(-(ends - begins) // length)
    document = np.repeat(np.arange(len(ends)), counts)
    within = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = begins[document] + within * length
    return np.stack([first, np.minimum(first + length, ends[document])], axis=1)
