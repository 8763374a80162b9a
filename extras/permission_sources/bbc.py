"""BBC News, with the BBC's permission only: texts. Images and audio are refused by name.

Pages are listed in the sitemaps that the BBC's robots.txt names. The names of the sitemaps are from
a stored public page; no page of this site has been recorded here. Public programs that read pages
of 2020 to 2026 find the text in parts of an article, beside captions and lists of other articles.
"""

from __future__ import annotations

from crawlers.contract import SourceInfo
from crawlers.text.pages import ARTICLE
from extras.permission_sources.feeds import FeedSite

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
_TEXT = "//*[@data-component='text-block' or @data-component='subheadline-block']"
ELEMENTS = f"{_TEXT} | ({ARTICLE})[not({_TEXT})]"
_LISTS = [("bbc", "/sitemaps/https-index-com-news.xml")]
fetch_month = FeedSite(INFO, "bbc", _LISTS, ELEMENTS).fetch_month
