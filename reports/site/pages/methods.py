"""Methods on one screen, and how sure the figures are."""

from __future__ import annotations

from collections.abc import Iterator

from reports.site.context import Site
from reports.site.figure import Column, Figure, Page

ORDER, NAVIGATION = 7, ("methods.html", "Methods")
PATHS = (NAVIGATION[0],)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of methods."""
    figures = site.make(_canaries, _resolution)
    protocols = site.query("methods_protocols")[1].to_dicts()
    yield Page("methods.html", "Methods", "methods.html.j2", figures, {"protocols": protocols})


def _canaries(site: Site) -> Figure | None:
    sql, rows = site.query("methods_canaries")
    if rows.is_empty():
        return None
    columns = [
        Column("device", "device"),
        Column("num_runs", "runs", ",d"),
        Column("num_drifted", "with a drift", ",d"),
        Column("first_run", "first", "%Y-%m-%d"),
        Column("last_run", "last", "%Y-%m-%d"),
    ]
    drifted = int(rows["num_drifted"].sum())
    title = f"{drifted} canary runs drifted" if drifted else "No canary run drifted"
    about = "A small model of known losses is scored before each run, on the same machine."
    return Figure("methods-canaries", title, about, sql, rows, columns)


def _resolution(site: Site) -> Figure | None:
    sql, rows = site.query("methods_resolution", protocol=site.protocol)
    if rows.is_empty():
        return None
    columns = [
        Column("source", "source"),
        Column("detectable_gap", "smallest gap that is found", ".4f", unit="bits per byte",
               about="Median over models of the gap that would be found in 80 of 100 trials."),
        Column("num_documents", "documents a month", ",.0f"),
        Column("num_models", "models", "d"),
    ]  # fmt: skip
    about = "Smaller gaps than these are not seen with this much text."
    return Figure("methods-resolution", "How small a gap can be told", about, sql, rows, columns)
