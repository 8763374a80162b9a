"""Tell whether the change in a mean over sources rests on a single source.

A source whose sets are made by another recipe from some month on, or that a model feels alone,
moves the mean over sources, too. So each source s is left out in turn. theta, w and V stay those of
the mean over all sources. The other S - 1 sources give

    y_s = (S y - y of source s) / (S - 1)        lambda_s = M+ sum_i w_i theta_i R_i y_is
    y_s = theta lambda_s + N gamma + beta_s ramp + u

with the ramp found in y (``cutoffs``, ``untreated``). The change rests on source s if beta_s is at
most 2 of its errors, and 2 of its errors less than beta. With equal changes in two sources, this is
so in 0.2 % of worlds; with more sources, it is rarer. Then it is no cutoff over all sources.

The change of one source hides those of all of them. So y_s, without that source, is dated like a
mean (``Rest``), with the panels without each other model. Its change may rest on another source: so
with three sources or more, each other source is left out of y_s, too. Then nothing is told.

With three sources or more, and at most 8 other models, the interval also holds what each y_s
shows. So it does with what the panel shows without each other model (``untreated``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warehouse.estimates.cutoffs import NUM_ROUNDS, CutoffFit, fit_cutoff
from warehouse.estimates.pairs import ramp
from warehouse.estimates.panel import Difficulty
from warehouse.estimates.panel_errors import Floats
from warehouse.estimates.regression import ROUNDING, Curve, Months, WeightedFit
from warehouse.estimates.untreated import LEAST_OTHERS, MOST_OTHERS, DatedCurve, Untreated

MIN_SOURCES = 3  # of a wider interval
NUM_ERRORS = 2.0

Part = tuple[Floats, Difficulty]  # a model's y_s (months,), and lambda_s without the model


@dataclass(frozen=True)
class Rests:
    """The means over all sources but one; the first axis is that of the sources left out."""

    sources: list[str]
    losses: Floats  # (sources, models, months); NaN for a missing month
    compressors: Floats | None  # (sources, months)


@dataclass(frozen=True)
class Rest:
    """A source that alone shows a model's change, and the change of the other sources, if any."""

    source: str
    cutoff: CutoffFit | None


@dataclass(frozen=True)
class _Panel:
    """A panel with the mean over all sources, and each mean without one."""

    fit: Untreated
    remainders: Floats  # R y_s, of models and compressors (rows, months, sources)
    months: Months

    def difficulties(self, whole: Difficulty, *numbers: int) -> Floats:
        """Return lambda_s (sources, months) without some models; ``whole`` is lambda without."""
        weights = self.fit.theta * self.fit.weights
        weights[[*numbers]] = 0
        return np.asarray(np.tensordot(weights, self.remainders, 1).T @ whole.inverse)

    def date_rest(
        self, dated: DatedCurve, number: int, curves: Floats, source: int
    ) -> CutoffFit | None:
        """Return the change of a model without a source; None if it rests on one source, too.

        ``curves`` (sources, months) are the model's y_s.
        """
        others = dated.others if LEAST_OTHERS <= len(dated.others) <= MOST_OTHERS else []
        fits = []
        for left_out in ([number], *([number, other] for other in others)):
            whole = self.fit.without(*left_out)
            if whole is not None:
                values = self.difficulties(whole, *left_out)
                rest = replace(whole, values=values[source])
                fits.append((fit_cutoff(curves[source], self.months, rest), rest, values))
        found, rest, values = fits[0]
        if found is None or not found.is_found:
            return None
        if len(curves) > 2:
            pairs = _without_two(curves, source), _without_two(values, source)
            parts = [
                (curve, replace(rest, values=difficulty))
                for curve, difficulty in zip(*pairs, strict=True)
            ]
            if _rests_on(curves[source], self.months, rest, found, parts) is not None:
                return None
        return found.widened([each for each, *_ in fits if each and each.is_found])


def leave_out_sources(
    rests: Rests, fit: Untreated, dated: list[DatedCurve], months: Months
) -> tuple[list[DatedCurve], list[Rest | None]]:
    """Return the changes with wider intervals, and what each that rests on one source leaves.

    ``fit`` has lambda of the mean over all sources, and ``dated`` the changes in it.
    """
    rows = rests.losses
    if rests.compressors is not None:
        rows = np.concatenate([rows, rests.compressors[:, None]], axis=1)
    remainders = fit.annihilators @ np.nan_to_num(rows).transpose(1, 2, 0)
    panel = _Panel(fit, remainders, months)
    changes = list(dated)
    lefts: list[Rest | None] = [None] * len(dated)
    for number, each in enumerate(dated):
        whole = fit.without(number)
        found = each.cutoff
        if found is None or not found.is_found or whole is None:
            continue
        curves = np.where(np.isnan(each.losses), np.nan, rests.losses[:, number])
        values = panel.difficulties(whole, number)
        parts = [
            (curve, replace(whole, values=difficulty))
            for curve, difficulty in zip(curves, values, strict=True)
        ]
        source = _rests_on(each.losses, months, whole, found, parts)
        if source is not None:
            rest = panel.date_rest(each, number, curves, source)
            lefts[number] = Rest(rests.sources[source], rest)
        elif len(parts) >= MIN_SOURCES and len(each.others) <= MOST_OTHERS:
            fits = [fit_cutoff(curve, months, difficulty) for curve, difficulty in parts]
            wide = found.widened([rest for rest in fits if rest and rest.is_found])
            changes[number] = replace(each, cutoff=wide)
    return changes, lefts


def _without_two(rests: Floats, source: int) -> Floats:
    """Return the means without a source and each other one, from those without one source."""
    num_sources = len(rests)
    whole = rests.mean(axis=0)
    others = np.delete(rests, source, axis=0)
    both = (num_sources - 1) * (others + rests[source]) - num_sources * whole
    return np.asarray(both / (num_sources - 2))


def _rests_on(
    losses: Floats, months: Months, whole: Difficulty, found: CutoffFit, parts: list[Part]
) -> int | None:
    """Return the number of the source that a change rests on; None if there is none."""
    curve = Curve.of(losses, months, whole)
    height = ramp(curve.months, found.start, found.end)
    fit = curve.weighted()
    for _ in range(NUM_ROUNDS):
        fit = curve.weighted(fit.next_covariance(height))
    beta, _ = _effect(fit, height)
    for number, (rest, difficulty) in enumerate(parts):
        slope, error = _effect(fit.of_curve(Curve.of(rest, months, difficulty)), height)
        if slope <= NUM_ERRORS * error and slope + NUM_ERRORS * error < beta:
            return number
    return None


def _effect(fit: WeightedFit, height: Floats) -> tuple[float, float]:
    """Return the coefficient of a further column, and its error; 0 and infinite if Z spans it."""
    curve = fit.curve
    if not fit.tells(height):
        return 0.0, np.inf
    weighted = fit.annihilator @ height
    norm = float(weighted @ height)
    slope = float(weighted @ curve.losses) / norm
    squares = float(curve.losses @ fit.annihilator @ curve.losses) - slope**2 * norm
    squares = max(squares, ROUNDING * float(curve.losses @ curve.losses))
    return slope, float(np.sqrt(squares / max(curve.num_free - 1, 1) / norm))
