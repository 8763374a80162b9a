"""The compared scorers, with one interface: ``score`` returns the nats of each text.

- ``Ours``: tidemark's scorer.
- ``PlainLoop``: a plain loop over windows, without batches. With protocol ``uncheatable-…``, this
  scorer equals the loop of Uncheatable Eval.
- ``LmEval``: ``loglikelihood_rolling`` of the unmodified lm-evaluation-harness.
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
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tally
from models.scoring.token_scorer import CausalLM, TokenScorer
from models.scoring.windows import Window, plan_windows


@dataclass(frozen=True)
class Ours:
    """tidemark's scorer under one protocol."""

    scorer: TokenScorer
    protocol: str

    @classmethod
    def load(cls, folder: Path, protocol: str) -> Ours:
        """Load a checkpoint on the CPU, in float32."""
        settings = Settings(home=str(folder), device="cpu", dtype="float32")
        return cls(CausalLM.load(str(folder), None, settings), protocol)

    def score(self, texts: Sequence[str]) -> list[float]:
        """Return the loss of each text in nats."""
        return self.score_and_count(texts)[0]

    def score_and_count(self, texts: Sequence[str]) -> tuple[list[float], int]:
        """Return the loss of each text in nats, and the total number of scored tokens."""
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
    """A scorer that runs one window at a time and computes the logits of every position."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    protocol: str

    @classmethod
    def load(cls, folder: Path, protocol: str) -> PlainLoop:
        """Load a checkpoint on the CPU, in float32."""
        return cls(*load_plain(folder), protocol)

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> list[float]:
        """Return the loss of each text in nats."""
        return [self._score(text) for text in texts]

    def _score(self, text: str) -> float:
        """Return the loss of a text in nats, one window after the other."""
        ids: Any = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        nats = 0.0
        for window in windows_of(len(ids), get_protocol(self.protocol)):
            if window.num_inputs == 0:
                continue
            read = [self.tokenizer.eos_token_id] * window.num_prefix
            tokens = torch.tensor([read + ids[window.begin : window.end]]).to(self.model.device)
            logits = self.model(input_ids=tokens[:, :-1]).logits  # (1 text, tokens, vocabulary)
            logprobs = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None])  # (1 text, tokens, 1)
            nats -= float(logprobs[0, -window.num_scored :].double().sum())
        return nats


@dataclass(frozen=True)
class LmEval:
    """A scorer that calls lm-evaluation-harness with one batch size."""

    peer: Any  # lm_eval's wrapper ``HFLM`` of a model; it has no type hints

    @classmethod
    def load(cls, folder: Path, context: int, batch: int) -> LmEval:
        """Load a checkpoint on the CPU, in float32."""
        return cls.of(*load_plain(folder), context, batch)

    @classmethod
    def of(
        cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, context: int, batch: int
    ) -> LmEval:
        """Return a scorer for a model that is loaded already."""
        from lm_eval.models.huggingface import HFLM  # a slow import, needed only here

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
        """Return the loss of each text in nats."""
        from lm_eval.api.instance import Instance

        requests = [
            Instance("loglikelihood_rolling", {}, (text,), number)
            for number, text in enumerate(texts)
        ]
        with contextlib.redirect_stderr(io.StringIO()):  # hide progress bars
            return [-float(each) for each in self.peer.loglikelihood_rolling(requests, True)]


def windows_of(num_tokens: int, protocol: ScoringProtocol) -> list[Window]:
    """Return the windows of a text of ``num_tokens`` tokens under a protocol."""
    num_prefix = 0 if protocol.prefix == "none" else 1
    return plan_windows(num_tokens, protocol, protocol.effective_context(None), num_prefix)


def load_plain(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load a checkpoint's model and tokenizer with transformers, in float32."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, PreTrainedTokenizerFast.from_pretrained(folder)
