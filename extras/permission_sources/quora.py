"""Quora: questions and answers, read from pages that a user saved; never crawled.

The site has no public interface, and no page of it has been recorded here. So a crawl is refused
with or without a permission. ``tidemark import html`` reads saved pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import AccessRefused
from core.month import Month
from crawlers.contract import CrawlContext, Item, SourceInfo

INFO = SourceInfo(
    name="quora",
    title="Quora: questions and answers",
    licence="LicenseRef-author",
    language="en",
    category="questions",
    sites={"quora": "https://www.quora.com"},
    permission=(
        "Quora's terms forbid scraping, and it has no public interface; "
        "stackexchange is open and stands in for it; `tidemark import html` reads pages that you "
        "saved"
    ),
)


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Refuse: the site offers no list of its texts."""
    raise AccessRefused(f"{INFO.name} {month} cannot be crawled: {INFO.permission}")
