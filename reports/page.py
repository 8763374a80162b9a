"""The report: one self-contained HTML page, made from the published snapshot."""

from __future__ import annotations

import datetime as dt

import jinja2
import polars as pl
from markupsafe import Markup

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from reports.charts import monthly_chart
from reports.summary import gap_rows
from warehouse.query import query

PAGE = "report/index.html"


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
    """Return the page as HTML; names from outside are escaped."""
    monthly = pl.DataFrame(
        pl.from_arrow(
            query(
                settings,
                "from monthly_loss where protocol = ? and bits_per_byte is not null "
                "order by model, source, month",
                [protocol],
            )
        )
    )
    if monthly.is_empty():
        raise UsageError(f"no losses by month under protocol {protocol!r}; score something first")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    months = monthly["month"].unique().sort().to_list()
    # One model's view of the corpus: all models score the same documents.
    widest = monthly.group_by("model").agg(pl.sum("num_documents", "num_bytes")).max()
    return environment.get_template("page.html.j2").render(
        protocol=protocol,
        num_documents=f"{widest['num_documents'][0]:,}",
        num_bytes=f"{widest['num_bytes'][0]:,}",
        first_month=Month.of(months[0]),
        last_month=Month.of(months[-1]),
        gaps=gap_rows(settings, protocol),
        charts=_charts(monthly, _split_dates(settings, protocol)),
    )


def _split_dates(settings: Settings, protocol: str) -> dict[str, dt.date]:
    rows = query(
        settings,
        "select distinct model, split_date from train_test_gap where protocol = ?",
        [protocol],
    ).to_pylist()
    return {row["model"]: row["split_date"] for row in rows}


def _charts(monthly: pl.DataFrame, splits: dict[str, dt.date]) -> list[Markup]:
    models = monthly["model"].unique().sort().to_list()
    charts = []
    for (source,), part in monthly.group_by("source", maintain_order=True):
        here = set(part["model"])
        cutoffs = {model: split for model, split in splits.items() if model in here}
        # The chart library escapes text; its SVG is the only markup the page takes as it is.
        svg = monthly_chart(part, cutoffs, models, title=str(source))
        charts.append(Markup(svg))  # noqa: S704
    return charts
