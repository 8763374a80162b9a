"""The canary: a frozen model on frozen texts, whose loss is known.

Libraries, drivers and machines change under a series of figures that runs for years. The canary's
loss, worked out once in float64, tells whether they still compute what they did: ``canary_model/``
holds a small Llama of random weights and texts of a simulated world, and neither ever changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.settings import Settings
from models.causal_lm import LIBRARIES, CausalLM
from models.checkpoint import choose_device
from models.machine import describe_device, library_versions, name_of_dtype
from models.protocols import get_protocol

_FOLDER = Path(__file__).with_name("canary_model")
_REVISION = "d8bb5e44909b59ae"  # a changed file would be another canary, and is refused
_EXPECTED_NATS = 67239.63880389874  # in float64
_EXACT = frozenset({"float32", "float64"})  # what the known loss can be compared with


@dataclass(frozen=True)
class CanaryLoss:
    """What the canary's texts cost here and now.

    Attributes:
        device: kind and name.
        dtype: of the weights.
        versions: of the libraries that computed, by name.
        nll_nats: summed over the texts.
        num_tokens: that were scored.
        expected_nats: what they cost; None for a dtype whose rounding is that of its device: then
            the first run on that device sets it.
    """

    device: str
    dtype: str
    versions: Mapping[str, str]
    nll_nats: float
    num_tokens: int
    expected_nats: float | None


def score_canary(settings: Settings) -> CanaryLoss:
    """Score the canary on the device and in the dtype of the settings.

    Raises:
        ModelLoadError: its files are not those that were shipped.
        UsageError: the device or dtype cannot be had.
    """
    scorer = CausalLM.load(str(_FOLDER), _REVISION, settings, name="canary")
    losses = pa.concat_tables(scorer.score([_texts()], get_protocol("default")))
    facts = scorer.facts
    return CanaryLoss(
        device=facts.device,
        dtype=facts.dtype,
        versions=facts.versions,
        nll_nats=math.fsum(losses["nll_nats"].to_pylist()),
        num_tokens=sum(losses["num_tokens"].to_pylist()),
        expected_nats=_EXPECTED_NATS if facts.dtype in _EXACT else None,
    )


def current_conditions(settings: Settings) -> tuple[str, str, dict[str, str]]:
    """Return device, dtype and library versions as a loss of the canary would have them now."""
    device, dtype = choose_device(settings)
    return describe_device(device), name_of_dtype(dtype), library_versions(*LIBRARIES)


def _texts() -> pa.RecordBatch:
    texts = json.loads((_FOLDER / "texts.json").read_text(encoding="utf-8"))
    return pa.record_batch(
        {
            "document_id": [f"canary-{number}" for number in range(len(texts))],
            "source": ["canary"] * len(texts),
            "month": pa.nulls(len(texts), pa.date32()),
            "text": pa.array(texts, pa.large_string()),
        }
    )
