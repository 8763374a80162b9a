"""The data: what exists and what is missing, every public view, and downloads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import polars as pl

from core.progress import counted
from core.storage.store import Store
from reports.site.charts import PALETTE
from reports.site.context import Site, some
from reports.site.figure import Column, Figure, Page, Row
from reports.site.findings import cells_finding, collected_finding, left_out_finding
from reports.site.history import held_months
from reports.site.pages.source import COLLECTED, scored_of

ORDER = 6
NAVIGATION = ("data.html", "Data")
PATHS = ("data.html", "views.html", "views-papers.html")
MAX_MONTHS = 36  # more months are drawn by year
MIN_SHARING = 3  # views with a column that is described once


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of data, and that of all views with their columns."""
    figures = site.make(_months, _cells, _coverage, _unmeasured, _collected)
    store = site.store
    fields = {
        "releases": releases(store) if store else [],
        "held": _held(site),
        "questions": site.readable("data_questions").to_dicts(),
        "page_of_view": page_of_view,
    }
    yield Page("data.html", "Data", "data.html.j2", figures, fields)
    yield _views_page(site, PATHS[1], "Views", site.make(_views))
    if _has_views_of_papers(site):
        yield _views_page(site, PATHS[2], "Views for papers", [])


def _has_views_of_papers(site: Site) -> bool:
    return any(map(_is_of_papers, site.query("data_views")[1]["name"]))


def _is_of_papers(view: str) -> bool:
    return view.startswith("papers.")


def _views_page(site: Site, path: str, title: str, figures: Sequence[Figure]) -> Page:
    """Return a page with the columns of its views, and their SQL in files."""
    texts = dict(site.query("data_views")[1].select("name", "sql").iter_rows())
    names = [name for name in texts if page_of_view(name) == path]
    described = site.query("data_columns")[1].select("name", "column_name", "meaning")
    described = described.filter(pl.col("name").is_in(names))
    shared = shared_columns(described)
    columns: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    for name, column, meaning in described.iter_rows():
        if shared.get(column) != meaning:
            columns[name].append((column, meaning))
    files = {f"views/{name}.sql": f"{texts[name]}\n".encode() for name in names}
    fields = {"columns": columns, "shared": shared, "has_others": _has_views_of_papers(site)}
    return Page(path, title, "views.html.j2", figures, fields, files)


def page_of_view(name: str) -> str:
    """Return the page with the columns of a public view, table or macro."""
    return PATHS[2] if _is_of_papers(name) else PATHS[1]


def shared_columns(described: pl.DataFrame) -> dict[str, str]:
    """Return the columns that at least MIN_SHARING views have, with their commonest meaning."""
    # The page states them once: such columns would make up a sixth of it.
    common = described.group_by("column_name", "meaning").agg(pl.len().alias("num_views"))
    common = common.filter(pl.col("num_views") >= MIN_SHARING)
    rarest_first = common.sort("num_views", "column_name", "meaning")
    return dict(rarest_first.select("column_name", "meaning").iter_rows())


def _held(site: Site) -> list[str]:
    return held_months(site.store) if site.store else []


def releases(store: Store) -> list[tuple[str, str]]:
    """Return month and SHA-256 of the database of each complete release, newest first."""
    found = []
    for path in reversed(store.list("releases/*/SHA256SUMS")):
        lines = [line.split() for line in store.read_bytes(path).decode().splitlines()]
        digests = {name: digest for digest, name in lines}
        found.append((path.split("/")[1], digests["warehouse.duckdb"]))
    return found


def _months(site: Site) -> Figure:
    """Return for each month of a source the share of models with losses, as a chart."""
    sql, rows = some(site.query("data_months", protocol=site.protocol))
    by_year = rows["month"].n_unique() > MAX_MONTHS
    x = {
        "field": "month", "type": "ordinal", "title": None,
        "timeUnit": "utcyear" if by_year else "utcyearmonth",
        "axis": {"format": "%Y" if by_year else "%Y-%m", "labelAngle": 0,
                 "labelOverlap": "greedy", "labelSeparation": 20},
        "scale": {"paddingInner": 0.06},
    }  # fmt: skip
    chart = {
        "width": 640, "height": {"step": 18},
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "y": {"field": "source", "type": "nominal", "title": None,
                  "axis": {"orient": "right"}},
            "fillOpacity": {"field": "share", "aggregate": "mean", "type": "quantitative",
                        "scale": {"domain": [0, 1], "range": [0.15, 1]}, "legend": None},
            "color": {"value": PALETTE[0]},
        },
    }  # fmt: skip
    span = "year" if by_year else "month"
    about = f"Dark: all models were scored on the {span}. A gap: no text, or no model."
    whole = int((rows["share"] == 1).sum())
    num_sources = rows["source"].n_unique()
    title = f"{whole:,} of {rows.height:,} months of sources have losses of every model"
    if whole == rows.height:
        of_sources = counted(num_sources, "source")
        title = f"Every month of {of_sources} has losses of every model: {rows.height:,} in all"
    return Figure("data-months", title, about, sql, rows, chart=chart)


def _cells(site: Site) -> Figure:
    """Return the months of sources without usable losses, by their state."""
    held = [name.split("/") for name in _held(site)]
    days = [{"source": source, "month": f"{month}-01"} for source, month in held if len(month) == 7]
    sql, rows = some(site.query("data_cells", protocol=site.protocol, held=json.dumps(days)))
    columns = [
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("state", "losses"),
        Column("first_month", "from", "%Y-%m"),
        Column("last_month", "to", "%Y-%m"),
        Column("num_months", "months", ",d"),
        Column("num_models", "models", ",d"),
        Column("which", "which"),
    ]
    about = (
        "A cell is a month of a source under a model. Without a loss: scored, but no loss counts. "
        "Stale: scored on an older version of the text. Held back: the newest crawl failed a check."
    )
    return Figure("data-cells", cells_finding(rows.to_dicts()), about, sql, rows, columns)


def _coverage(site: Site) -> Figure:
    """Return from when to when each model has losses, and what is missing in between."""
    sql, rows = some(site.query("data_coverage", protocol=site.protocol))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("num_sources", "sources", "d"),
        Column("first_month", "from", "%Y-%m"),
        Column("last_month", "to", "%Y-%m"),
        Column("num_months", "months", ",d"),
        Column("num_missing_months", "missing", ",d"),
        Column("num_documents", "documents", ",d"),
        Column("num_unmeasured", "chunks without a loss", ",d"),
        Column("num_outdated_cells", "outdated", ",d"),
        Column("num_suspect_cells", "suspect", ",d"),
    ]
    missing = int(rows["num_missing_months"].sum() or 0)
    title = (
        f"{missing:,} months between the first and the last of a model have no losses"
        if missing
        else "No model skips a month between its first and its last"
    )
    return Figure("data-coverage", title, "Summed over sources.", sql, rows, columns)


def _unmeasured(site: Site) -> Figure:
    """Return the models that views leave out, with the reasons."""
    sql, rows = some(site.query("data_unmeasured", protocol=site.protocol))
    columns = [
        Column("left_out_of", "view"),
        Column("reason", "reason"),
        Column("num_models", "models", "d"),
        Column("which", "which"),
    ]
    return Figure("data-left-out", left_out_finding(rows.to_dicts()), "", sql, rows, columns)


def _collected(site: Site) -> Figure:
    """Return what became of the items that crawls found, by source."""
    sql, rows = some(site.query("collected", outcomes=site.outcomes))
    source = Column("source", "source", link=lambda row: site.source_page(row["source"]))
    title = collected_finding(rows.to_dicts())
    about = "Items that crawls of the sealed months found. Each reason is a rule of its crawler. "
    about += scored_of(site)
    return Figure("data-collected", title, about, sql, rows, [source, *COLLECTED])


def _link_of_view(row: Row) -> str:
    return f"{page_of_view(row['name'])}#view-{row['name']}"


def _views(site: Site) -> Figure:
    """Return the public views, tables and macros."""
    sql, rows = site.query("data_views")
    columns = [
        Column("name", "view, table or macro", link=_link_of_view),
        Column("kind", "kind"),
        Column("comment", "content"),
    ]
    title = f"{rows.height} public views, tables and macros"
    return Figure("data-views", title, "Any DuckDB client opens the file.", sql, rows, columns)
