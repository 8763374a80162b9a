"""The difficulty of the months from untreated model-months, and all cutoffs of a panel in turn.

A month of a model is treated once its training text thins out. Models that are treated at different
times are no controls for each other ("forbidden comparisons": Goodman-Bacon 2021). So lambda is
estimated without the months in which text thins out. Cutoffs are dated against it (Borusyak,
Jaravel and Spiess 2024, "Revisiting Event-Study Designs"):

    y_im = x_im' gamma_i + theta_i lambda_m + u_im        in the months that model i keeps

- x: 1 and the regimes of the source. After a cutoff, a model has a level and a line of its own
  (``panel``: after, hinge), so that its effect there is free.
- Kept months: up to ``start`` and from ``end`` on, of the model's ``Spell``. A model whose cutoff
  is before the window (a thermometer) keeps all months.
- Compressors are one row, the mean of their curves. x has a straight line, too: a drift that
  affects only language models is no change.

theta, lambda and its error as in ``difficulty``. The models' noise, or a part of it, may last from
month to month. In V of a curve (``cutoffs``), it is AR(1) with the curve's own r, or it has C of
all models. The one with the larger variance of a mean over many months is taken. If lambda comes
from few other models, its error persists, too, and looks like a ramp. So the error of lambda counts
as persistent (C) in panels of at most 9 models, and in the joint fit (``staggered``).

Spells in turn. First, a model with a stated cutoff c keeps the months up to c - 8 and after c (of
fewer than 24 months: up to c less a third of them). A model without a stated cutoff enters later,
if lambda can be estimated from others or a compressor. Then each model is dated by ``cutoffs``
against lambda without it. If a change is found, its interval is the new spell: text thins out from
the lowest onset to the highest cutoff; months beyond an open end are left out. If none is found, a
model with a stated cutoff has its first spell. Another is untreated; but if no cutoff is stated
within the window, it does not enter. This is repeated until no spell moves (in a large panel: one
in twenty), at most six times. In a large panel, rounds after the second date only models whose
spells have just moved, and all are dated at the end.

The intervals also hold those found without each of the other models, if there are 3 to 8.

A month in which no model is kept, and no compressor has a figure, is in ``Difficulty.unknown``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from warehouse.estimates.contamination import find_low_months
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.difficulty import (
    Design,
    Difficulty,
    DifficultyFit,
    Floats,
    Readings,
    design,
    fit_difficulty,
)
from warehouse.estimates.pairs import ramp

MARGIN = 8  # months before a stated cutoff in which text may thin out
MIN_KEPT = 4  # months of a row
LEAST_OTHERS = 3
MOST_OTHERS = 8
MOST_ROUNDS = 6
LARGE_PANEL = 20  # models; one spell in so many may still move


Ramp = tuple[int, int]  # a and b


class Spell(NamedTuple):
    """Text thins out after month ``start`` and before month ``end``."""

    start: float
    end: float


UNTREATED = Spell(np.inf, np.inf)
NO_MONTH = Spell(-np.inf, np.inf)  # is kept


@dataclass(frozen=True)
class DatedCurve:
    """One model's curve and the change that a panel shows in it."""

    others: list[int]  # numbers of the models that lambda is fitted with
    spell: Spell | None  # the model's own, in the fits of the others
    difficulty: Difficulty | None  # lambda without the model
    losses: Floats  # (months,); NaN for a low month, too
    cutoff: CutoffFit | None  # the best ramp

    @property
    def found(self) -> CutoffFit | None:
        """The change, if it is more than chance and more than a straight line."""
        return self.cutoff if self.cutoff is not None and self.cutoff.is_found else None

    def widened(self, others: list[CutoffFit | None]) -> DatedCurve:
        """Return a change with intervals that hold those of others, too."""
        return replace(self, cutoff=self.found.widened(others)) if self.found else self


def kept_losses(readings: Readings, dated: list[DatedCurve]) -> Readings:
    """Return the curves without low months."""
    return replace(readings, losses=np.array([each.losses for each in dated]))


def fit_untreated(
    readings: Readings, spells: Sequence[Spell | None], ramps: Sequence[Ramp | None] | None = None
) -> DifficultyFit:
    """Fit lambda to the months that models keep; None of ``spells``: the model does not enter.

    If ``ramps`` are given, the noise lasts, and a model with one has it in x, with growth after it.
    """
    months = readings.months
    num_models = len(readings.losses)
    rows = []
    designs: list[Design | None] = []
    ramps_of_models = ramps or [None] * num_models
    for losses, spell, pair in zip(readings.losses, spells, ramps_of_models, strict=True):
        start, end = spell or NO_MONTH
        kept = np.where((months <= start) | (months >= end), losses, np.nan)
        columns = readings.regimes
        if pair is not None:
            growth = np.maximum(months - pair[1], 0) / 12
            columns = np.column_stack([columns, ramp(months, *pair), growth])
        own = design(months, ~np.isnan(kept), end - 1, columns)
        rows.append(kept)
        designs.append(own if own.observed.sum() >= MIN_KEPT else None)
    control = readings.compressors
    if control is not None:
        line = (months - months.mean()) / 12
        columns = np.column_stack([line, readings.regimes])
        rows.append(control)
        designs.append(design(months, ~np.isnan(control), np.inf, columns))
    return fit_difficulty(
        np.array(rows),
        designs,
        num_models,
        months,
        has_memory=True,
        error_lasts=ramps is not None or num_models <= MOST_OTHERS + 1,
    )


def date_cutoffs(readings: Readings) -> list[DatedCurve]:
    """Date the cutoffs of all models of a panel in turn."""
    losses = readings.losses
    first = _first_spells(readings)
    spells = first
    is_stated = bool((readings.cutoffs >= readings.months[0]).any())
    later = [UNTREATED if each is None and is_stated else each for each in first]
    numbers = range(len(losses))
    is_large = len(losses) > LARGE_PANEL
    clean = readings
    due = list(numbers)
    dated: dict[int, DatedCurve] = {}
    for number_of_round in range(MOST_ROUNDS):
        fit = fit_untreated(clean, spells)
        dated |= {each: _date(fit, each, losses[each], spells[each]) for each in due}
        clean = kept_losses(readings, [dated[each] for each in numbers])
        former = spells
        spells = [spell_of(dated[each].found, later[each]) for each in numbers]
        moved = [each for each in numbers if spells[each] != former[each]]
        if len(moved) <= len(losses) // LARGE_PANEL:
            break
        due = moved if is_large and number_of_round else list(numbers)
    stale = set(numbers) - set(due)
    dated |= {each: _date(fit, each, losses[each], former[each]) for each in stale}
    return [widened(fit, each, dated[each]) for each in numbers]


def _first_spells(readings: Readings) -> list[Spell | None]:
    """Return the months around each stated cutoff in which a model may be treated."""
    months = readings.months
    margin = min(MARGIN, len(months) // 3)
    spells: list[Spell | None] = []
    for cutoff in readings.cutoffs:
        if np.isnan(cutoff):
            spells.append(None)
        elif cutoff < months[0] or cutoff - margin >= months[-1]:
            spells.append(UNTREATED)
        else:
            spells.append(Spell(cutoff - margin, cutoff + 1))
    is_alone = readings.compressors is None and not any(spells)
    return [UNTREATED] * len(spells) if is_alone else spells


def _date(fit: DifficultyFit, number: int, losses: Floats, spell: Spell | None) -> DatedCurve:
    difficulty = fit.without(number)
    kept = losses
    if difficulty is not None:
        kept = np.where(find_low_months(losses, difficulty), np.nan, losses)
    found = fit_cutoff(kept, fit.months, difficulty)
    return DatedCurve(fit.others(number), spell, difficulty, kept, found)


def spell_of(found: CutoffFit | None, otherwise: Spell | None) -> Spell | None:
    """Return the months that the interval of a change holds."""
    if found is None:
        return otherwise
    start = -np.inf if np.isnan(found.onset_low) else found.onset_low - 1
    return Spell(start, np.inf if np.isnan(found.cutoff_high) else found.cutoff_high + 1)


def widened(fit: DifficultyFit, number: int, dated: DatedCurve) -> DatedCurve:
    """Return the change with the intervals of panels without another model, if they are few."""
    if dated.found is None or not LEAST_OTHERS <= len(dated.others) <= MOST_OTHERS:
        return dated
    rests = [fit.without(number, other) for other in dated.others]
    return dated.widened([fit_cutoff(dated.losses, fit.months, rest) for rest in rests])
