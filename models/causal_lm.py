"""Causal language models of Hugging Face: the likelihood that they give to text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from core.errors import ModelError
from core.settings import Settings
from models.checkpoint import CheckpointFiles, load_weights, open_checkpoint
from models.forward import Forward
from models.machine import describe_device, library_versions, name_of_dtype
from models.protocols import ScoringProtocol
from models.tally import ScorerFacts
from models.text_model import TextModel, text_model_of
from models.token_scorer import TokenIdentity, TokenScorer
from models.windows import check_prefix

_CPU_TOKENS, _GPU_TOKENS = 1024, 16_384  # in one forward pass, unless the settings say otherwise
LIBRARIES: Sequence[str] = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class CausalLMIdentity(TokenIdentity):
    """As ``TokenIdentity``, with the opened checkpoint."""

    files: CheckpointFiles

    @cached_property
    def text_model(self) -> TextModel:
        """The checkpoint's tokenizer."""
        return text_model_of(self.files.tokenizer)

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """As ``TokenIdentity.scoring_id``; refuses what the tokenizer has no tokens for, too."""
        context = protocol.effective_context(self.context)
        check_prefix(protocol, context, len(self.text_model.prefix(protocol)))
        return super().scoring_id(protocol)


class CausalLM(TokenScorer):
    """A Hugging Face causal language model, with the interface of ``models.scorer.Scorer``."""

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
        return CausalLMIdentity(
            name=name or default,
            revision=files.revision,
            context=files.context,
            numerics=files.numerics,
            files=files,
        )

    @classmethod
    def load(
        cls, location: str, revision: str | None, settings: Settings, name: str | None = None
    ) -> CausalLM:
        """Load a model; arguments and errors as those of ``identify``."""
        identity = cls.identify(location, revision, settings, name)
        files = identity.files
        try:
            forward = Forward(load_weights(files))
        except ModelError as error:
            raise type(error)(f"{identity.name}: {error}") from error
        usual = _CPU_TOKENS if files.device.type == "cpu" else _GPU_TOKENS
        facts = ScorerFacts(
            device=describe_device(files.device),
            dtype=name_of_dtype(files.dtype),
            batch_tokens=settings.batch_tokens or usual,
            versions=library_versions(*LIBRARIES),
            tokenizer=identity.text_model.facts,
        )
        return cls(identity, identity.text_model, forward, facts)
