"""Works of Archive of Our Own, with permission only: those that the feed of one tag lists.

The feed of a tag (``/tags/<id>/feed.atom``) lists its newest works. A page states days in a list of
figures: of the first chapter, and of the newest, if there are several. Written after a page of
2024-01 that others had saved; never checked against the site.
"""

from __future__ import annotations

from crawlers.contract import SourceInfo
from extras.permission_sources.feeds import FeedSite

INFO = SourceInfo(
    name="ao3",
    title="Archive of Our Own: works",
    licence="LicenseRef-author",
    language="en",
    category="fiction",
    sites={"ao3": "https://archiveofourown.org"},
    request_interval_s=5.0,
    permission=(
        "the works belong to their authors, and the archive's terms forbid commercial scraping and "
        "its operators ask not to collect works for training; scp_tales is open and stands in for "
        "it; `tidemark import html` reads pages that you saved"
    ),
)
FANDOM_FEED = "/tags/12/feed.atom"
# Of each chapter, without the notes before it and the heading "Work Text:".
ELEMENTS = "//div[@id='chapters']//div[starts-with(@class, 'userstuff')]/*[not(@id='work')]"
fetch_month = FeedSite(INFO, "ao3", [("ao3", FANDOM_FEED)], ELEMENTS).fetch_month
