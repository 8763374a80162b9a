"""arXiv: the first version of each paper submitted in the month, from its LaTeX source.

A paper belongs to the month in which its version 1 was submitted. Its id states the month of
announcement, and its OAI datestamp the last change, so neither is used. Later versions contain text
of later months and are never requested. Papers without LaTeX source are dropped. arXiv lists a
paper when it is announced, up to some days after its submission. So a month is complete only about
a week after its end.

Lists come from OAI-PMH: all papers that changed in the month or since, about 12 requests a month of
changes. If OAI-PMH fails, the query API lists the month instead, in about 20 requests; then the
month is partial, since the API states no licences. arXiv states the licence of a paper's current
version only. So the licence of a paper with later versions is unknown.

arXiv allows one connection and one request every 3 s for all its hosts together
(https://info.arxiv.org/help/api/tou.html). robots.txt of export.arxiv.org disallows everything, but
arXiv sets this host aside for programs (https://info.arxiv.org/help/bulk_data.html). The query API
and the sources are requested there; see docs/adr/0008.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import ItemFailed, ItemUnavailable, SourceUnavailable
from core.month import Period
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, SourceInfo, missing_item
from crawlers.text.archives import read_package
from crawlers.web.fetcher import Fetcher
from extras.arxiv.latex.reader import LatexReader
from extras.arxiv.latex.source import SUFFIXES
from extras.arxiv.lists import Entry, list_month

INFO = SourceInfo(
    name="arxiv",
    title="arXiv: papers of all fields",
    licence="per paper; mostly arXiv's non-exclusive licence, which forbids redistribution",
    language="en",
    category="science",
    sites={"arxiv": "https://export.arxiv.org", "arxiv_oai": "https://oaipmh.arxiv.org"},
    request_interval_s=5.0,  # 3 s are allowed; in 2026 arXiv sometimes refused slower clients, too
    shares_pace=True,
    robots_exempt_paths=("/api/query", "/src/*"),
    redirect_hosts=("arxiv.org",),
    lag_days=7,  # a paper is listed when it is announced, up to a week after its first version
    monthly_bytes=28_000_000,  # bytes of text per month in Li et al. 2024, table 1
    subset_kind="archive",
    subset_names=(
        "astro-ph", "cond-mat", "cs", "econ", "eess", "gr-qc", "hep-ex", "hep-lat", "hep-ph",
        "hep-th", "math", "math-ph", "nlin", "nucl-ex", "nucl-th", "physics", "q-bio", "q-fin",
        "quant-ph", "stat",
    ),
    whole_months=None,
)  # fmt: skip
CATEGORIES = (
    "cs.CL", "cs.CV", "cs.DS", "math.NT", "math.PR", "stat.ME", "eess.SP", "econ.GN", "q-bio.NC",
    "astro-ph.GA", "cond-mat.mtrl-sci", "hep-th", "physics.optics", "quant-ph",
)  # fmt: skip
MAX_SOURCE_BYTES = 50 * 2**20
NUM_NAMED_AUTHORS = 3  # authors named in the attribution; "et al." replaces all further authors


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the month's papers by date and id; sampled crawls use a seeded random order."""
    wanted = (context.subset, f"{context.subset}.*") if context.subset else CATEGORIES
    papers, failure = list_month(month, wanted, context.fetcher)
    with LatexReader() as reader:
        yield from context.sample_list(
            (_examine(paper, month) for paper in papers),
            lambda entry: entry.id,
            lambda entry: [_fetch_paper(entry, context.fetcher, reader)],
        )
    if failure:
        raise SourceUnavailable(
            f"arXiv: the papers were listed by the query API, and their licences are unknown: "
            f"{failure}; run the same command again later"
        )


def _examine(paper: Entry | Drop, month: Period) -> Entry | Drop:
    """Return a paper that was published in the month, or why it is left out."""
    if isinstance(paper, Drop):
        return paper
    if paper.published not in month:
        return Drop(paper.id, "outside_month", f"published {paper.published.isoformat()}")
    if paper.is_withdrawn:
        return Drop(paper.id, "withdrawn", "says the authors' comment, or the last version's type")
    return paper


def _fetch_paper(entry: Entry, fetcher: Fetcher, reader: LatexReader) -> Document | Drop | Failure:
    """Return the text of a paper's first version, or why there is none."""
    try:
        page = fetcher.get("arxiv", f"/src/{entry.id}v1", max_bytes=MAX_SOURCE_BYTES)
        paper = reader.read(read_package(page.body, SUFFIXES))
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(entry.id, error)
    if not paper.text:
        return Drop(entry.id, "empty", "no prose between introduction and bibliography")
    licence = None if entry.is_revised else entry.licence  # it is the current version's licence
    extra = {"categories": list(entry.categories), "has_introduction": paper.has_introduction}
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
        extra=extra | ({"has_later_versions": True} if entry.is_revised else {}),
    )
