"""Shares of simulated cutoffs that are found, and of their intervals that have the truth.

    python -m benchmarks.statistics.power --worlds 8

All models of a panel change: their text thins out, or ends, before staggered cutoffs (``Staggered``
of ``panels``). The estimator is called itself, without a warehouse. A row is one kind of panel. The
first rows have no change: what is found there is false.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from benchmarks.__main__ import headline
from benchmarks.statistics.panels import CONTROL, Floats, Staggered
from warehouse.estimates.changes import Change, find_changes
from warehouse.estimates.panels import Curve, Panel, fit_curves

NULLS = {
    "no change": Staggered(gap=0),
    "no change, drift": Staggered(gap=0, source="drift"),
    "no change, drift of models alone": Staggered(gap=0, source="drift", is_shared=False),
    "no change, bend of models alone": Staggered(gap=0, source="bend", is_shared=False),
    "no change, break": Staggered(gap=0, source="break"),
    "no change, break of models alone": Staggered(gap=0, source="break", is_shared=False),
    "no change, bend beside shocks of all": Staggered(gap=0, source="bend", is_felt=False),
    "no change, break beside shocks of all": Staggered(gap=0, source="break", is_felt=False),
}
SMALL = Staggered(num_models=3, num_months=24, apart=1, length=4)
WRONG = {
    "12 months too early": replace(SMALL, wrong=-12),
    "6 months too early": replace(SMALL, wrong=-6),
    "6 months too late": replace(SMALL, wrong=6),
    "12 months too late": replace(SMALL, wrong=12),
    "12 months too late for one": replace(SMALL, wrong=12, num_wrong=1),
    "not there": replace(SMALL, is_stated=False),
}
PANELS = {
    "ramps of 4 months": SMALL,
    "ramps of 8 months, 3 models": Staggered(num_models=3, num_months=24),
    "ramps of 8 months, 3 models far apart": Staggered(num_models=3, apart=6),
    "ramps of 8 months, 8 models": Staggered(num_months=24, apart=2),
    "ramps of 12 months, 8 models": Staggered(apart=1, length=12),
    "ramps of 8 months, 20 models": Staggered(num_models=20, num_months=84),
    "steps, 8 models": Staggered(length=0),
}
SIZES = (0.08, 0.04)  # bits per byte
LENGTHS = ((4, (1, 3, 6)), (8, (1, 3, 6)), (12, (1, 3, 6)), (0, (3,)))  # with months apart


@dataclass
class Shares:
    """Numbers of models with a change of the kind that is counted."""

    models: int = 0
    found: int = 0
    closed: int = 0  # with both ends inside the months
    covered: int = 0  # intervals with the last month with text
    onsets: int = 0  # intervals with the first month with less text

    def add(self, change: Change, last: float, onset: float) -> None:
        """Count one model."""
        self.models += 1
        found = change.cutoff
        if found is None or change.reason is not None or not found.is_found:
            return
        self.found += 1
        self.closed += found.is_closed
        self.covered += not (found.cutoff_low > last or found.cutoff_high < last)
        self.onsets += not (found.onset_low > onset or found.onset_high < onset)


def panel_of(models: Floats, cutoffs: Floats, compressor: Floats) -> Panel:
    """Return the panel of curves of models (models, months) and of a compressor (months,).

    The panel has the models in this order: it sorts by name.
    """
    named = {f"model {number:03d}": row for number, row in enumerate(models)}
    curves = {name: Curve(_figures(row)) for name, row in named.items()}
    curves[CONTROL] = Curve(_figures(compressor), is_compressor=True)
    known = dict(zip(named, cutoffs, strict=True))
    return fit_curves(curves, {**known, CONTROL: np.nan}, [{}])


def _figures(row: Floats) -> dict[int, tuple[float, float, int | None]]:
    return {month: (float(bits), np.nan, None) for month, bits in enumerate(row)}


def measure(design: Staggered, num_worlds: int, seed: int) -> Shares:
    """Simulate worlds of a kind; thermometers are not counted."""
    shares = Shares()
    for number in range(num_worlds):
        models, stated, compressor, truth = design.draw(seed, number)
        changes = find_changes(panel_of(models, stated, compressor))
        for change, last in zip(changes, truth, strict=False):
            shares.add(change, last, min(last - design.length + 1, last))
    return shares


def kinds() -> Iterator[tuple[str, Staggered]]:
    """Yield all kinds of panels, by name."""
    for name, design in NULLS.items():
        yield f"{name}, 3 models", replace(design, num_models=3, num_months=24, apart=1)
        yield f"{name}, 8 models", design
    for source in ("", "drift", "break"):
        null = replace(SMALL, gap=0, source=source, memory=0.5)
        yield f"no change, {source}{source and ', '}noise AR(0.5), 3 models", null
    for num_models, num_months in ((8, 36), (8, 84), (20, 84)):
        partly = Staggered(num_models, num_months, gap=0, memory=0.8, lasting=1 / 3)
        panel = f"{num_models} models, {num_months} months"
        yield f"no change, a third of the noise AR(0.8), {panel}", partly
    for name, design in WRONG.items():
        yield f"ramps of 4 months, 0.08 bits per byte, stated months {name}", design
        far = replace(design, length=8, apart=3)
        yield f"ramps of 8 months, 0.08 bits per byte, stated months {name}", far
        null = replace(design, gap=0, source="break", is_shared=False)
        yield f"no change, break of models alone, stated months {name}", null
        yield f"no change, noise AR(0.5), stated months {name}", replace(design, gap=0, memory=0.5)
    for name, design in PANELS.items():
        for size in SIZES:
            for thermometers in (0, 2):
                anchors = "compressors and thermometers" if thermometers else "compressors"
                changed = replace(design, gap=size, thermometers=thermometers)
                yield f"{name}, {size} bits per byte, {anchors}", changed


def grid() -> Iterator[tuple[str, Staggered]]:
    """Yield panels of all numbers of models and months, lengths and distances of ramps."""
    panels = product((24, 36, 84), (3, 8, 20), LENGTHS, SIZES, (0, 2))
    for num_months, num_models, (length, distances), size, thermometers in panels:
        anchors = "compressors and thermometers" if thermometers else "compressors"
        for apart in distances:
            name = f"{num_months} months, {num_models} models, ramps of {length} months"
            changed = Staggered(num_models, num_months, apart, length, size)
            changed = replace(changed, thermometers=thermometers)
            yield f"{name} ({apart} apart), {size}, {anchors}", changed


def main() -> None:
    """Print a table, a row for each kind of panel."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=8, help="of each kind (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="other worlds of the same kinds")
    parser.add_argument("--kinds", nargs="+", default=[""], metavar="TEXT", help="names with this")
    parser.add_argument("--grid", action="store_true", help="panels of all sizes in place of these")
    given = parser.parse_args()
    print(headline(["python", "-m", "benchmarks.statistics.power", *sys.argv[1:]]))
    print("\n| panel | models | found | closed | last month covered | onset covered |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, design in grid() if given.grid else kinds():
        if not any(text in name for text in given.kinds):
            continue
        shares = measure(design, given.worlds, given.seed)
        cells = [shares.models, shares.found, shares.closed, shares.covered, shares.onsets]
        print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
