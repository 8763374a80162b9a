"""Panels have the same rows in a second process, and a process that ends is told."""

from dataclasses import replace

import numpy as np
import pytest

from core.errors import TidemarkError
from warehouse.estimates import processes
from warehouse.estimates.panel_rows import PanelInput
from warehouse.estimates.panels import Curve

NUM_MONTHS = 24


def panel_of(number: int) -> PanelInput:
    random = np.random.default_rng(number)
    shared = 0.02 * random.normal(size=NUM_MONTHS)
    models = [f"model-{each}" for each in range(4)]
    curves = {name: curve_of(1 + shared, random) for name in models}
    curves["control:zstd"] = curve_of(2 + shared, random)
    curves["control:zstd"].is_compressor = True
    cutoffs = {name: 6.0 + 3 * each for each, name in enumerate(models)}
    source = f"source-{number}"
    labels = [{0: ""}]
    return PanelInput("default", source, curves, cutoffs, labels, {source: curves}, set())


def curve_of(losses: np.ndarray, random: np.random.Generator) -> Curve:
    noisy = losses + 0.01 * random.normal(size=NUM_MONTHS)
    return Curve({month: (float(bits), np.nan, 3) for month, bits in enumerate(noisy)})


def test_a_second_process_gives_the_same_rows() -> None:
    inputs = [panel_of(number) for number in range(3)]
    alone = [each.rows() for each in inputs]
    assert processes.fit_in_two_processes(inputs) == alone
    assert processes.fit_all(inputs) == alone


def test_a_process_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_COMMAND", "pass")
    with pytest.raises(TidemarkError, match="the process that fits panels ended"):
        processes.fit_in_two_processes([panel_of(0), panel_of(1)])


def test_a_fault_of_one_process_ends_both() -> None:
    unknown = replace(panel_of(0), cutoffs={})
    with pytest.raises(KeyError):
        processes.fit_in_two_processes([unknown, panel_of(1)])
