"""The canary: a frozen model and frozen texts with a known loss.

Libraries, drivers and machines change during a series of figures that runs for years. The canary's
loss, computed once in float64, shows if they still give the same results. ``canary_model/``
holds a small Llama of random weights and texts of a simulated world. These files never change.
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
_REVISION = "d8bb5e44909b59ae"  # digest of canary_model/; a changed file is refused
_EXPECTED_NATS = 67239.63880389874  # in float64
_EXACT = frozenset({"float32", "float64"})  # dtypes whose loss is compared with the known one


@dataclass(frozen=True)
class CanaryLoss:
    """The loss of the canary's texts on this machine.

    Attributes:
        expected_nats: the known loss; None for a dtype whose rounding depends on the device. The
            first run on that device then sets the reference.
    """

    device: str
    dtype: str
    versions: Mapping[str, str]
    nll_nats: float
    num_tokens: int
    expected_nats: float | None


def score_canary(settings: Settings) -> CanaryLoss:
    """Score the canary on the device and in the dtype of the settings.

    Raise ModelLoadError if its files differ from the shipped ones, and UsageError if the device or
    dtype is not available.
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
    """Return the device, dtype and library versions that a canary loss would have now."""
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
