"""arXiv: the first version of each paper submitted in the month, from its LaTeX source.

A paper belongs to the month in which its version 1 was submitted. Its id states the month of
announcement, and its OAI datestamp the last change, so neither is used. Later versions contain text
of later months and are never requested. Papers without LaTeX source are dropped. arXiv allows one
connection and one request every 3 s for all its hosts together
(https://info.arxiv.org/help/api/tou.html). The API lists a paper when it is announced, up to some
days after its submission. So a month is complete only about a week after its end. Listing a month
takes about 20 requests. Reading a paper takes one or two requests.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import ItemFailed, ItemUnavailable
from core.month import Month
from crawlers.apis.arxiv import Entry, Licences, Unreadable, find_papers
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.text.archives import read_package
from crawlers.text.latex import LatexReader
from crawlers.text.latex_source import SUFFIXES
from crawlers.web.fetcher import Fetcher

INFO = SourceInfo(
    name="arxiv",
    title="arXiv: papers of all fields",
    licence="per paper; mostly arXiv's non-exclusive licence, which forbids redistribution",
    language="en",
    category="science",
    sites={"arxiv": "https://export.arxiv.org", "arxiv_oai": "https://oaipmh.arxiv.org"},
    request_interval_s=5.0,  # at the documented 3 s, arXiv returned status 429 in 2026
    shares_pace=True,
    redirect_hosts=("arxiv.org",),
    monthly_bytes=28_000_000,  # bytes of text per month in Li et al. 2024, table 1
)
CATEGORIES = (
    "cs.CL", "cs.CV", "cs.DS", "math.NT", "math.PR", "stat.ME", "eess.SP", "econ.GN", "q-bio.NC",
    "astro-ph.GA", "cond-mat.mtrl-sci", "hep-th", "physics.optics", "quant-ph",
)  # fmt: skip
PAPER_BYTES = 40_000  # assumed text bytes of a paper, to estimate how many papers a limit allows
MAX_SOURCE_BYTES = 50 * 2**20
NUM_NAMED_AUTHORS = 3  # authors named in the attribution; "et al." replaces all further authors


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's papers by date and id; sampled crawls use a seeded random order."""
    entries: dict[str, Entry] = {}
    seen: set[str] = set()
    for entry in find_papers(month, CATEGORIES, context.fetcher):
        if entry.id in seen:
            yield Repeat(entry.id, "on two pages of the list")
        elif isinstance(entry, Unreadable):
            yield Drop(entry.id, "parse_error", entry.detail)
        elif entry.published not in month:
            yield Drop(entry.id, "outside_month", f"published {entry.published.isoformat()}")
        elif entry.is_withdrawn:
            yield Drop(entry.id, "withdrawn", "says the authors' comment")
        else:
            entries[entry.id] = entry
        seen.add(entry.id)
    num_wanted = _guess_number(len(entries), context)
    licences = Licences(month, CATEGORIES, context.fetcher, num_wanted)
    with LatexReader() as reader:
        yield from context.sample(
            entries.values(),
            lambda entry: entry.id,
            lambda entry: [_fetch_paper(entry, licences, context.fetcher, reader)],
        )


def _guess_number(num_listed: int, context: CrawlContext) -> int:
    if context.limit is not None:
        return min(num_listed, context.limit)
    if context.max_bytes is not None:
        return min(num_listed, context.max_bytes // PAPER_BYTES)
    return num_listed


def _fetch_paper(
    entry: Entry, licences: Licences, fetcher: Fetcher, reader: LatexReader
) -> Document | Drop | Failure:
    try:
        page = fetcher.get("arxiv", f"/src/{entry.id}v1", max_bytes=MAX_SOURCE_BYTES)
        paper = reader.read(read_package(page.body, SUFFIXES))
        if not paper.text:
            return Drop(entry.id, "empty", "no prose between introduction and bibliography")
        licence = licences.of(entry.id)
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(entry.id, error)
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
        licence=licence or "LicenseRef-unknown",
        attribution=f"{authors}: {entry.title}, arXiv:{entry.id}v1",
        cluster_id=f"paper:{entry.id}",
        category=entry.category,
        extra={"categories": list(entry.categories), "has_introduction": paper.has_introduction},
    )
