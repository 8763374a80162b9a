"""Changes since former publications, newest first; the feeds have the same entries."""

from __future__ import annotations

from collections.abc import Iterator

from reports.site.context import Site
from reports.site.figure import Page

ORDER = 1
NAVIGATION = ("changes.html", "What changed")
PATHS = (NAVIGATION[0],)
MAX_SHOWN = 100


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of changes."""
    by_month: dict[str, list[object]] = {}
    for change in site.changes[:MAX_SHOWN]:
        by_month.setdefault(change.month, []).append(change)
    fields = {"by_month": by_month, "former_months": site.former_months}
    yield Page("changes.html", "What changed", "changes.html.j2", fields=fields)
