"""The registry of cutoffs: stated against measured, over all sources and by source."""

from __future__ import annotations

from collections.abc import Iterator

from reports.site.context import Site, some
from reports.site.cutoff_findings import registry_finding
from reports.site.figure import Column, Figure, Page

ORDER = 8
NAVIGATION = ("cutoffs.html", "Cutoffs")
PATHS = (NAVIGATION[0],)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of cutoffs."""
    yield Page("cutoffs.html", "Cutoffs", "cutoffs.html.j2", site.make(_registry))


def _registry(site: Site) -> Figure:
    """Return stated and measured cutoffs of all models, over all sources and by source."""
    sql, rows = some(site.query("cutoffs", protocol=site.protocol))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("sources", "sources", is_facet=True),
        Column("protocol", "protocol", is_optional=True),
        Column("role", "role", is_optional=True),
        Column("stated_cutoff", "stated", "%Y-%m", why="stated_reason"),
        Column("cutoff_provenance", "by", why="stated_reason"),
        Column("told", "measured, or why not"),
        Column("two_cutoffs", "text of two times, up to", is_optional=True),
        Column("is_contradicted", "outside", why="outside_reason"),
        Column("detectable_change", "detectable step", ".4f", is_optional=True, why="reason"),
        Column("basis", "against", is_optional=True),
        Column("reason", "note", is_optional=True),
    ]
    about = (
        "Measured: the last month with training text by the losses, a 95 % interval. Outside: the "
        "interval leaves out the stated month; of true cutoffs it leaves out 5 % by chance. A "
        "model's sources may end in different months. Text of two times: a second rise that no "
        "single change explains."
    )
    return Figure("cutoffs", registry_finding(rows.to_dicts()), about, sql, rows, columns)
