"""The report: one self-contained HTML page, made from the published snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from markupsafe import Markup

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from reports import charts
from reports.summary import GapRow, by_model, gap_rows
from reports.template import render_template
from warehouse.query import query

PAGE = "report/index.html"


@dataclass(frozen=True)
class Panel:
    """One model's chart on one source."""

    model: str
    chart: Markup


def write_report(settings: Settings) -> str:
    """Write the page and return its address.

    Raises:
        UsageError: nothing is published, or nothing with months under the setting's protocol.
    """
    page = render(settings, settings.protocol)
    store = Store(settings.home)
    store.write_bytes(PAGE, page.encode())
    return store.url(PAGE)


def render(settings: Settings, protocol: str) -> str:
    """Return the page as HTML; names from outside are escaped.

    Raises:
        UsageError: nothing is published, or nothing with months under this protocol.
    """
    monthly = _monthly(settings, protocol)
    gaps = by_model(gap_rows(settings, protocol))
    months = [Month.of(day) for day in monthly["month"].unique()]
    window = min(months), max(months)
    # What the most widely scored model has read: all models score the same documents.
    num_documents, num_bytes, num_unmeasured = (
        monthly.group_by("model")
        .agg(pl.sum("num_documents", "num_bytes", "num_unmeasured"))
        .select(pl.max("num_documents", "num_bytes"), pl.sum("num_unmeasured"))
        .row(0)
    )
    return render_template(
        "page.html.j2",
        protocol=protocol,
        num_documents=f"{num_documents:,}",
        num_bytes=f"{num_bytes:,}",
        num_unmeasured=f"{num_unmeasured:,}" if num_unmeasured else "",
        window=window,
        gaps=gaps,
        sections=_sections(monthly, gaps, window),
        colours=charts,
    )


def _monthly(settings: Settings, protocol: str) -> pl.DataFrame:
    sql = "from monthly_loss where protocol = ? order by source, month"
    monthly = pl.DataFrame(pl.from_arrow(query(settings, sql, [protocol])))
    if monthly["bits_per_byte"].is_not_null().any():
        return monthly
    found = query(settings, "select distinct protocol from monthly_loss order by all")
    others = ", ".join(found["protocol"].to_pylist())
    raise UsageError(
        f"no losses by month under protocol {protocol!r}; score something first"
        + (f", or set TIDEMARK_PROTOCOL to one that has losses: {others}" if others else "")
    )


def _sections(
    monthly: pl.DataFrame, gaps: list[list[GapRow]], window: tuple[Month, Month]
) -> dict[str, list[Panel]]:
    """The charts by source, models in the order of the table."""
    sections: dict[str, list[Panel]] = {}
    figures: dict[tuple[str, str], dict[Month, float]] = {}
    for source, model, month, bits in monthly.select(
        "source", "model", "month", "bits_per_byte"
    ).iter_rows():
        if bits is not None:
            figures.setdefault((source, model), {})[Month.of(month)] = bits
    for source in sorted({source for source, _ in figures}):
        for group in gaps:
            overall = group[0]
            if (source, overall.model) in figures:
                cutoff = Month(overall.split) if overall.provenance and overall.split else None
                svg = charts.monthly_chart(figures[source, overall.model], window, cutoff)
                # Drawn without any text from outside; all else on the page is escaped.
                panel = Panel(overall.model, Markup(svg))  # noqa: S704
                sections.setdefault(source, []).append(panel)
    return sections
