"""What the reports' tests share: a small published warehouse whose figures are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from core.month import Month, month_range
from core.schemas import LOSSES
from core.settings import Settings
from warehouse.land import open_warehouse
from warehouse.publish import publish

FIRST = Month("2024-01")
# Documents of a month differ by these bits per byte, and come to the month's figure.
SPREAD = (-0.06, -0.02, 0.03, 0.05)
NUM_BYTES = 1000

# Bits per byte of a model on a source in a month.
Figures = dict[tuple[str, str, Month], float | None]


@pytest.fixture(scope="session")
def hostile_model() -> str:
    return """<script>alert(1)</script>&"x"""


@pytest.fixture(scope="session")
def hostile_source() -> str:
    return "<b>news</b>"


@pytest.fixture(scope="session")
def step() -> Callable[..., Figures]:
    """Make a curve over months from 2024-01 on: one level up to a month, another after it."""

    def step(
        model: str, source: str, last_before: str, before: float, after: float, months: int = 8
    ) -> Figures:
        return {
            (model, source, month): before if month <= Month(last_before) else after
            for month in month_range(FIRST, FIRST + (months - 1))
        }

    return step


@pytest.fixture(scope="session")
def level(step: Callable[..., Figures]) -> Callable[..., Figures]:
    """Make a curve that stays where it is."""

    def level(model: str, source: str, bits_per_byte: float, months: int = 8) -> Figures:
        return step(model, source, str(FIRST), bits_per_byte, bits_per_byte, months)

    return level


def losses(figures: Figures) -> pa.Table:
    """Four documents a month; a figure of None is a month that could not be measured."""
    return pa.Table.from_pylist(list(_rows(figures)), schema=LOSSES)


def _rows(figures: Figures) -> Iterator[dict[str, Any]]:
    for (model, source, month), bits_per_byte in figures.items():
        for number, spread in enumerate(SPREAD):
            is_measured = bits_per_byte is not None
            yield {
                "model": model,
                "revision": "r1",
                "source": source,
                "month": month.first_day,
                "document_id": f"{source}-{month}-{number}",
                "chunk_index": 0,
                "protocol": "default",
                "nll_nats": (bits_per_byte + spread) * math.log(2) * NUM_BYTES
                if bits_per_byte is not None
                else None,
                "num_tokens": 300,
                "num_chars": NUM_BYTES,
                "num_bytes": NUM_BYTES,
                "reason": None if is_measured else "non_finite",
            }


@pytest.fixture
def publish_figures(settings: Settings) -> Callable[..., Settings]:
    """Land figures and the cutoffs of models, publish, and return the settings."""

    def publish_figures(figures: Figures, cutoffs: Mapping[str, str] | None = None) -> Settings:
        models = [
            {"name": name, "kind": "reference", "cutoff": Month(cutoff),
             "cutoff_provenance": "planted", "cutoff_precision": "month"}
            for name, cutoff in (cutoffs or {}).items()
        ]  # fmt: skip
        with open_warehouse(settings) as warehouse:
            warehouse.land_losses(losses(figures), "figures")
            warehouse.upsert_models(models)
        publish(settings)
        return settings

    return publish_figures


@pytest.fixture
def usual(
    publish_figures: Callable[..., Settings],
    step: Callable[..., Figures],
    level: Callable[..., Figures],
    hostile_model: str,
    hostile_source: str,
) -> Settings:
    """Two models with steps, one without a known cutoff, and a control; two names are hostile."""
    figures = {
        **step("early", hostile_source, "2024-04", 1.0, 1.5),
        **step("early", "code", "2024-04", 2.0, 2.2),
        **step(hostile_model, hostile_source, "2024-05", 0.9, 1.2),
        **step(hostile_model, "code", "2024-05", 0.8, 0.9),
        **level("unknown", hostile_source, 1.1),
        **level("control:zstd", hostile_source, 3.0),
        **level("control:zstd", "code", 4.0),
    }
    return publish_figures(figures, {"early": "2024-04", hostile_model: "2024-05"})
