"""Shares of simulated curves in which a second change is told, of one change and of two.

    python -m benchmarks.statistics.rises --worlds 200

A world has eight models over 36 months (``Design`` of ``panels``). The first model's curve is
fitted against the panel of the others, without a warehouse. So a second change is told at p = 0.05
of one curve; the view asks for a false discovery rate. The first rows have one change: what is told
there is false.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.__main__ import headline
from benchmarks.statistics.panels import Design
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.pairs import Rise
from warehouse.estimates.panel import fit_panel

ONE = {
    "step": Design(),
    "step of 0.2": Design(gap=0.2),
    "ramp of 6 months": Design(12, 18, gap=0.06),
    "ramp of 12 months": Design(12, 24, gap=0.06),
    "growth 0.003 without a step": Design(gap=0, growth=0.003),
    "step, then growth 0.003": Design(gap=0.06, growth=0.003),
    "ramp of 8 months, then growth 0.003": Design(10, 18, gap=0.06, growth=0.003),
    "drift 0.003": Design(gap=0, drift=0.003, sensitivity=0.3),
}
TWO = {
    "two steps of 0.03": Design(11, 12, second=23),
    "two steps of 0.06": Design(11, 12, second=23, gap=0.06),
    "ramp of 6 months and a step, of 0.06": Design(6, 12, second=23, gap=0.06),
}


@dataclass
class Shares:
    """Numbers of worlds."""

    found: int = 0  # with a change
    told: int = 0  # with two
    first: int = 0  # with the truth in the interval of the first
    second: int = 0


def measure(design: Design, num_worlds: int, seed: int) -> Shares:
    """Simulate worlds of a kind, and fit the first model's curve."""
    months = np.arange(design.num_months)
    shares = Shares()
    for number in range(num_worlds):
        models = design.draw(np.random.default_rng((seed, number)))[:-1]
        others = fit_panel(models, design.cutoffs, months).difficulty_without(0)
        fit = fit_cutoff(models[0], months, others) if others else None
        if fit is not None and fit.is_found:
            _add(shares, fit, design)
    return shares


def _add(shares: Shares, fit: CutoffFit, design: Design) -> None:
    """Count a found change, and if its two rises have the planted months."""
    shares.found += 1
    rises = fit.rises
    if rises is None or not rises.is_found:
        return
    shares.told += 1
    last = design.second
    if last is not None:
        shares.first += _holds(rises.first, design.end - 1)
        shares.second += _holds(rises.second, last)


def _holds(rise: Rise, month: int) -> bool:
    """Return True if an interval, whose ends may be open, has a month."""
    return not (rise.low > month or rise.high < month)


def main() -> None:
    """Print a table, a row for each kind of curve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=200, help="of each kind (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="other worlds of the same kinds")
    given = parser.parse_args()
    print(headline(["python", "-m", "benchmarks.statistics.rises", f"--worlds={given.worlds}"]))
    print("\n| curve | worlds | a change | two told | first covered | second covered |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, design in (ONE | TWO).items():
        for noise, memory in (("", 0.0), (", noise AR(0.5)", 0.5)):
            shares = measure(replace(design, memory=memory), given.worlds, given.seed)
            cells: list[object] = [given.worlds, shares.found, shares.told]
            covered = [shares.first, shares.second]
            cells += covered if design.second is not None else ["–"] * 2
            print(f"| {name}{noise} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
