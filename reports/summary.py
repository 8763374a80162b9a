"""The summary table of a run: bits per byte before and after each model's cutoff."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from core.month import Month
from core.settings import Settings
from warehouse.database.statements import Row
from warehouse.read.query import query


@dataclass(frozen=True)
class GapRow:
    """One row of the table; figures are text in bits per byte, or None if unknown."""

    model: str
    source: str | None  # None for the mean over the model's sources
    before: str | None  # mean over the months up to the split
    after: str | None
    gap: str | None  # ``after`` minus ``before``
    interval: str | None  # 95 % interval of the gap
    tbi: str | None  # slope of the monthly losses, in bits per byte per year
    # Only on rows over all sources: the estimated month, with the 95 % interval if longer than a
    # month; "at or after" a month; "none" if no change is found; None if none can be.
    estimated_cutoff: str | None
    split: str | None  # last month of ``before``; only on rows over all sources
    # Provenance of the model's cutoff: stated, inferred or planted; None if it is unknown.
    provenance: str | None


def gap_rows(settings: Settings, protocol: str) -> list[GapRow]:
    """Return the table's rows for one protocol, grouped by model; controls come last.

    A model with a cutoff has one row over all sources and one row per source. A model without a
    cutoff has two rows over all sources, split at the earliest and at the latest cutoff of the
    other models. If no model has a cutoff, the model has one row without a gap.
    """
    by_source: dict[str, list[Row]] = {}
    sql = "from train_test_gap_at(cast(null as date)) where protocol = ? order by source"
    gaps = _rows(settings, sql, protocol)
    for row in gaps:
        if row["scope"] == "source":
            by_source.setdefault(row["model"], []).append(row)
    with_cutoff = [row for row in gaps if row["scope"] == "all"]
    splits = {row["split_date"] for row in with_cutoff}
    overall: dict[str, list[Row]] = {row["model"]: [row] for row in with_cutoff}
    ordered = sorted(splits)
    for split in sorted({*ordered[:1], *ordered[-1:]}):
        sql = "from train_test_gap_at(?) where scope = 'all' and protocol = ?"
        for row in _rows(settings, sql, split, protocol):
            if row["model"] not in by_source:
                overall.setdefault(row["model"], []).append({**row, "split_basis": None})
    tbi = _tbi(settings, protocol)
    sql = "select *, starts_with(model, 'control:') as is_control from estimated_cutoff"
    estimates = _rows(settings, f"{sql} where scope = 'all' and protocol = ?", protocol)
    rows = []
    for facts in sorted(estimates, key=lambda row: _rank(row, by_source)):
        model = facts["model"]
        lines = overall.get(model) or [_one_sided(by_source.get(model, []))]
        rows += [_row(model, None, line, tbi, describe_estimate(facts)) for line in lines]
        rows += [_row(model, line["source"], line, tbi) for line in by_source.get(model, [])]
    return rows


def by_model(rows: list[GapRow]) -> list[list[GapRow]]:
    """Group the rows by model, in the order of the rows."""
    return [list(group) for _, group in itertools.groupby(rows, key=lambda row: row.model)]


def _rows(settings: Settings, sql: str, *parameters: object) -> list[Row]:
    return query(settings, sql, parameters).to_pylist()  # type: ignore[no-any-return]


def _rank(facts: Row, with_cutoff: Mapping[str, object]) -> tuple[bool, bool, str, str]:
    """Return a model's sort key: models with a cutoff come first, controls last, then by name."""
    model = facts["model"]
    return facts["is_control"], model not in with_cutoff, model.casefold(), model


def _tbi(settings: Settings, protocol: str) -> dict[tuple[str, str | None], float | None]:
    """Return TBI (slope in bits per byte per year) by model and source (None: mean over all)."""
    rows = _rows(settings, "from tbi_likelihood where protocol = ?", protocol)
    return {(row["model"], row["source"]): row["tbi_per_year"] for row in rows}


def _one_sided(sources: list[Row]) -> Row:
    """Return the row over all sources of a model without months on both sides of the cutoff."""
    if not sources:
        return {}
    return {name: sources[0][name] for name in ("split_date", "split_basis")}


def describe_estimate(facts: Row) -> str | None:
    """Return a row of view ``estimated_cutoff`` as text; None if the model has no test."""
    if facts["is_at_edge"] is None:
        return None if facts["q_value"] is None else "none"
    return facts["cutoff_text"] or str(facts["reason"])


def _row(
    model: str,
    source: str | None,
    line: Row,
    tbi: Mapping[tuple[str, str | None], float | None],
    estimate: str | None = None,
) -> GapRow:
    """Return a row of the table from a row of the view; ``source`` None: over all sources."""
    low = line.get("bits_per_byte_gap_low")
    high = line.get("bits_per_byte_gap_high")
    split: dt.date | None = None if source else line.get("split_date")
    return GapRow(
        model=model,
        source=source,
        before=_figure(line.get("bits_per_byte_before")),
        after=_figure(line.get("bits_per_byte_after")),
        gap=_figure(line.get("bits_per_byte_gap"), signed=True),
        interval=None if low is None else f"{_figure(low, True)} … {_figure(high, True)}",
        tbi=_figure(tbi.get((model, source)), signed=True),
        estimated_cutoff=estimate,
        split=str(Month.of(split) - 1) if split else None,
        provenance=None if source else line.get("split_basis"),
    )


def _figure(value: float | None, signed: bool = False) -> str | None:
    if value is None:
        return None
    rounded = round(value, 3) + 0.0  # + 0.0 avoids "-0.000"
    return f"{rounded:+.3f}" if signed else f"{rounded:.3f}"


def _month(day: dt.date | None) -> str:
    return str(Month.of(day)) if day else "?"
