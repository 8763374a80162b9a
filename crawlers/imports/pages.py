"""Import of web pages that a user saved: each month of their dates becomes a sealed partition.

Title, date and text are those that a page states (``text.pages``). Pages without a date, and pages
of a month that is not over, are drops in the manifest of the first month.
"""

from __future__ import annotations

from crawlers.imports.options import UNKNOWN, ImportOptions
from crawlers.registry import list_all_sources, load_crawler
from crawlers.text.pages import ARTICLE


def options_for_pages(source: str, replace: bool = False) -> ImportOptions:
    """Return the options for pages of a site, by what its crawler states, if there is one."""
    licence, elements = UNKNOWN, ARTICLE
    if source in list_all_sources():
        crawler = load_crawler(source)
        licence, elements = crawler.INFO.licence, getattr(crawler, "ELEMENTS", ARTICLE)
    return ImportOptions(
        format="html", clean=True, sift=False, licence=licence, elements=elements, replace=replace
    )
