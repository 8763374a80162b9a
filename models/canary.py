"""The canary: a frozen model and frozen texts with a known loss.

Losses are measured over years, and libraries, drivers and machines change meanwhile. A comparison
with the known loss, computed once in float64, shows if results are still the same. The folder
``canary_model/`` contains a small Llama with random weights, and simulated texts; it never changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.settings import Settings
from models.scoring.machine import describe_device, library_versions, name_of_dtype
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import LIBRARIES, CausalLM
from models.weights.checkpoint import choose_device

_FOLDER = Path(__file__).with_name("canary_model")
_REVISION = "d8bb5e44909b59ae"  # digest of canary_model/; a changed file raises an error
_EXPECTED_NATS = 67239.63880389874  # in float64
_EXACT = frozenset({"float32", "float64"})  # dtypes in which the loss must equal the known loss


@dataclass(frozen=True)
class CanaryLoss:
    """The loss of the canary's texts on this machine.

    Attributes:
        expected_nats: the known loss, or None for a dtype whose rounding depends on the device. For
            such a dtype, the first loss on that device serves as the reference.
    """

    device: str
    dtype: str
    versions: Mapping[str, str]
    nll_nats: float
    num_tokens: int
    expected_nats: float | None


def score_canary(settings: Settings) -> CanaryLoss:
    """Score the canary on the device and in the dtype of the settings.

    Raise ModelLoadError if the canary's files were changed, and UsageError if the device or dtype
    is not available.
    """
    scorer = CausalLM.load(str(_FOLDER), _REVISION, settings, name="canary")
    texts = json.loads((_FOLDER / "texts.json").read_text(encoding="utf-8"))
    documents = pa.record_batch({
        "document_id": pa.array(map(str, range(len(texts))), pa.string()),
        "source": pa.array(["set"] * len(texts), pa.string()),
        "month": pa.nulls(len(texts), pa.date32()),
        "text": pa.array(texts, pa.large_string()),
    })  # fmt: skip
    losses = pa.concat_tables(scorer.score([documents], get_protocol("default")))
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
    """Return the device, dtype and library versions that ``score_canary`` would use now."""
    device, dtype = choose_device(settings)
    return describe_device(device), name_of_dtype(dtype), library_versions(*LIBRARIES)
