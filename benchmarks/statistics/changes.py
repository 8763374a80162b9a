"""Measure by simulation how well cutoffs are dated and contaminated months are found.

Each world has models with cutoffs spread over the months, and bits per byte of

    1 + theta_i * (shock_m + drift * m) + gap * [m > cutoff_i] + noise_im

The first model's gap follows the design: a step, a ramp, none. Shocks have a standard deviation of
0.02, noise 0.008, gaps 0.03. The estimators of ``warehouse.estimates`` see these figures directly;
nothing is landed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats  # type: ignore[import-untyped]
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from warehouse.estimates.contamination import (
    find_low_months,
    measure_shortfalls,
    tail_degrees_of_freedom,
)
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff, ramp
from warehouse.estimates.panel import fit_panel

Floats = NDArray[np.float64]
SHOCK, NOISE, GAP, SEEN = 0.02, 0.008, 0.03, 0.1


@dataclass(frozen=True)
class Design:
    """One kind of world. Months count from 0; a ramp reaches from ``start`` to ``end``."""

    start: int = 17
    end: int = 18
    num_months: int = 36
    num_models: int = 8
    gap: float = GAP
    growth: float = 0  # of the first model's gap, a month
    memory: float = 0  # autocorrelation of the noise
    drift: float = 0  # a month; with sensitivities from 0.7 to 1.3
    tail: float | None = None  # degrees of freedom of the shocks
    missing: float = 0
    hole: tuple[int, int] = (0, 0)
    scatter: float = 1  # of the noise after each model's cutoff, by a factor
    seen: int | None = None  # month that the first model has seen

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return bits per byte (models, months), NaN if missing, and cutoffs (models,)."""
        shape, months = (self.num_models, self.num_months), np.arange(self.num_months)
        shock = rng.normal(size=self.num_months)
        if self.tail:
            shock = rng.standard_t(self.tail, self.num_months) / np.sqrt(
                self.tail / (self.tail - 2)
            )
        theta = (
            rng.permutation(np.linspace(0.7, 1.3, shape[0])) if self.drift else np.ones(shape[0])
        )
        noise = rng.normal(size=(shape[0], self.num_months + 20)) * np.sqrt(1 - self.memory**2)
        y = 1 + theta[:, None] * (SHOCK * shock + self.drift * months)
        cutoffs = np.linspace(4, self.num_months - 5, shape[0]).round()
        cutoffs[0] = self.end - 1
        noise = NOISE * signal.lfilter([1], [1, -self.memory], noise)[:, 20:]
        y += noise * np.where(months > cutoffs[:, None], self.scatter, 1)
        y[1:] += max(GAP, self.gap) * (months > cutoffs[1:, None])
        y[0] += self.gap * ramp(months, self.start, self.end)
        y[0] += self.growth * np.maximum(months - cutoffs[0], 0)
        if self.seen is not None:
            y[0, self.seen] -= SEEN
        y[rng.random(shape) < self.missing] = np.nan
        y[:, slice(*self.hole)] = np.nan
        return y, cutoffs


DESIGNS = {
    "no change": Design(gap=0),
    "no change, noise AR(0.5)": Design(gap=0, memory=0.5),
    "no change, drift 0.003": Design(gap=0, drift=0.003),
    "no change, t3 shocks": Design(gap=0, tail=3),
    "no change, 25 % missing": Design(gap=0, missing=0.25),
    "step": Design(),
    "step, noise AR(0.5)": Design(memory=0.5),
    "step, drift 0.003": Design(drift=0.003),
    "step, 25 % missing": Design(missing=0.25),
    "step, then growth 0.001": Design(growth=0.001),
    "step, 3 models": Design(num_models=3),
    "step, 12 months": Design(6, 7, num_months=12),
    "step of 2, noise tenfold after": Design(gap=2, scatter=10, num_models=3, num_months=24),
    "ramp of 6 months": Design(15, 21),
    "ramp of 12 months": Design(12, 24),
    "step in a hole of 4 months": Design(hole=(16, 20)),
    "step after the second month": Design(1, 2),
    "step two months before the end": Design(33, 34),
    "growth 0.002 without a step": Design(gap=0, growth=0.002),
    "a seen month": Design(seen=25),
    "a seen month, 3 models": Design(seen=25, num_models=3),
}


@dataclass(frozen=True)
class Outcome:
    """Estimates of one world: the cutoff of its first model, low months of all models."""

    found: CutoffFit | None
    suspects: set[tuple[int, int]]  # model, month

    @classmethod
    def of(cls, losses: Floats, cutoffs: Floats) -> Outcome:
        """Estimate as ``warehouse.estimates.estimate`` and view suspected_contamination do."""
        observed = ~np.isnan(losses).all(axis=0)
        months = np.flatnonzero(observed)
        losses = losses[:, observed]
        fit = fit_panel(losses, cutoffs, months)
        changes: list[CutoffFit | None] = []
        tested: list[Any] = []
        for model, curve in enumerate(losses):
            difficulty = fit.difficulty_without(model)
            assert difficulty is not None
            is_low = find_low_months(curve, difficulty)
            change = fit_cutoff(np.where(is_low, np.nan, curve), months, difficulty)
            is_found = change is not None and change.p_value <= 0.05 and not change.is_line
            changes.append(change if is_found else None)
            unknown = np.full(len(months), np.nan)
            tested.append(measure_shortfalls(curve, months, difficulty, changes[-1], unknown))
        rows = [(model, each) for model, each in enumerate(tested) if each is not None]
        tail = tail_degrees_of_freedom(np.concatenate([each.scaled for _, each in rows]))
        places, p_values = [], []
        for model, each in rows:
            t = each.value / each.error
            is_tested = ~np.isnan(t)
            places += [(model, int(month)) for month in months[is_tested]]
            p_values += list(stats.t.sf(t[is_tested], np.minimum(each.num_free, tail)[is_tested]))
        q_values = stats.false_discovery_control(p_values)
        suspects = {place for place, q in zip(places, q_values, strict=True) if q <= 0.05}
        return cls(changes[0], suspects)


@dataclass(frozen=True)
class Shares:
    """Shares of the worlds of one design; coverages are shares of the cutoffs found."""

    found: float
    cutoff: float
    onset: float
    at_edge: float
    false_alarms: float
    seen: float


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def measure(design: Design, num_worlds: int) -> Shares:
    """Return what is found in ``num_worlds`` worlds; a world depends on its number alone."""
    outcomes = [
        Outcome.of(*design.draw(np.random.default_rng(number))) for number in range(num_worlds)
    ]
    cutoff, seen = design.end - 1, (0, design.seen)
    onset = min(design.start + 1, cutoff)
    changes = [outcome.found for outcome in outcomes if outcome.found]

    def share(flags: list[bool]) -> float:
        return float(np.mean(flags)) if flags else np.nan

    return Shares(
        found=len(changes) / num_worlds,
        cutoff=share([not (it.cutoff_low > cutoff or it.cutoff_high < cutoff) for it in changes]),
        onset=share([not (it.onset_low > onset or it.onset_high < onset) for it in changes]),
        at_edge=share([bool(np.isnan(it.cutoff_high)) for it in changes]),
        false_alarms=share([bool(outcome.suspects - {seen}) for outcome in outcomes]),
        seen=share([seen in outcome.suspects for outcome in outcomes]),
    )


def main() -> int:
    """Print a Markdown table with a row for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=300)
    num_worlds = parser.parse_args().worlds
    print(f"{num_worlds} worlds a design; a dash: nothing to count.\n")
    print("| world | found | cutoff in interval | onset in interval | at or after | false alarms |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, design in DESIGNS.items():
        it = measure(design, num_worlds)
        has_change = design.gap or design.growth
        figures = (
            [it.found, it.cutoff, it.onset, it.at_edge] if has_change else [it.found, *[np.nan] * 3]
        )
        cells = ["–" if np.isnan(figure) else f"{100 * figure:.1f} %" for figure in figures]
        seen = f"; the seen month in {100 * it.seen:.1f} %" if design.seen is not None else ""
        print(f"| {name} | {' | '.join(cells)} | {100 * it.false_alarms:.1f} %{seen} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
