"""Scoring of texts with models that predict the next token.

Documents are read in blocks. Threads tokenize a block while the device works on the previous block.
Each protocol divides a block into windows, which are batched by length. Blocks and batches depend
only on the documents and the token budget, so that a second run gives the same bits. If several
protocols have an equal batch, the batch is run once.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from transformers import PreTrainedModel

from core.errors import ModelError, NotMeasurable
from core.settings import Settings
from models.catalogue import ModelEntry
from models.scoring.blocks import read_blocks
from models.scoring.control import is_word
from models.scoring.engines import LoadedModel, is_fast, load_confined, load_here, load_parallel
from models.scoring.lengths import find_switch, stated_lengths
from models.scoring.machine import describe_device, library_versions, name_of_dtype
from models.scoring.passes import DocumentRun, Run, StreamRun
from models.scoring.protocol import ScoringProtocol
from models.scoring.row_check import check_lengths, check_rows
from models.scoring.scorer import Engine, ScorerFacts, Scoring, Tally, TokenLosses
from models.scoring.start_check import find_need_of_start
from models.scoring.text_model import TextModel, control_texts_of, text_model_of
from models.scoring.windows import Batches, check_prefix
from models.weights.checkpoint import CheckpointFiles, open_checkpoint
from models.weights.loading import load_weights
from models.weights.tokenizer_choice import own_file

_log = logging.getLogger(__name__)
# default maximum tokens of one pass
_CPU_TOKENS = 1024
_GPU_TOKENS = 16_384
LIBRARIES: Sequence[str] = ("torch", "transformers", "tokenizers")
_VERSION = "2"  # increase if a change here, or in a module used here, changes losses


@dataclass(frozen=True)
class TokenIdentity:
    """The facts that identify a model's losses; known before its weights are read.

    Attributes:
        context: maximum number of tokens of one input, or None without a maximum.
        numerics: dtype, attention implementation and other influences on rounding.
        switch: length after which the frequencies of positions are others, or None without one.
        lengths: lengths in tokens at which the model may compute otherwise.
        control_texts: spellings of the control tokens that are looked for in texts.
    """

    name: str
    revision: str
    context: int | None
    numerics: str
    switch: int | None = field(default=None, kw_only=True)
    lengths: tuple[int, ...] = field(default=(), kw_only=True)
    control_texts: frozenset[str] = field(default=frozenset(), kw_only=True)

    def may_exceed(self, length: int) -> bool:
        """Return True if an input may have more tokens than ``length``."""
        return self.context is None or self.context > length

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Return a hash over protocol, effective context, ``numerics`` and the code's version.

        ``has_control``: True if the text that is scored has one of ``control_texts``.

        Raise NotMeasurable if the protocol's windows exceed the model's maximum.
        """
        context = protocol.effective_context(self.context)
        definition = f"{_VERSION} {protocol.digest} {context} {self.numerics}"
        if self.switch is not None and context > self.switch:
            definition += f" apart at {self.switch}"  # once, longer rows changed shorter ones
        if has_control and not protocol.parses_control:
            definition += " as text"  # once, such texts were read as control tokens
            if any(map(is_word, self.control_texts)):
                definition += " with words"  # once, such words were read in pieces
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


def apart(identity: TokenIdentity) -> str:
    """Return text for the definition of answers; empty unless the model changes at a length."""
    if identity.switch is None or not identity.may_exceed(identity.switch):
        return ""
    return f" apart at {identity.switch}"  # once, longer rows changed shorter ones


class TokenScorer(Scoring):
    """A ``Scorer`` for models that predict tokens; safe for threads if its engine is.

    Raise NotMeasurable if a window's losses depend on the rest of its batch (``check_rows``).
    """

    def __init__(
        self, identity: TokenIdentity, text_model: TextModel, engine: Engine, facts: ScorerFacts
    ) -> None:
        self.identity = identity
        self.engine = engine
        self.name = identity.name
        self.revision = identity.revision
        self.context = identity.context
        self.text_model = text_model
        self._facts = facts
        check_rows(self.name, engine, text_model.tokenizer, facts.dtype)
        wanted = facts.batch_tokens or 1
        budget = min(wanted, engine.max_batch_tokens or wanted)
        lengths = [each for each in identity.lengths if identity.may_exceed(each)]
        check_lengths(self.name, engine, text_model.tokenizer, facts.dtype, lengths, budget)
        self._batches = Batches(self.name, engine, text_model.vocabulary_size, budget)

    @property
    def facts(self) -> ScorerFacts:
        """Device, dtype and versions; ``batch_tokens`` is the current maximum."""
        return self._facts._replace(batch_tokens=self._batches.budget)

    @property
    def control_texts(self) -> frozenset[str]:
        """As in ``TokenIdentity``."""
        return self.identity.control_texts

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Implement ``TokenIdentity.scoring_id``."""
        return self.identity.scoring_id(protocol, has_control)

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Score documents under several protocols; see ``Scorer.score_together``.

        A chunk is a window or, in a stream, one document's part of a window. A ``reason`` is
        ``no_tokens`` for a text without tokens, and ``non_finite`` if the loss is not finite. Media
        have the reason ``not_measurable`` if the tokenizer has no byte tokens. Text at the end of a
        stream that no window covers has the reason ``dropped``.

        Raises:
            NotMeasurable: a protocol has windows longer than the model's maximum, or needs tokens
                that the tokenizer lacks; or one window does not fit into the memory.
            BatchTooLarge: a batch did not fit into memory; score again from the beginning.
        """
        batches = self._batches.fresh()
        only_documents = tallies[0].chosen if tallies[0].only_chosen else None
        runs = [self._start(*each, batches) for each in zip(protocols, tallies, strict=True)]
        try:
            for block in read_blocks(documents, self.text_model, protocols, only_documents):
                yield tuple(run.take(block) for run in runs)
                batches.forget()
            yield tuple(run.finish() for run in runs)
        finally:
            self._batches.budget = min(self._batches.budget, batches.budget)

    def trace(
        self,
        documents: Iterable[pa.RecordBatch],
        protocol: ScoringProtocol,
        chosen: frozenset[str],
        with_moments: bool = False,
    ) -> list[TokenLosses]:
        """Return the token losses of chosen documents; errors are those of ``score_together``."""
        # ``documents`` are those of the whole partition. Of the batches of a scoring pass, only
        # those with a chosen document are run. So the losses have the same bits.
        if protocol.is_stream:
            raise NotMeasurable(
                f"protocol {protocol.name} joins documents to one stream, so a document's losses "
                "depend on the documents before it; use the default protocol"
            )
        tally = Tally(chosen=chosen, only_chosen=True, with_moments=with_moments)
        for _ in self.score_together(documents, [protocol], [tally]):
            pass
        return tally.token_losses

    def _start(self, protocol: ScoringProtocol, tally: Tally, batches: Batches) -> Run:
        """Return a new run of a protocol; raise NotMeasurable if the model cannot run it."""
        context = protocol.effective_context(self.context)
        prefix = self.text_model.prefix(protocol)
        check_prefix(protocol, context, len(prefix))
        need = self._facts.versions.get("start")
        if need is not None and self.text_model.start_token not in prefix:
            _log.warning(
                "%s: protocol %s puts no start token before a window, and the model's losses mean "
                "little without it (%s); use another protocol",
                self.name, protocol.name, need,
            )  # fmt: skip
        tally.context = context
        kind = StreamRun if protocol.is_stream else DocumentRun
        return kind(
            model=(self.name, self.revision),
            protocol=protocol,
            context=context,
            prefix=prefix,
            text_model=self.text_model,
            batches=batches,
            tally=tally,
        )


@dataclass(frozen=True)
class CausalLMIdentity(TokenIdentity):
    """A ``TokenIdentity`` with the files of the checkpoint."""

    files: CheckpointFiles

    @cached_property
    def text_model(self) -> TextModel:
        """The checkpoint's tokenizer as a TextModel."""
        return text_model_of(self.files.tokenizer)

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Return the scoring id; also raise NotMeasurable if a needed special token is missing."""
        context = protocol.effective_context(self.context)
        check_prefix(protocol, context, len(self.text_model.prefix(protocol)))
        return super().scoring_id(protocol, has_control)


def identity_of(files: CheckpointFiles, name: str, settings: Settings) -> CausalLMIdentity:
    """Return the identity of a model with these files."""
    switch = find_switch(files.config)
    numerics = files.numerics
    if is_fast(files, settings):
        numerics += " fast"
    return CausalLMIdentity(
        name=name,
        revision=files.revision,
        context=files.context,
        numerics=numerics,
        switch=None if switch is None else switch.length,
        lengths=tuple(stated_lengths(files.config)),
        control_texts=control_texts_of(files.tokenizer),
        files=files,
    )


class CausalLM(TokenScorer):
    """A ``Scorer`` with a Hugging Face causal language model."""

    @staticmethod
    def identify(
        location: str,
        revision: str | None,
        settings: Settings,
        name: str | None = None,
        is_trusted: bool = False,
    ) -> CausalLMIdentity:
        """Open a model's files without reading its weights.

        A trusted model may have own code and pickles; it runs in a confined process.

        Raises:
            ModelLoadError: files are missing, unsafe, broken or do not fit each other.
            NotMeasurable: the model is not a causal language model, or has no fast tokenizer.
            UsageError: the device or dtype of the settings is not available.
        """
        files = open_checkpoint(location, revision, settings, is_trusted)
        folder = Path(location).expanduser()
        default = folder.resolve().name if folder.is_dir() else location
        return identity_of(files, name or default, settings)

    @classmethod
    def load(
        cls,
        location: str,
        revision: str | None,
        settings: Settings,
        name: str | None = None,
        is_trusted: bool = False,
    ) -> CausalLM:
        """Load a model; arguments and errors are those of ``identify``."""
        identity = cls.identify(location, revision, settings, name, is_trusted)
        files = identity.files
        with _naming(identity.name):
            loaded = load_confined(files) if files.is_trusted else None
            loaded = loaded or load_parallel(files, settings.tensor_parallel)
            loaded = loaded or load_here(files, settings, load_weights)
        return cls._complete(identity, settings, loaded)

    @classmethod
    def assemble(
        cls,
        identity: CausalLMIdentity,
        settings: Settings,
        read: Callable[[CheckpointFiles], PreTrainedModel],
    ) -> CausalLM:
        """Load the model of an identity, which is not trusted; ``read`` reads its weights."""
        with _naming(identity.name):
            loaded = load_here(identity.files, settings, read)
        return cls._complete(identity, settings, loaded)

    @classmethod
    def _complete(
        cls, identity: CausalLMIdentity, settings: Settings, loaded: LoadedModel
    ) -> CausalLM:
        """Return the scorer of a loaded model, with the facts of its cells."""
        files = identity.files
        versions = library_versions(*LIBRARIES)
        if files.replaced:
            versions["tokenizer"] = f"{own_file(files.folder)} in place of {files.replaced}"
        versions |= loaded.versions
        need = find_need_of_start(loaded.engine, identity.text_model, identity.context)
        if need is not None:
            versions["start"] = need
        default_tokens = _CPU_TOKENS if files.device.type == "cpu" else _GPU_TOKENS
        facts = ScorerFacts(
            device=describe_device(files.device),
            dtype=name_of_dtype(files.dtype),
            batch_tokens=settings.batch_tokens or default_tokens,
            versions=versions,
            tokenizer=identity.text_model.facts,
            active_parameters=loaded.num_active,
            matmul_flops=loaded.rate,
        )
        return cls(identity, identity.text_model, loaded.engine, facts)


def identify_causal_lm(entry: ModelEntry, settings: Settings) -> CausalLMIdentity:
    """Open the files of an entry; errors are those of ``CausalLM.identify``."""
    return CausalLM.identify(entry.location, entry.revision, settings, entry.name, entry.is_trusted)


def load_causal_lm(entry: ModelEntry, settings: Settings) -> CausalLM:
    """Load the model of an entry; errors are those of ``CausalLM.identify``."""
    return CausalLM.load(entry.location, entry.revision, settings, entry.name, entry.is_trusted)


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Begin the messages of errors with a model's name."""
    try:
        yield
    except ModelError as error:
        raise type(error)(f"{name}: {error}") from error
