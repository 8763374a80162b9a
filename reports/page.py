"""Self-contained HTML pages rendered from the published snapshot, such as the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from reports import charts
from reports.summary import GapRow, by_model, gap_rows
from warehouse.read.query import query


def render_template(name: str, **fields: object) -> str:
    """Render a template of this folder as HTML; raise an error if a field is missing."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name).render(**fields)


def write_page(settings: Settings, path: str, html: str) -> str:
    """Write a page under the data root and return its URL or path."""
    store = Store(settings.home)
    store.write_bytes(path, html.encode())
    return store.url(path)


@dataclass(frozen=True)
class AnswersPage:
    """A page about answers of models; ``fields`` converts rows to the values of the template."""

    path: str  # path of the page, relative to the data root
    template: str
    sql: str
    missing: str  # error message if there are no answers
    fields: Callable[[Settings, list[dict[str, Any]]], dict[str, object]]

    def render(self, settings: Settings) -> str:
        """Return the page as HTML; untrusted names are escaped.

        Raises:
            UsageError: there is no snapshot, or the snapshot has no answers.
        """
        rows = query(settings, self.sql).to_pylist()
        if not rows:
            raise UsageError(self.missing)
        return render_template(self.template, **self.fields(settings, rows))

    def write(self, settings: Settings) -> str:
        """Write the page under the data root; return its URL or path. See ``render`` for errors."""
        return write_page(settings, self.path, self.render(settings))


def interval(low: float | None, high: float | None, form: str, factor: float = 1) -> str:
    """Return an interval as text, or an empty text if an end is missing."""
    if low is None or high is None:
        return ""
    return f"{factor * low:{form}} to {factor * high:{form}}"


def p_value(value: float) -> str:
    """Return a p-value as text with three decimals, such as ``0.012``."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


PAGE = "report/index.html"


@dataclass(frozen=True)
class Panel:
    """One model's chart on one source."""

    model: str
    chart: Markup


def write_report(settings: Settings) -> str:
    """Write the report for the configured protocol; return its URL or path. See ``render``."""
    return write_page(settings, PAGE, render(settings, settings.protocol))


def render(settings: Settings, protocol: str) -> str:
    """Return the report as HTML; untrusted names are escaped.

    Raises:
        UsageError: there is no snapshot, or the snapshot has no months under this protocol.
    """
    monthly = _monthly(settings, protocol)
    gaps = by_model(gap_rows(settings, protocol))
    months = [Month.of(day) for day in monthly["month"].unique()]
    window = min(months), max(months)
    # All models score the same documents, so the model with the most cells has the largest counts.
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
        sections=_sections(monthly, gaps, window, _regimes(settings)),
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


def _regimes(settings: Settings) -> dict[str, list[Month]]:
    """Return the first months of each source's regimes, without the first one."""
    starts: dict[str, list[Month]] = {}
    sql = "select source, month from source_months where is_regime_start order by all"
    for row in query(settings, sql).to_pylist():
        starts.setdefault(row["source"], []).append(Month.of(row["month"]))
    return starts


def _sections(
    monthly: pl.DataFrame,
    gaps: list[list[GapRow]],
    window: tuple[Month, Month],
    regimes: Mapping[str, list[Month]],
) -> dict[str, list[Panel]]:
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
                curve = figures[source, overall.model]
                svg = charts.monthly_chart(curve, window, cutoff, regimes.get(source, ()))
                # Markup disables escaping, which is safe: the chart contains no untrusted text.
                panel = Panel(overall.model, Markup(svg))  # noqa: S704
                sections.setdefault(source, []).append(panel)
    return sections
