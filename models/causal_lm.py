"""Causal language models: the likelihood that they give to text, window by window.

Documents stream through in blocks. A block is tokenized at once (in parallel threads), cut into
windows, and its windows are batched by length; sums go back into document order. Blocks and batches
follow from the documents and the token budget alone, so that scoring twice gives the same bits.

A document longer than a block is a block of its own: it is tokenized whole, which takes about 500
bytes of memory a token for the while (10 MB of English: 1.2 GB); its windows are then batched like
any others, so that the model's own memory is that of one batch.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from transformers import PreTrainedModel

from core.errors import ModelError, NotMeasurable
from core.settings import Settings
from models.accounting import Accountant, TokenizedText
from models.checkpoint import CheckpointFiles, load_weights, open_checkpoint
from models.forward import Forward, Losses, Tokens
from models.losses import Chunk, iterate_blocks, iterate_documents, losses_table, without_tokens
from models.protocols import ScoringProtocol
from models.windows import Window, plan_batches, plan_windows

_BLOCK_CHARS = 2**20
_CPU_TOKENS, _GPU_TOKENS = 2048, 16_384  # in one forward pass, unless the settings say otherwise
_VERSION = "1"  # raised when a change here, or in what it stands on, changes losses


class _Job(NamedTuple):
    """One window's work for the model."""

    inputs: Tokens  # (length,)
    targets: Tokens  # (scored,) what follows the last positions of inputs


@dataclass(frozen=True)
class CausalLMIdentity:
    """What a model's cells are named after; known from its files, before the weights are read.

    Attributes:
        name: the ``model`` column: catalogue name, hub id, or last part of the folder's path.
        files: the opened checkpoint.
    """

    name: str
    files: CheckpointFiles

    @property
    def revision(self) -> str:
        """Commit of the hub, or digest of the folder's files."""
        return self.files.revision

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """Return a hash over protocol, effective context, dtype, attention and this code's version.

        Raises:
            NotMeasurable: the protocol's windows are longer than the model takes.
        """
        context = protocol.effective_context(self.files.context)
        numerics = f"{self.files.dtype} {self.files.attention}"
        definition = f"{_VERSION} {protocol.digest} {context} {numerics}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


class CausalLM:
    """A Hugging Face causal language model, with the interface of ``models.scorer.Scorer``.

    Attributes:
        name: the ``model`` column.
        revision: commit of the hub, or digest of the folder's files.
        context: most tokens that it takes at once; None where it has no maximum.
        start_token: id of BOS, else of EOS, else None: then the first token of each window is
            charged ln(vocabulary size).
        vocabulary_size: tokens of the tokenizer.
    """

    def __init__(
        self, identity: CausalLMIdentity, model: PreTrainedModel, batch_tokens: int
    ) -> None:
        tokenizer = identity.files.tokenizer
        self._identity = identity
        self.name = identity.name
        self.revision = identity.revision
        self.context = identity.files.context
        self.start_token: int | None = (
            tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        )
        self.vocabulary_size = len(tokenizer)
        self._accountant = Accountant(tokenizer.backend_tokenizer)
        try:
            self._forward = Forward(model)
        except ModelError as error:
            raise type(error)(f"{self.name}: {error}") from error
        self._budget = min(batch_tokens, self._forward.max_batch_tokens or batch_tokens)

    @staticmethod
    def identify(
        location: str, revision: str | None, settings: Settings, name: str | None = None
    ) -> CausalLMIdentity:
        """Open a model's files, without its weights.

        Args:
            location: a folder, or a hub id.
            revision: of the hub; for a folder, None or the digest that it must have.
            settings: device, dtype, allow_pickle_weights.
            name: the ``model`` column, if not hub id or last part of the folder's path.

        Raises:
            ModelLoadError: files are missing, unsafe, broken or do not fit each other.
            NotMeasurable: not a causal language model, or without a fast tokenizer.
            UsageError: the device or dtype of the settings cannot be had.
        """
        files = open_checkpoint(location, revision, settings)
        folder = Path(location).expanduser()
        default = folder.resolve().name if folder.is_dir() else location
        return CausalLMIdentity(name or default, files)

    @classmethod
    def load(
        cls, location: str, revision: str | None, settings: Settings, name: str | None = None
    ) -> CausalLM:
        """Load a model; arguments and errors as those of ``identify``."""
        identity = cls.identify(location, revision, settings, name)
        usual = _CPU_TOKENS if identity.files.device.type == "cpu" else _GPU_TOKENS
        budget = settings.batch_tokens or usual
        return cls(identity, load_weights(identity.files), budget)

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """As ``CausalLMIdentity.scoring_id``."""
        return self._identity.scoring_id(protocol)

    def score(
        self, documents: Iterable[pa.RecordBatch], protocol: ScoringProtocol
    ) -> Iterator[pa.Table]:
        """Score documents; see ``Scorer.score``.

        Chunks are windows. ``reason`` is ``no_tokens`` for a text that the tokenizer leaves
        nothing of, and ``non_finite`` where the model gives no finite loss.

        Yields:
            One table for about a million characters of text.

        Raises:
            NotMeasurable: the protocol's windows are longer than the model takes, it needs a start
                token and there is none, or one window does not fit into the device's memory.
        """
        context = protocol.effective_context(self.context)
        if protocol.layout == "rolling" and self.start_token is None:
            raise NotMeasurable(
                f"protocol {protocol.name} needs a start token and the tokenizer of {self.name} "
                "has neither BOS nor EOS; use the default protocol"
            )
        for block in iterate_blocks(iterate_documents(documents), _BLOCK_CHARS):
            texts = [document.text for document in block]
            tokenized = self._accountant.tokenize(texts, protocol.special_tokens)
            plans = [
                plan_windows(len(tokens.ids), protocol, context, self.start_token is not None)
                for tokens in tokenized
            ]
            nats = iter(self._window_nats(tokenized, plans))
            chunks = [
                _chunks(text, tokens, [(window, next(nats)) for window in plan])
                for text, tokens, plan in zip(texts, tokenized, plans, strict=True)
            ]
            yield losses_table((self.name, self.revision), protocol.name, block, chunks)

    def _window_nats(
        self, tokenized: Sequence[TokenizedText], plans: Sequence[Sequence[Window]]
    ) -> list[float]:
        """Sum the losses of every window, document by document."""
        windows = [
            (tokens.ids, window)
            for tokens, plan in zip(tokenized, plans, strict=True)
            for window in plan
        ]
        unread = math.log(self.vocabulary_size)
        nats = [unread if window.is_charged else 0.0 for _, window in windows]
        # A window whose only scored token has nothing before it is no work for the model.
        rows = [row for row, (_, window) in enumerate(windows) if window.num_inputs > 0]
        jobs = [self._job(*windows[row]) for row in rows]
        for row, value in zip(rows, self._run(jobs), strict=True):
            nats[row] += value
        return nats

    def _job(self, ids: Tokens, window: Window) -> _Job:
        inputs = ids[window.begin : window.end - 1]
        if window.has_start:
            inputs = np.concatenate([[self.start_token], inputs]).astype(np.int64)
        return _Job(inputs, ids[window.first + window.is_charged : window.end])

    def _run(self, jobs: Sequence[_Job]) -> list[float]:
        """Sum each job's losses in float64."""
        nats = [math.nan] * len(jobs)
        pending = list(range(len(jobs)))
        while pending:
            pending = self._run_until_full(jobs, pending, nats)
        return nats

    def _run_until_full(
        self, jobs: Sequence[_Job], rows: Sequence[int], nats: list[float]
    ) -> list[int]:
        """Fill in ``nats`` batch by batch.

        Returns:
            The rows that are left because the device's memory was full; the budget is then halved.
        """
        groups = plan_batches([len(jobs[row].inputs) for row in rows], self._budget)
        for done, group in enumerate(groups):
            batch = [rows[position] for position in group]
            losses = self._losses([jobs[row] for row in batch])
            if losses is None:
                self._budget = len(batch) * len(jobs[batch[0]].inputs) // 2
                return [rows[position] for left in groups[done:] for position in left]
            for row, values in zip(batch, losses, strict=True):
                nats[row] = float(values.sum())
        return []

    def _losses(self, batch: Sequence[_Job]) -> list[Losses] | None:
        """Run one batch; None where it does not fit into the device's memory."""
        try:
            return self._forward.losses([j.inputs for j in batch], [j.targets for j in batch])
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                raise NotMeasurable(
                    f"{self.name}: a window of {len(batch[0].inputs)} tokens does not fit into the "
                    "device's memory; ask for a shorter --context or another TIDEMARK_DTYPE"
                ) from error
        # Only here are the failed pass's arrays released.
        torch.cuda.empty_cache()
        return None


def _chunks(
    text: str, tokens: TokenizedText, windows: Sequence[tuple[Window, float]]
) -> list[Chunk]:
    """Give each window the text from the end of the one before it to its own end."""
    chunks = []
    covered = 0
    for window, nats in windows:
        is_finite = math.isfinite(nats)
        chunks.append(
            Chunk(
                nll_nats=nats if is_finite else math.nan,
                num_tokens=window.num_scored,
                num_chars=int(tokens.chars[window.end] - tokens.chars[covered]),
                num_bytes=int(tokens.bytes[window.end] - tokens.bytes[covered]),
                reason=None if is_finite else "non_finite",
            )
        )
        covered = window.end
    return chunks or [without_tokens(text)]
