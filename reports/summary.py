"""The short table of a run, for the terminal and the page: before and after the cutoff."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from core.settings import Settings
from warehouse.query import query

ALL_SOURCES = "all sources"
COLUMNS = (
    "model", "source", "split before", "before", "after", "gap", "95 % interval", "TBI a year",
    "estimated cutoff", "stated cutoff",
)  # fmt: skip


@dataclass(frozen=True)
class GapRow:
    """One line of the table; figures in bits per byte, as text, empty where there is none."""

    model: str
    source: str
    split_month: str
    before: str
    after: str
    gap: str
    interval: str
    tbi: str
    estimated_cutoff: str
    cutoff: str

    @property
    def is_overall(self) -> bool:
        """Whether the line is the mean over sources."""
        return self.source == ALL_SOURCES

    def cells(self) -> tuple[str, ...]:
        """The values in the order of COLUMNS."""
        return (
            self.model, self.source, self.split_month, self.before, self.after, self.gap,
            self.interval, self.tbi, self.estimated_cutoff, self.cutoff,
        )  # fmt: skip


def gap_rows(settings: Settings, protocol: str) -> list[GapRow]:
    """Return the table's lines for one protocol.

    A model with a cutoff has a line for each source and one over all. A model without (a control)
    has a line over all sources for each month at which another model is split, so that its gap can
    be held against that model's.
    """
    overall = _rows(settings, "from train_test_gap_overall where protocol = ?", protocol)
    own = {row["model"] for row in overall}
    for split in sorted({row["split_date"] for row in overall}):
        at_split = "from train_test_gap_overall_at(?) where protocol = ?"
        controls = _rows(settings, at_split, split, protocol)
        overall += [row for row in controls if row["model"] not in own]
    rows = [{**row, "source": ALL_SOURCES} for row in overall]
    rows += _rows(settings, "from train_test_gap where protocol = ?", protocol)
    rows.sort(key=lambda r: (r["model"] not in own, r["model"], r["split_date"], _last(r)))
    tbi = _tbi(settings, protocol)
    cutoffs = {
        row["model"]: row
        for row in _rows(settings, "from estimated_cutoff where protocol = ?", protocol)
    }
    return [_row(row, tbi, cutoffs) for row in rows]


def _rows(settings: Settings, sql: str, *parameters: object) -> list[dict[str, Any]]:
    return query(settings, sql, parameters).to_pylist()  # type: ignore[no-any-return]


def _last(row: dict[str, Any]) -> tuple[bool, str]:
    """Order sources by name, with the line over all of them at the end."""
    return row["source"] == ALL_SOURCES, row["source"]


def _tbi(settings: Settings, protocol: str) -> dict[tuple[str, str], float | None]:
    per_source = _rows(settings, "from tbi_likelihood where protocol = ?", protocol)
    overall = _rows(settings, "from tbi_likelihood_overall where protocol = ?", protocol)
    return {
        (row["model"], row.get("source", ALL_SOURCES)): row["tbi_per_year"]
        for row in per_source + overall
    }


def _row(
    row: dict[str, Any],
    tbi: dict[tuple[str, str], float | None],
    cutoffs: dict[str, dict[str, Any]],
) -> GapRow:
    model, source = str(row["model"]), str(row["source"])
    is_overall = source == ALL_SOURCES
    cutoff = cutoffs.get(model, {}) if is_overall else {}
    low, high = row["bits_per_byte_gap_low"], row["bits_per_byte_gap_high"]
    return GapRow(
        model=model,
        source=source,
        split_month=_month(row["split_date"]),
        before=_figure(row["bits_per_byte_before"]),
        after=_figure(row["bits_per_byte_after"]),
        gap=_figure(row["bits_per_byte_gap"], signed=True),
        interval="" if low is None else f"{_figure(low, True)} … {_figure(high, True)}",
        tbi=_figure(tbi.get((model, source)), signed=True),
        estimated_cutoff=(_month(cutoff.get("estimated_cutoff")) or "none") if is_overall else "",
        cutoff=_month(cutoff.get("catalogue_cutoff")),
    )


def _figure(value: object, signed: bool = False) -> str:
    if not isinstance(value, float):
        return ""
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _month(day: object) -> str:
    return f"{day:%Y-%m}" if isinstance(day, dt.date) else ""
