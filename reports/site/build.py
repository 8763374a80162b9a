"""Write the site of the published snapshot under the data root."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Protocol, cast

import jinja2
from markupsafe import Markup

from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from reports.site import charts, pages
from reports.site.context import Facts, Site
from reports.site.figure import Figure, Page, cell
from reports.site.files import addresses, figure_files
from warehouse.read.query import local_snapshot, opened

ROOT = "report"
INDEX = f"{ROOT}/index.html"


class PageModule(Protocol):
    """A module of ``pages/``; ``ORDER`` is its place in the navigation, if it has an entry."""

    ORDER: int
    NAVIGATION: tuple[str, str] | None  # address and name of the entry

    def make_pages(self, site: Site) -> Iterator[Page]:
        """Yield the pages of one kind. A page without figures says what is missing and why."""


def write_site(settings: Settings) -> str:
    """Write all pages of the configured protocol and their figures; return the first page's URL.

    Raises:
        UsageError: there is no snapshot.
    """
    store = Store(settings.home)
    with local_snapshot(settings) as path, opened(path) as connection:
        facts = Facts(version("tidemark"), sha256_of_file(path), "", "")
        site = Site(connection, settings.protocol, facts)
        for name, content in _site_files(site):
            store.write_bytes(f"{ROOT}/{name}", content)
    return store.url(INDEX)


def _site_files(site: Site) -> Iterator[tuple[str, bytes]]:
    yield from _assets()
    made = [page for module in page_modules() for page in module.make_pages(site)]
    listed = []
    for page in made:
        yield from _page_files(site, page)
        listed += [_listed(page, figure) for figure in page.figures]
    yield "figures.json", (json.dumps(listed, indent=1) + "\n").encode()


def page_modules() -> list[PageModule]:
    """Return the modules of ``pages/`` in the order of the navigation."""
    names = [module.name for module in pkgutil.iter_modules(pages.__path__)]
    modules = [importlib.import_module(f"{pages.__name__}.{name}") for name in names]
    return sorted(cast("list[PageModule]", modules), key=lambda module: module.ORDER)


@cache
def navigation() -> list[tuple[str, str]]:
    """Return address and name of each entry of the navigation."""
    return [module.NAVIGATION for module in page_modules() if module.NAVIGATION]


def _page_files(site: Site, page: Page) -> Iterator[tuple[str, bytes]]:
    specs = {
        figure.name: charts.with_data(figure.chart, figure.rows)
        for figure in page.figures
        if figure.chart is not None
    }
    # Markup disables escaping: Vega escapes the texts of a chart, which are untrusted.
    svgs = {name: Markup(charts.to_svg(spec)) for name, spec in specs.items()}  # noqa: S704
    html = _environment().get_template(page.template).render(
        page=page, site=site, svgs=svgs, navigation=navigation(), root="../" * page.path.count("/"),
        figures={figure.name: figure for figure in page.figures}, **page.fields,
    )  # fmt: skip
    yield page.path, html.encode()
    for figure in page.figures:
        yield from figure_files(figure, specs.get(figure.name), site.facts)


def _listed(page: Page, figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "title": figure.title,
        "page": f"{page.path}#{figure.name}",
        "files": [f"figures/{figure.name}.{kind}" for kind in addresses(figure)],
    }


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports.site", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"cell": cell, "addresses": addresses}
    return environment


def _assets() -> Iterator[tuple[str, bytes]]:
    for file in files("reports.site").joinpath("assets").iterdir():
        yield f"assets/{file.name}", file.read_bytes()
