"""News of Yahoo Finance, with permission only: the pages that its RSS feed lists.

The feed lists recent news only. Plain clients are often sent to a page that asks for consent, on
another host; this is counted as ``http_403``, and not worked around. Never checked against the
site.
"""

from __future__ import annotations

from crawlers.contract import SourceInfo
from extras.permission_sources.feeds import FeedSite

INFO = SourceInfo(
    name="yahoo_finance",
    title="Yahoo Finance: news",
    licence="LicenseRef-Yahoo",
    language="en",
    category="finance",
    sites={"yahoo_finance": "https://finance.yahoo.com"},
    request_interval_s=5.0,
    permission=(
        "the news are syndicated, all rights are reserved, and Yahoo's terms forbid automated "
        "access; edgar is open and stands in for it"
    ),
)
ELEMENTS = "//div[contains(@class, 'caas-body')] | //div[@data-testid='article-body']"
fetch_month = FeedSite(
    INFO, "yahoo_finance", [("yahoo_finance", "/news/rssindex")], ELEMENTS
).fetch_month
