"""arXiv: the first version of each paper submitted in the month, from its LaTeX source.

The month is that of version 1: not of the id, which follows the announcement, nor of OAI's
datestamp, which follows the last change. Later versions are never asked for: their text is from
later months. Papers without LaTeX source are not kept. Limits over all of arXiv's hosts together:
one connection, one request every 3 s (https://info.arxiv.org/help/api/tou.html). A paper appears
in the API when it is announced, up to some days after its submission, so a month is whole only
about a week after its end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import cast

from core.errors import ItemUnavailable
from core.month import Month
from crawlers.archives import read_package
from crawlers.arxiv_feeds import Entry, find_licences, find_papers
from crawlers.contract import CrawlContext, Document, Drop, DropReason, SourceInfo
from crawlers.http import Fetcher
from crawlers.latex import LatexReader
from crawlers.latex_source import SUFFIXES

INFO = SourceInfo(
    name="arxiv",
    title="arXiv: computation and language (cs.CL)",
    licence="per paper; mostly arXiv's non-exclusive licence, which forbids redistribution",
    language="en",
    category="science",
    sites={"arxiv": "https://export.arxiv.org", "arxiv_oai": "https://oaipmh.arxiv.org"},
    request_interval_s=5.0,  # users met 429 at the documented 3 s in 2026
    shares_pace=True,
    redirect_hosts=("arxiv.org",),
)
CATEGORIES = {"cs.CL": "cs:cs:CL"}  # category of the query API: the same as an OAI set
MAX_SOURCE_BYTES = 50 * 2**20
NUM_NAMED_AUTHORS = 3  # in the attribution; the rest are "et al."


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
    """Yield the papers submitted in a month, by date and id.

    Raises:
        SourceUnavailable: arXiv does not answer, or answers with empty pages only.
        SourceChanged: a list is not as documented.
        AccessRefused: robots.txt forbids the lists.
    """
    entries = find_papers(month, list(CATEGORIES), context.fetcher)
    kept = _sample([entry.id for entry in entries if entry.published in month], context)
    licences = find_licences(kept, month, list(CATEGORIES.values()), context.fetcher)
    with LatexReader() as reader:
        for entry in entries:
            if entry.published not in month:
                yield Drop(entry.id, "outside_month", f"published {entry.published.isoformat()}")
            elif entry.id not in kept:
                yield Drop(entry.id, "sample_cap")
            else:
                licence = licences.get(entry.id, "LicenseRef-unknown")
                yield _fetch_paper(entry, licence, context.fetcher, reader)


def _sample(ids: Sequence[str], context: CrawlContext) -> list[str]:
    """Choose by a hash of seed and id, so that one paper more does not change all the others."""
    if context.limit is None:
        return list(ids)
    ranked = sorted(ids, key=lambda i: hashlib.sha256(f"{context.seed}/{i}".encode()).digest())
    return ranked[: context.limit]


def _fetch_paper(
    entry: Entry, licence: str, fetcher: Fetcher, reader: LatexReader
) -> Document | Drop:
    try:
        page = fetcher.get("arxiv", f"/src/{entry.id}v1", max_bytes=MAX_SOURCE_BYTES)
        paper = reader.read(read_package(page.body, SUFFIXES))
    except ItemUnavailable as error:
        return Drop(entry.id, cast(DropReason, error.reason), str(error))
    if not paper.text:
        return Drop(entry.id, "empty", "no prose between introduction and bibliography")
    authors = ", ".join(entry.authors[:NUM_NAMED_AUTHORS])
    if len(entry.authors) > NUM_NAMED_AUTHORS:
        authors += " et al."
    return Document(
        native_id=entry.id,
        version_id="v1",
        text=paper.text,
        title=entry.title,
        url=f"https://arxiv.org/abs/{entry.id}v1",
        event_time=entry.published,
        date_kind="published",
        text_as_of=entry.published,
        retrieved_at=page.retrieved_at,
        licence=licence,
        attribution=f"{authors}: {entry.title}, arXiv:{entry.id}v1",
        cluster_id=f"paper:{entry.id}",
        category=entry.category,
        language=INFO.language,
        extra={
            "categories": list(entry.categories),
            "has_introduction": paper.has_introduction,
        },
    )
