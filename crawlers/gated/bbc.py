"""BBC News, with the BBC's permission only: texts. Images and audio are refused by name.

Pages are listed in the sitemaps that the BBC's robots.txt names. The names of the sitemaps are from
a stored public page; no page of this site has been recorded here.
"""

from __future__ import annotations

from crawlers.apis.feeds import FeedSite
from crawlers.contract import SourceInfo

INFO = SourceInfo(
    name="bbc",
    title="BBC News: articles",
    licence="LicenseRef-BBC",
    language="en",
    category="news",
    sites={"bbc": "https://www.bbc.com"},
    request_interval_s=5.0,
    permission=(
        "the BBC's robots.txt forbids scraping, data sets of its content, and training of models; "
        "its licence for education (ERA) or its own consent is needed, for texts, images and audio "
        "alike; govuk, global_voices and wikinews are open and stand in for it"
    ),
)
fetch_month = FeedSite(INFO, "bbc", [("bbc", "/sitemaps/https-index-com-news.xml")]).fetch_month
