"""The panels of a snapshot: the curves of models, the regimes of sources, and their fits."""

from __future__ import annotations

import datetime as dt
import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from core.month import Month
from warehouse.estimates.contamination import fit_without_low_months
from warehouse.estimates.difficulty import Floats, Months, Readings
from warehouse.estimates.panel import PanelFit, fit_panel

OTHER_SOURCES = "other sources than most models"
LACKS_SOURCE = "too few months of {}, which the mean over sources has"
OTHER_DOCUMENTS = "other documents than most models"
CONTROL = "control:zstd"
EPOCH = Month("1970-01")  # the month with number 0


class PanelFigure(TypedDict):
    """A row of ``estimates/sql/panel_figures.sql``: the figure of a model, source and month."""

    model: str
    source: str
    protocol: str
    month: dt.date
    is_text: bool
    is_compressor: bool
    cutoff: dt.date | None
    role: str | None
    standard_error: float | None
    bits_per_byte: float | None  # None: the month has no figure on common documents
    num_documents: int | None


@dataclass
class Curve:
    """One model's figures: bits per byte, standard error (NaN if unknown), number of documents."""

    figures: dict[int, tuple[float, float, int | None]] = field(default_factory=dict)
    reason: str | None = None  # reason why figures are missing, if known
    is_compressor: bool = False


Curves = dict[str, Curve]  # by model


@functools.cache
def number_of_month(month: dt.date | None) -> float:
    """Return the number of months from 1970-01 to ``month``; NaN for None."""
    return np.nan if month is None else float(Month.of(month).months_since(EPOCH))


def read_panels(
    cells: list[PanelFigure], cutoffs: Mapping[str, float]
) -> Iterator[tuple[str | None, Curves, dict[str, Curves]]]:
    """Yield each source of one protocol, then None for the mean over sources.

    A source comes with its curves, and with those of the sources that they are of, by name.
    """
    sources: dict[str, Curves] = defaultdict(lambda: defaultdict(Curve))
    for cell in cells:
        curve = sources[cell["source"]][cell["model"]]
        curve.is_compressor = cell["is_compressor"]
        if cell["bits_per_byte"] is not None:
            month = int(number_of_month(cell["month"]))
            error = cell["standard_error"]
            figures = cell["bits_per_byte"], np.nan if error is None else error
            curve.figures[month] = *figures, cell["num_documents"]
        else:
            curve.reason = OTHER_DOCUMENTS
    for source, curves in sources.items():
        yield source, curves, {source: curves}
    texts = sorted({cell["source"] for cell in cells if cell["is_text"]})
    if texts:
        means, chosen = _means({source: sources[source] for source in texts}, cutoffs)
        yield None, means, {source: sources[source] for source in chosen}


def _means(sources: Mapping[str, Curves], cutoffs: Mapping[str, float]) -> tuple[Curves, list[str]]:
    """Return each model's mean curve over sources, and these sources, the same for all models.

    A model's usable sources have at least half as many months as its longest source. The most
    common set of usable sources among models with a known cutoff is chosen; among all language
    models if no cutoff is known. A curve has the months that all chosen sources have.
    """
    kept: dict[str, frozenset[str]] = {}
    models: set[str] = set()
    compressors: set[str] = set()
    for curves in sources.values():
        models.update(curves)
        compressors.update(model for model, curve in curves.items() if curve.is_compressor)
    for model in sorted(models):
        counts = {
            name: len(curves[model].figures) for name, curves in sources.items() if model in curves
        }
        most = max(counts.values())
        kept[model] = frozenset(name for name, num in counts.items() if 2 * num >= most > 0)
    voters = [model for model in kept if not np.isnan(cutoffs[model])]
    voters = voters or [model for model in kept if model not in compressors]
    votes = Counter(kept[model] for model in voters)
    most_common = max(votes or [frozenset()], key=lambda it: (votes[it], len(it), sorted(it)))
    has_most = 2 * votes[most_common] > len(voters)
    means = {}
    for model, names in kept.items():
        lacking = " and ".join(sorted(most_common - names))
        reason = OTHER_SOURCES if has_most else LACKS_SOURCE.format(lacking)
        means[model] = _mean(model, sources, names, most_common, reason)
    for model in compressors:
        means[model].is_compressor = True
    return means, sorted(most_common)


def _mean(
    model: str,
    sources: Mapping[str, Curves],
    kept: frozenset[str],
    chosen: frozenset[str],
    reason: str,
) -> Curve:
    """Return a model's mean curve over the ``chosen`` sources; ``reason`` is that of none."""
    if not kept >= chosen or not chosen:
        reasons = {curves[model].reason for curves in sources.values() if model in curves}
        has_others = not kept and reasons == {OTHER_DOCUMENTS}
        return Curve(reason=OTHER_DOCUMENTS if has_others else reason)
    figures = [sources[name][model].figures for name in sorted(chosen)]
    mean = Curve()
    for month in sorted(set.intersection(*map(set, figures))):
        bits, errors, counts = zip(*(each[month] for each in figures), strict=True)
        error = float(np.linalg.norm(errors)) / len(errors)
        mean.figures[month] = float(np.mean(bits)), error, None if None in counts else sum(counts)
    return mean


@dataclass(frozen=True)
class Panel(Readings):
    """The fit of one panel; arrays have the shape (models, months) or (months,)."""

    models: list[str]
    document_errors: Floats  # standard errors of random documents; NaN if unknown
    control: Floats | None  # curve of control:zstd
    fit: PanelFit
    plain: PanelFit  # as if all models felt a new regime equally
    calm: PanelFit  # without low months
    rests: dict[str, Floats]  # by source, the means without it (rows, months); none of one source

    @property
    def starts(self) -> Months:
        """The first months of the regimes after the first one."""
        return self.months[1:][np.diff(self.regimes, axis=0).any(axis=1)]


def fit_curves(
    curves: Curves,
    cutoffs: Mapping[str, float],
    labels: list[dict[int, str]],
    parts: Mapping[str, Curves] | None = None,
) -> Panel:
    """Fit the panel of one source, or of the mean over sources.

    ``cutoffs`` has the number of each model's cutoff month; NaN if unknown. ``labels`` has each
    source's regimes by month, in the order of the months. ``parts`` has the curves of each source
    of a mean.
    """
    months = np.array(
        sorted({month for curve in curves.values() for month in curve.figures}) or [0]
    )
    models = sorted(name for name, curve in curves.items() if not curve.is_compressor)
    compressors = sorted(curves.keys() - set(models))
    losses, document_errors = _figures(curves, models, months)
    controls, _ = _figures(curves, compressors, months)
    has_control = CONTROL in compressors and bool(curves[CONTROL].figures)
    known = np.array([cutoffs[model] for model in models])
    regimes = _columns(labels, months)
    plain = fit_panel(losses, known, months)
    fit = fit_panel(losses, known, months, regimes) if regimes.size else plain
    return Panel(
        models=models,
        months=months,
        losses=losses,
        document_errors=document_errors,
        cutoffs=known,
        control=controls[compressors.index(CONTROL)] if has_control else None,
        compressors=_mean_of_compressors(controls),
        regimes=regimes,
        fit=fit,
        plain=plain,
        calm=fit_without_low_months(
            fit, losses, lambda kept: fit_panel(kept, known, months, regimes)
        ),
        rests=_rests(parts or {}, models, compressors, np.vstack([losses, controls]), months),
    )


def _figures(curves: Curves, names: list[str], months: Months) -> Floats:
    """Return losses and standard errors (2, models, months); NaN for a missing month."""
    figures = np.full((2, len(names), len(months)), np.nan)
    columns = {int(month): column for column, month in enumerate(months)}
    for number, name in enumerate(names):
        of_model = curves[name].figures if name in curves else {}
        for month, (bits, error, _) in of_model.items():
            if month in columns:
                figures[:, number, columns[month]] = bits, error
    return figures


def _rests(
    parts: Mapping[str, Curves],
    models: list[str],
    compressors: list[str],
    means: Floats,
    months: Months,
) -> dict[str, Floats]:
    """Return what is left of the ``means`` (models and compressors, months) without each source.

    Rows are the models, then the mean of the compressors, if there are any.
    """
    rests: dict[str, Floats] = {}
    if len(parts) < 2:
        return rests
    for source, curves in parts.items():
        of_source, _ = _figures(curves, [*models, *compressors], months)
        rest = (len(parts) * means - of_source) / (len(parts) - 1)
        rests[source] = rest[: len(models)]
        mean = _mean_of_compressors(rest[len(models) :])
        if mean is not None:
            rests[source] = np.vstack([rests[source], mean])
    return rests


def _mean_of_compressors(curves: Floats) -> Floats | None:
    """Return the mean of the curves that have at least half as many months as the longest."""
    counts = (~np.isnan(curves)).sum(axis=1)
    if not counts.any():
        return None
    return np.asarray(curves[2 * counts >= counts.max()].mean(axis=0))


def _columns(labels: list[dict[int, str]], months: Months) -> Floats:
    """Return the column of each regime; a month without a label has that of the month before."""
    columns = []
    for of_source in labels:
        own = []
        label = next(iter(of_source.values()), "")
        for month in months:
            label = of_source.get(int(month), label)
            own.append(label)
        later = [each for each in dict.fromkeys(own) if each != own[0]]
        columns += [[float(each == name) for each in own] for name in later]
    return np.array(columns).reshape(-1, len(months)).T
