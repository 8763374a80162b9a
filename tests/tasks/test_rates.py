"""Rates: from what cells took, from a probe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.corpus import Seal
from core.errors import TidemarkError
from core.month import Month
from core.settings import Settings
from models.catalogue import ModelEntry
from tasks.cell_times import fit
from tasks.planning import Request
from tasks.rates import rate_of
from tasks.run_plan import PlannedModel, plan_run
from tasks.scoring import plan_scoring, write_losses


@pytest.mark.parametrize("cell_s", [0.0, 0.5])
def test_the_fit_finds_the_line_that_times_are_on(cell_s: float) -> None:
    points = [(float(size), cell_s + 0.001 * size) for size in (100, 1000, 5000, 20_000)]
    assert fit(points) == pytest.approx((cell_s, 0.001))


def test_the_fit_gives_no_negative_seconds() -> None:
    assert fit([(10.0, 1.0), (20.0, 3.0), (30.0, 5.0)]) == pytest.approx((0.0, 9 / 60))
    assert fit([(10.0, 3.0), (20.0, 2.0), (30.0, 1.0)]) == (2.0, 0.0)
    assert fit([(50.0, 2.0)]) == (0.0, 0.04)
    assert fit([(0.0, 2.0)]) == (2.0, 0.0)


def planned(settings: Settings, model: str) -> PlannedModel:
    request = Request((Month("2024-01"),), ("arxiv",), (model,))
    return plan_run(request, settings).models[0]


def test_what_was_never_measured_is_probed_and_nothing_is_written(
    settings: Settings, seal: Callable[..., Seal]
) -> None:
    generated = rate_of(planned(settings, "control:zstd"), settings)
    assert "generated text" in generated.basis and generated.byte_s > 0
    assert not Path(settings.home).exists()
    seal("arxiv", "2024-01")
    rate = rate_of(planned(settings, "control:zstd"), settings)
    assert rate.basis.startswith("probe: ") and "arxiv 2024-01" in rate.basis
    assert rate.load_s is not None and not rate.is_cuda
    assert not (Path(settings.home) / "losses").exists()


def test_what_was_measured_here_is_not_probed(
    settings: Settings, seal: Callable[..., Seal]
) -> None:
    seal("other", "2024-01")
    seal("arxiv", "2024-01")
    plan = plan_scoring("control:zstd", ["default"], ["other"], None, settings)
    write_losses(plan.pending, plan.entry, settings)
    rate = rate_of(planned(settings, "control:zstd"), settings)
    assert (rate.basis, rate.load_s) == ("measured: 1 cells", None)


def test_a_server_of_somebody_else_is_not_probed(settings: Settings) -> None:
    entry = ModelEntry("far", "remote", "http://127.0.0.1:9/v1", tokenizer="none")
    with pytest.raises(TidemarkError, match="would ask its server"):
        rate_of(PlannedModel("control:zstd", entry), settings)
