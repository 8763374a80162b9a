"""Write the site of the published snapshot under the data root."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Protocol, cast

import jinja2
from markupsafe import Markup, escape

from core.errors import UsageError, did_you_mean
from core.plugins import import_parts, list_folders
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from core.version import code_version
from reports.site import charts, citation, history, pages, simulated
from reports.site.context import Facts, Site, months_of
from reports.site.figure import Figure, Page, cell, marks_of
from reports.site.files import addresses, data_files, drawing_files
from reports.site.pictures import cards
from warehouse.database.schema import SNAPSHOT
from warehouse.read.query import local_snapshot, opened
from warehouse.read.released import list_releases

ROOT = "report"
INDEX = f"{ROOT}/index.html"
SMALL_DATABASE = f"{ROOT}/site.duckdb"  # `tidemark report --with-sql` writes it
NUM_WRITERS = 8
MAX_FOOT = 130  # characters below a picture
# The five entries of the menu; the other entries are listed at the end of each page.
MENU = ("index.html", "compare.html", "forecasts.html", "puzzles.html", "data.html")
MEMORY = "1GB"  # DuckDB writes larger intermediate results to disk
# It groups millions of replicates before a join that keeps most of them: three times as slow.
DISABLED = "partial_aggregate_pushdown"


class PageModule(Protocol):
    """A module of ``pages/``; ``ORDER`` is its place in the navigation, if it has an entry.

    The module ``pages`` of an extra also has ``link_of_source(site, source)``. It returns a
    ``Link`` from the page of a source to a page of the extra, or None.
    """

    ORDER: int
    NAVIGATION: tuple[str, str] | None  # address and name of the entry
    PATHS: Sequence[str]  # patterns of the addresses of its pages

    def make_pages(self, site: Site) -> Iterator[Page]:
        """Yield the pages of one kind. A page without figures says what is missing and why."""


def write_site(settings: Settings, only: str | None = None) -> str:
    """Write the pages of the configured protocol and their figures; return the first page's URL.

    ``only`` is the name of a page, such as ``compare`` or ``models/pythia-70m``; then its files
    alone are written, and its URL is returned. Indexes, feeds and former months stay as they are.

    Files of former publications that are not written again stay, so that their addresses go on to
    work. If this snapshot has a later month, they are also kept under ``months/``.

    Raises:
        UsageError: there is no snapshot, or it lacks a view; publish it again. No such page.
    """
    store = Store(settings.home)
    with opened_site(settings) as site:
        if only is not None:
            site.changes = history.read_changes(store, ROOT)
            page = find_page(site, only)
            _write_all(store, _files_of_page(site, page))
            return store.url(f"{ROOT}/{page.path}")
        former = history.read_state(store, ROOT)
        current = _publication(site, history.held_months(store))
        known = history.read_changes(store, ROOT)
        if current:
            history.keep_former(store, ROOT, former, current.month)
            known = [*history.differences(former, current, _now()), *known]
        site.changes = known[: history.MAX_CHANGES]
        site.former_months = sorted(
            (path.split("/")[2] for path in store.list(f"{ROOT}/months/*/index.html")), reverse=True
        )
        address = site.facts.address
        title = history.feed_title(is_simulated=bool(site.simulated))
        atom = _filled("changes.atom.j2", changes=site.changes, address=address, title=title)
        feed = history.json_feed(site.changes, address, title)
        feeds = [(history.FEED, feed), (history.ATOM, atom)]
        _write_all(store, chain(_site_files(site), feeds))
        if current:
            _write_all(store, [(history.STATE, history.state_file(current))])
    return store.url(INDEX)


@contextlib.contextmanager
def opened_site(settings: Settings) -> Iterator[Site]:
    """Yield the published figures of a data root under its protocol."""
    # One thread computes sums: those of several differ in the last digit from build to build.
    config = {"memory_limit": MEMORY, "disabled_optimizers": DISABLED}
    with local_snapshot(settings) as path, opened(path, threads=1, **config) as connection:
        store = Store(settings.home)
        facts = Facts(
            code_version(), sha256_of_file(path), newest_release(store), _now(),
            _public_address(settings.report_url), _is_current(store, SMALL_DATABASE),
            settings.report_author or "", settings.report_code or "",
        )  # fmt: skip
        yield Site(connection, settings.protocol, facts, store=store)


def _public_address(url: str | None) -> str:
    """Return the address of the site's root, with a slash at its end; empty if it is not known."""
    return f"{url.removesuffix('index.html').rstrip('/')}/" if url else ""


def find_page(site: Site, name: str) -> Page:
    """Return a page by its address, with or without ``.html``; raise UsageError without one."""
    path = f"{name.removesuffix('.html')}.html"
    patterns = [pattern for module in page_modules() for pattern in module.PATHS]
    names = [pattern.removesuffix(".html") for pattern in patterns]
    for module in page_modules():
        if any(fnmatchcase(path, pattern) for pattern in module.PATHS):
            for page in module.make_pages(site):
                if page.path == path:
                    return page
                names.append(page.path.removesuffix(".html"))
    meant = did_you_mean(path.removesuffix(".html"), names)
    known = ", ".join(patterns)
    raise UsageError(f"no page {name!r}; {meant}the pages are {known}, as in their addresses")


def _write_all(store: Store, contents: Iterable[tuple[str, bytes]]) -> None:
    """Write files in several threads, since each waits for the disk or the object store."""
    with ThreadPoolExecutor(NUM_WRITERS) as pool:
        pending = [
            pool.submit(store.write_bytes, f"{ROOT}/{name}", content) for name, content in contents
        ]
        for written in pending:
            written.result()


def page_of(index: str, path: str) -> str:
    """Return the address of a page, from that of the first page."""
    return index.removesuffix("index.html") + path


def _publication(site: Site, held: Sequence[str]) -> history.Publication | None:
    """Return the facts of this publication; None if a view fails, since nothing has changed so."""
    month = str(site.window[1]) if site.window else ""
    try:
        board = site.query("board", protocol=site.protocol)[1].to_dicts()
        counts = site.query("changes_documents", protocol=site.protocol)[1]
        alarms = site.query("changes_alarms", protocol=site.protocol)[1]["alarm"].to_list()
    except UsageError as error:
        site.note(f"changes: {error}")
        return None
    return history.Publication.of(month, board, dict(counts.iter_rows()), alarms, held)


def find_current_site(settings: Settings) -> str | None:
    """Return the address of the site's first page; None if the snapshot is newer, or missing."""
    store = Store(settings.home)
    return store.url(INDEX) if _is_current(store, f"{ROOT}/{history.STATE}") else None


def _is_current(store: Store, path: str) -> bool:
    """Return True if a file is there, and newer than the snapshot."""
    stamps = store.list_stamped(SNAPSHOT) | store.list_stamped(path)
    return len(stamps) == 2 and stamps[path].modified_at > stamps[SNAPSHOT].modified_at


def newest_release(store: Store) -> str:
    """Return the name of the newest complete release of the data root; empty if there is none."""
    complete = list_releases(store)
    return complete[-1] if complete else ""


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _site_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield all files of the site; charts are drawn while the pages are made."""
    with charts.Drawer() as drawer:
        all_pages: list[Page] = []
        pages_as_drawn: list[Page] = []
        for module in reversed(page_modules()):  # the last ones have most charts to draw
            pages_of_module = list(module.make_pages(site))
            all_pages = pages_of_module + all_pages
            pages_as_drawn += pages_of_module
            _draw(site, pages_of_module, drawer)
            yield from _data_files(site, pages_of_module)
        listed = []
        for page in all_pages:
            for figure in page.figures:
                listed.append(_listed(page, figure))
                if figure.chart and not site.lead_card:
                    site.lead_card = figure.name
        yield from _page_files(site, pages_as_drawn, drawer)
    yield "figures.json", (json.dumps(listed, indent=1) + "\n").encode()
    questions = site.readable("data_questions").to_dicts()
    yield "llms.txt", _filled("llms.txt.j2", listed=listed, site=site, questions=questions)


def _files_of_page(site: Site, page: Page) -> Iterator[tuple[str, bytes]]:
    with charts.Drawer() as drawer:
        _draw(site, [page], drawer)
        yield from _data_files(site, [page])
        yield from _page_files(site, [page], drawer)


def _draw(site: Site, made: Sequence[Page], drawer: charts.Drawer) -> None:
    for page in made:
        for figure in page.figures:
            if figure.chart is not None:
                drawer.add(figure.name, chart_of(site, figure))


def _data_files(site: Site, made: Sequence[Page]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the rows of all figures, which are written while others are made."""
    for page in made:
        for figure in page.figures:
            yield from data_files(figure, site)


def _filled(template: str, **values: object) -> bytes:
    return f"{environment().get_template(template).render(**values).rstrip()}\n".encode()


def _page_files(
    site: Site, made: Sequence[Page], drawer: charts.Drawer
) -> Iterator[tuple[str, bytes]]:
    """Yield assets, and the pictures and the HTML of pages, whose charts may still be drawn."""
    yield from _assets()
    yield citation.BIBTEX, f"{citation.site_bibtex(site)}\n".encode()
    yield citation.CFF, citation.cff(site).encode()
    for page in made:
        names = [figure.name for figure in page.figures if figure.chart is not None]
        drawings = {name: drawer.drawing(name) for name in names}
        for name, drawn in drawings.items():
            yield from drawing_files(name, drawn)
        yield from page.files.items()
        yield from _row_files(site, page)
        yield page.path, _render(site, page, drawings).encode()


def chart_of(site: Site, figure: Figure) -> dict[str, object]:
    """Return the specification of a figure's chart, with its rows and its watermark."""
    frame = {"title": figure.title, "note": figure.about, "foot": foot_of(site, figure)}
    spec = charts.with_data(figure.chart or {}, figure.drawn)
    meta = {charts.MARK: simulated.watermark(figure, site), charts.FRAME: frame}
    return {**spec, "usermeta": {**spec.get("usermeta", {}), **meta}}


def foot_of(site: Site, figure: Figure) -> str:
    """Return where the numbers of a figure are from, as the line below its picture."""
    measured = {**site.measured, **figure.measured}
    window = measured.get("window")
    parts = [
        "SIMULATED text" if simulated.is_simulated(figure, site) else "",
        str(measured.get("reference", "")),
        "{} to before {}".format(*window) if isinstance(window, list) else "",
        site.facts.address or f"tidemark {site.facts.commit}",
    ]
    return " · ".join(filter(None, parts))[:MAX_FOOT]


def page_modules() -> list[PageModule]:
    """Return the modules of ``pages/`` and of extras in the order of the navigation."""
    names = [module.name for module in pkgutil.iter_modules(pages.__path__)]
    modules = [importlib.import_module(f"{pages.__name__}.{name}") for name in names]
    modules.extend(import_parts("pages"))
    return sorted(cast("list[PageModule]", modules), key=lambda module: module.ORDER)


@cache
def navigation() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return address and name of each entry of the menu, and of the other kinds of pages."""
    entries = [module.NAVIGATION for module in page_modules() if module.NAVIGATION]
    return [each for each in entries if each[0] in MENU], [
        each for each in entries if each[0] not in MENU
    ]


def _render(site: Site, page: Page, drawings: Mapping[str, charts.Drawing]) -> str:
    """Return the HTML of a page, with its charts as SVG."""
    names = [figure.name for figure in page.figures if figure.name in drawings]
    # Markup disables escaping: Vega escapes the texts of a chart.
    svgs = {name: Markup(drawings[name].page) for name in names}  # noqa: S704
    template = environment().get_template(page.template)
    menu, others = navigation()
    card = {"name": names[0], "size": cards.size_of(drawings[names[0]].png)} if names else None
    return template.render(
        page=page, site=site, svgs=svgs, root=_root(page), menu=menu, others=others, card=card,
        is_simulated=simulated.is_simulated_page(page, site), made_of=_made_of(site, page),
        figures={figure.name: figure for figure in page.figures}, **page.fields,
    )  # fmt: skip


_UNKNOWN = dict.fromkeys(("reference", "protocol", "num_documents", "num_questions"))


def _made_of(site: Site, page: Page) -> Mapping[str, object]:
    """Return what the figures of a page are from, for its end."""
    # Other figures than of losses measured here state themselves what they are from.
    others = [figure.measured for figure in page.figures]
    if not others or not all(others):
        months = " to ".join(dict.fromkeys(map(str, site.window))) if site.window else ""
        return {**_UNKNOWN, **site.measured, "months": months}
    dated = [measured for measured in others if measured.get("window")]
    found = dated[0] if dated else others[0]
    window = cast("Sequence[str] | None", found.get("window"))
    return {**_UNKNOWN, **found, "months": "{} to before {}".format(*window) if window else ""}


def _row_files(site: Site, page: Page) -> Iterator[tuple[str, bytes]]:
    """Yield a script with the rows of each table that are too many for the page."""
    template = environment().get_template("figure.html.j2")
    for figure in page.figures:
        if figure.columns and figure.rows.height > figure.max_rows:
            macros: Any = template.make_module({"root": _root(page), "site": site})
            marks = marks_of(figure.columns, figure.rows)
            rows = str(macros.table_rows(figure, figure.rows.slice(figure.max_rows), marks))
            name = json.dumps(f"rows:{figure.name}")
            text = json.dumps(rows)
            yield f"figures/{figure.name}.rows.js", f"tidemark[{name}]({text});\n".encode()


def _root(page: Page) -> str:
    return "../" * page.path.count("/")


def _listed(page: Page, figure: Figure) -> dict[str, object]:
    """Return the entry of a figure in ``figures.json``."""
    return {
        "name": figure.name,
        "title": figure.title,
        "page": f"{page.path}#{figure.name}",
        "files": [f"figures/{figure.name}.{kind}" for kind in addresses(figure)],
    }


@cache
def environment() -> jinja2.Environment:
    """Return the templates of the site; they escape all values."""
    ours = jinja2.PackageLoader("reports.site", "templates")
    of_extras = jinja2.FileSystemLoader(list_folders("templates"))
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([ours, of_extras]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "cell": cell, "marks_of": marks_of, "addresses": addresses, "months_of": months_of,
    }  # fmt: skip
    environment.filters |= {"css_text": css_text, "with_code": with_code}
    return environment


def with_code(text: str) -> str:
    """Return a description as HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704


def css_text(text: str) -> str:
    """Return a text as a string of a style sheet, in which no character has a special meaning."""
    # JSON's escapes are not those of style sheets, where ``\u00d7`` would be shown as it is.
    plain = re.sub(r"[^A-Za-z0-9 ,.()%]", lambda found: f"\\{ord(found[0]):x} ", text)
    return Markup('"{}"').format(Markup(plain))  # noqa: S704


def _assets() -> Iterator[tuple[str, bytes]]:
    for folder in (files("reports.site").joinpath("assets"), *list_folders("assets")):
        for file in folder.iterdir():
            yield f"assets/{file.name}", file.read_bytes()
