"""Ours and its peers, with one interface: texts in, nats of each text out.

- ``Ours``: the scorer.
- ``PlainLoop``: what most scripts do: one window at a time, logits at every position, log-softmax,
  gather, sum. Over chunks that follow each other, it is Uncheatable Eval's loop.
- ``LmEval``: ``loglikelihood_rolling`` of lm-evaluation-harness, as it comes from the registry.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from core.settings import Settings
from models.scoring.protocols import ScoringProtocol, get_protocol
from models.scoring.scorer import Tally
from models.scoring.token_scorer import CausalLM, TokenScorer
from models.scoring.windows import Window, plan_windows


@dataclass(frozen=True)
class Ours:
    """The scorer under one protocol."""

    scorer: TokenScorer
    protocol: str

    @classmethod
    def load(cls, folder: Path, protocol: str) -> Ours:
        """Load a checkpoint for the processor, in float32."""
        settings = Settings(home=str(folder), device="cpu", dtype="float32")
        return cls(CausalLM.load(str(folder), None, settings), protocol)

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return nats of each text."""
        return self.score_and_count(texts)[0]

    def score_and_count(self, texts: Sequence[str]) -> tuple[list[float], int]:
        """Return nats of each text, and how many tokens were scored together."""
        batch = pa.record_batch(
            {
                "document_id": [str(number) for number in range(len(texts))],
                "source": ["simulated"] * len(texts),
                "month": pa.nulls(len(texts), pa.date32()),
                "text": pa.array(texts, pa.large_string()),
            }
        )
        nats, num_tokens = [0.0] * len(texts), 0
        protocols = [get_protocol(self.protocol)]
        for (table,) in self.scorer.score_together([batch], protocols, [Tally()]):
            for row in table.select(["document_id", "nll_nats", "num_tokens"]).to_pylist():
                nats[int(row["document_id"])] += row["nll_nats"]
                num_tokens += row["num_tokens"]
        return nats, num_tokens


@dataclass(frozen=True)
class PlainLoop:
    """One window at a time, full logits, in the model's dtype."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    protocol: str

    @classmethod
    def load(cls, folder: Path, protocol: str) -> PlainLoop:
        """Load the same files as ours."""
        return cls(*load_plain(folder), protocol)

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> list[float]:
        """Return nats of each text."""
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> float:
        ids: Any = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        nats = 0.0
        for window in windows_of(len(ids), get_protocol(self.protocol)):
            if window.num_inputs == 0:
                continue
            read = [self.tokenizer.eos_token_id] * window.num_prefix
            tokens = torch.tensor([read + ids[window.begin : window.end]]).to(self.model.device)
            logits = self.model(input_ids=tokens[:, :-1]).logits  # (1, T, V)
            logprobs = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])  # (1, T, 1)
            nats -= float(logprobs[0, -window.num_scored :].double().sum())
        return nats


@dataclass(frozen=True)
class LmEval:
    """lm-evaluation-harness with one batch size; its protocol is ``lm-eval``."""

    peer: Any  # HFLM; the library is not typed

    @classmethod
    def load(cls, folder: Path, context: int, batch: int) -> LmEval:
        """Load the same files as ours, for the processor."""
        return cls.of(*load_plain(folder), context, batch)

    @classmethod
    def of(
        cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, context: int, batch: int
    ) -> LmEval:
        """Wrap a model that is on its device."""
        from lm_eval.models.huggingface import HFLM  # seconds, and only this contender needs it

        return cls(
            HFLM(
                pretrained=model,
                tokenizer=tokenizer,
                max_length=context,
                batch_size=batch,
                device=str(model.device),
            )
        )

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return nats of each text."""
        from lm_eval.api.instance import Instance

        requests = [
            Instance("loglikelihood_rolling", {}, (text,), number)
            for number, text in enumerate(texts)
        ]
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bars
            return [-float(each) for each in self.peer.loglikelihood_rolling(requests, True)]


def windows_of(num_tokens: int, protocol: ScoringProtocol) -> list[Window]:
    """Return a text's windows for a model that takes the protocol's context, with a start token."""
    num_prefix = 0 if protocol.prefix == "none" else 1
    return plan_windows(num_tokens, protocol, protocol.effective_context(None), num_prefix)


def load_plain(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load a checkpoint as everybody does, in float32."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, PreTrainedTokenizerFast.from_pretrained(folder)
