"""Simulated arXiv: query API (Atom) and source packages on one host, OAI-PMH on another.

Each month has one paper per story. The first paper is submitted in the month's first second, and
the last paper in its last second. Each month has three more papers: one exists only as PDF, one is
withdrawn, and one belongs to another category. Some papers have a second version. OAI-PMH answers
as the templates of https://github.com/arXiv/oaipmh do. Its clock is 45 days after the world's end.
"""

from __future__ import annotations

import datetime as dt
import fnmatch
import functools
import gzip
import html
import re
import textwrap
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, unquote, urlencode

from core.month import Month
from extras.arxiv.simulator.latex_files import latex_files, one_file, packed
from simulator.server import Request, Response, WorldSite, as_html, as_utc, take_quirk
from simulator.world import Story, World

LONE_FILE_NUMBER = 3  # number, within the month, of the paper whose source is one file
MAX_RESULTS = 2_000
OAI_PAGE_SIZE = 20
AUTHORS = ("Ada Example", "Boris Sample", "Chen Muster", "Dora Ejemplo")

_LICENCES = (
    "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
    "http://creativecommons.org/licenses/by/4.0/",
    "http://creativecommons.org/licenses/by-sa/4.0/",
    None,
)
_ATOM = "application/atom+xml; charset=utf-8"
_WINDOW = re.compile(r"submittedDate:\[(\d{12}) TO (\d{12})\]")
_SOURCE_PATH = re.compile(r"/src/(\d{4}\.\d{5})(?:v(\d+))?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EARLIEST = "2005-09-16"  # earliest datestamp
_ERRORS = {  # descriptions of the errors of OAI-PMH
    "badArgument": "The request includes illegal arguments, or is missing required arguments.",
    "badResumptionToken": "The value of the resumptionToken argument is invalid or expired.",
    "noRecordsMatch": "The combination of the arguments results in an empty list.",
}
_PHYSICS = {"astro-ph", "cond-mat", "hep-th", "physics", "quant-ph"}


@dataclass(frozen=True)
class Paper:
    """One paper; ``kind`` (of its source package) is tar, gzip, pdf or withdrawn."""

    id: str
    number: int
    story: Story
    published: dt.datetime
    kind: str
    categories: tuple[str, ...]

    @property
    def licence(self) -> str | None:
        """The URL of the licence; None for a few papers, as for old papers on arXiv."""
        return _LICENCES[self.number % len(_LICENCES)]

    @property
    def versions(self) -> tuple[dt.datetime, ...]:
        """The submission times of all versions, oldest first."""
        revised = self.published + dt.timedelta(days=40)
        return (self.published, revised) if self.number % 5 == 4 else (self.published,)

    @property
    def comment(self) -> str:
        """The authors' comment."""
        return "Withdrawn by the authors" if self.kind == "withdrawn" else "9 pages"

    @property
    def datestamp(self) -> dt.date:
        """The OAI datestamp, a day after the last change."""
        return (self.versions[-1] + dt.timedelta(days=1)).date()


class _Papers(WorldSite):
    @functools.cached_property
    def papers(self) -> dict[str, Paper]:
        """All papers by id, oldest first."""
        listed = [paper for month in self.world.months for paper in _papers(self.world, month)]
        return {paper.id: paper for paper in sorted(listed, key=lambda p: (p.published, p.id))}


class Site(_Papers):
    """export.arxiv.org, with its robots.txt; see ``simulator.server.Site``."""

    keys: tuple[str, ...] = ("arxiv",)
    robots: str | None = "User-agent: *\nDisallow: /\n"

    def respond(self, request: Request) -> Response:
        """Respond to /api/query and /src."""
        if request.path == "/api/query":
            return Response(200, {"Content-Type": _ATOM}, self._query(request).encode())
        match = _SOURCE_PATH.fullmatch(request.path)
        if match:
            return self._source(match[1], match[2])
        return as_html("Not found", 404)

    def _query(self, request: Request) -> str:
        """Answer a search by categories and dates; quirks shift or damage the page."""
        start = request.arg("start", "0")
        size = request.arg("max_results", "10")
        if not start.isdecimal() or not size.isdecimal() or int(size) > MAX_RESULTS:
            return _error_feed("start and max_results must be non-negative integers")
        query = request.arg("search_query")
        window = _WINDOW.search(query)
        categories = set(re.findall(r"cat:([\w.*-]+)", query))
        if window is None or not categories:
            return _error_feed(f"incorrect search_query: {query}")
        found = []
        for paper in self.papers.values():
            is_wanted = any(fnmatch.filter(paper.categories, each) for each in categories)
            if is_wanted and window[1] <= f"{paper.published:%Y%m%d%H%M}" <= window[2]:
                found.append(paper)
        if take_quirk(self, "error_as_200"):
            return _error_feed("The service is temporarily unavailable")
        first = int(start)
        if found[first:] and take_quirk(self, "empty_page"):
            return _feed(query, len(found), first, int(size), "")
        num_new = self.count_moved(is_first=first == 0)  # new papers, which shift all others
        first -= num_new
        page = found[max(first, 0) : first + int(size)]
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        entries = "".join(_entry(paper, is_bare, is_odd) for paper in page)
        return _feed(query, len(found) + num_new, int(start), int(size), entries)

    def _source(self, paper_id: str, version: str | None) -> Response:
        """Return a source package: gzip of a tar, gzip of one file, or a PDF."""
        paper = self.papers.get(paper_id)
        number = int(version or 0) or (len(paper.versions) if paper else 0)
        if paper is None or paper.kind == "withdrawn" or number > len(paper.versions):
            return as_html("No source", 404)
        if paper.kind == "pdf":
            return Response(200, {"Content-Type": "application/pdf"}, b"%PDF-1.5\n%%EOF\n")
        files = latex_files(paper.story, paper.number, is_revised=number > 1)
        headers = {"Content-Type": "application/gzip"}
        if paper.kind == "gzip":
            return Response(200, headers, gzip.compress(one_file(files), mtime=0))
        if take_quirk(self, "hostile_archive"):
            files = {"../../../tmp/evil.tex": b"out of the archive", **files}
        return Response(200, headers, gzip.compress(packed(files), mtime=0))


class OaiSite(_Papers):
    """oaipmh.arxiv.org, which has no robots.txt."""

    keys: tuple[str, ...] = ("arxiv_oai",)

    def respond(self, request: Request) -> Response:
        """Respond to /oai; only ListRecords in the format arXivRaw is simulated."""
        given = {name: values[-1] for name, values in request.query.items()}
        is_failing = request.path != "/oai" or take_quirk(self, "error_as_200")
        content = _error("badArgument") if is_failing else self._list(given)
        attributes = "".join(f' {name}="{html.escape(text)}"' for name, text in given.items())
        page = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">\n'
            f"<responseDate>{as_utc(self.now)}</responseDate>\n"
            f"<request{attributes}>https://oaipmh.arxiv.org/oai</request>\n{content}</OAI-PMH>"
        )
        return Response(200, {"Content-Type": "text/xml"}, page.encode())

    @property
    def now(self) -> dt.datetime:
        """The server's clock; all changes are before it."""
        return self.world.last.end + dt.timedelta(days=45)

    def _list(self, given: dict[str, str]) -> str:
        """Answer ``ListRecords``, a page at a time; the token has the place of the next page."""
        token = given.get("resumptionToken")
        asked = given if token is None else dict(parse_qsl(unquote(token)))
        skip = asked.get("skip", "0")
        if token is not None and (len(given) > 2 or not skip.isdecimal() or "skip" not in asked):
            return _error("badResumptionToken")
        first = asked.get("from", _EARLIEST)
        last = asked.get("until", str(self.now.date()))
        is_legal = asked.get("metadataPrefix") == "arXivRaw" and asked.get("verb") == "ListRecords"
        if not is_legal or not all(map(_DAY.fullmatch, (first, last))) or first < _EARLIEST:
            return _error("badArgument")
        found = [each for each in self.papers.values() if first <= str(each.datestamp) <= last]
        found.sort(key=lambda paper: (paper.versions[-1], paper.id))
        found = found[max(int(skip) - self.count_moved(token is None), 0) :]
        if not found or take_quirk(self, "empty_page"):
            return _error("noRecordsMatch")
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        page = sorted(found[:OAI_PAGE_SIZE], key=lambda paper: (paper.datestamp, paper.id))
        records = "".join(_record(paper, is_bare, is_odd) for paper in page)
        rest = "<resumptionToken/>" if token is not None else ""
        if len(found) > OAI_PAGE_SIZE:
            rest = self._token(asked, int(skip), page, str(found[OAI_PAGE_SIZE].datestamp))
        return f"<ListRecords>\n{records}{rest}</ListRecords>\n"

    def _token(self, asked: dict[str, str], skip: int, page: list[Paper], day: str) -> str:
        """Return a token that, as on arXiv, starts with the day of the next record."""
        days = [str(paper.datestamp) for paper in page]
        skip = skip + OAI_PAGE_SIZE if days[0] == day else days.count(day)
        text = quote(urlencode({**asked, "from": day, "skip": skip}))
        expires = as_utc(self.now.replace(hour=0) + dt.timedelta(days=1))
        return f"<resumptionToken expirationDate='{expires}'>{text}</resumptionToken>\n"


# Categories that only the subsets of their archives have, ``arxiv:math`` and ``arxiv:q-fin``.
OTHER_ARCHIVES = ("math.OC", "q-fin.ST")


def _papers(world: World, month: Month) -> list[Paper]:
    """Return a month's papers: of all kinds of packages, and of other archives."""
    count = len(world.stories(month, "arxiv"))
    step = (month.end - month.start) // (count + 3)
    papers = []
    for number in range(count + 3):
        kind = {count: "pdf", count + 1: "withdrawn", LONE_FILE_NUMBER: "gzip"}.get(number, "tar")
        categories = ("cs.CL", "cs.AI") if number % 3 else ("cs.LG", "cs.CL")
        paper = Paper(
            id=f"{month.start:%y%m}.{number + 1:05d}",
            number=number,
            story=world.story(month, "arxiv", number),
            published=(month.start + number * step).replace(microsecond=0),
            kind=kind,
            categories=("stat.ML",) if number == count + 2 else categories,
        )
        if number == count - 1:
            # The paper submitted in the last second has an id of the next month.
            last_second = month.end - dt.timedelta(seconds=1)
            paper = replace(paper, id=f"{month.end:%y%m}.09000", published=last_second)
        papers.append(paper)
    for number, category in enumerate(OTHER_ARCHIVES, start=count + 3):
        paper = Paper(
            id=f"{month.start:%y%m}.{number + 1:05d}",
            number=number,
            story=world.story(month, "arxiv", number),
            published=(month.start + (number - 3) * step).replace(microsecond=0),
            kind="tar",
            categories=(category,),
        )
        papers.append(paper)
    return papers


def _feed(query: str, total: int, start: int, size: int, entries: str) -> str:
    """Return an answer of the query API in Atom."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom" '
        'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">\n'
        f"<title>arXiv Query: search_query={html.escape(query)}</title>\n"
        "<id>https://arxiv.org/api/simulated</id>\n"
        f"<opensearch:totalResults>{total}</opensearch:totalResults>\n"
        f"<opensearch:startIndex>{start}</opensearch:startIndex>\n"
        f"<opensearch:itemsPerPage>{size}</opensearch:itemsPerPage>\n{entries}</feed>\n"
    )


def _error_feed(message: str) -> str:
    """Return the feed with which the query API tells an error."""
    entry = (
        "<entry><id>https://arxiv.org/api/errors#simulated</id><title>Error</title>"
        f"<summary>{html.escape(message)}</summary><updated>2024-01-01T00:00:00Z</updated>"
        "<author><name>arXiv api core</name></author></entry>\n"
    )
    return _feed("", 1, 0, 1, entry)


def _entry(paper: Paper, is_bare: bool = False, is_odd: bool = False) -> str:
    """Return a paper in Atom, with few or with unknown fields if asked."""
    address = f"http://arxiv.org/abs/{paper.id}v{len(paper.versions)}"
    if is_bare:  # leave out optional fields
        title = f"<title>{html.escape(paper.story.title)}</title>"
        date = f"<published>{paper.published:%Y-%m-%dT%H:%M:%SZ}</published>"
        return f"<entry><id>{address}</id>{title}{date}</entry>"
    odd = '<arxiv:doi type="x">10.0/1</arxiv:doi><undocumented><b/></undocumented>' * is_odd
    authors = "".join(f"<author><name>{name}</name></author>" for name in AUTHORS)
    categories = "".join(f'<category term="{name}"/>' for name in paper.categories)
    return (
        f"<entry><id>{address}</id>"
        f"<updated>{paper.versions[-1]:%Y-%m-%dT%H:%M:%SZ}</updated>"
        f"<published>{paper.published:%Y-%m-%dT%H:%M:%SZ}</published>"
        f"<title>{html.escape(textwrap.fill(paper.story.title, 30))}</title>"
        f"<summary>{html.escape(paper.story.paragraphs[0][:200])}</summary>{authors}"
        f'<arxiv:primary_category term="{paper.categories[0]}"/>{categories}{odd}'
        f"<arxiv:comment>{paper.comment}</arxiv:comment>"
        f'<link title="pdf" href="{address.replace("/abs/", "/pdf/")}" rel="related"/></entry>\n'
    )


def _sets(paper: Paper) -> list[str]:
    """Return a paper's OAI sets: ``cs:cs:CL`` for cs.CL, ``physics:hep-th`` for hep-th."""
    sets = []
    for name in paper.categories:
        archive = name.split(".")[0]
        group = "physics" if archive in _PHYSICS else archive
        sets.append(f"{group}:{name.replace('.', ':')}")
    return sets


def _error(code: str) -> str:
    return f"<error code='{code}'>{_ERRORS[code]}</error>\n"


def _record(paper: Paper, is_bare: bool, is_odd: bool) -> str:
    """Return a paper's record of OAI-PMH, with few or with unknown fields if asked."""
    sets = "".join(f"<setSpec>{name}</setSpec>" for name in _sets(paper))
    versions = "".join(
        f'<version version="v{number}"><date>{moment:%a, %d %b %Y %H:%M:%S} GMT</date>'
        "<size>12kb</size><source_type>D</source_type></version>"
        for number, moment in enumerate(paper.versions, start=1)
    )
    *others, last = AUTHORS
    optional = (
        f"<title>{html.escape(textwrap.fill(paper.story.title, 30))}</title>"
        f"<authors>{', '.join(others)} and {last} (University of Examples)</authors>"
        f"<comments>{paper.comment}</comments>"
        + (f"<license>{paper.licence}</license>" if paper.licence else "")
    )
    return (
        f"<record><header><identifier>oai:arXiv.org:{paper.id}</identifier>"
        f"<datestamp>{paper.datestamp}</datestamp>{sets}</header><metadata>"
        f'<arXivRaw xmlns="http://arxiv.org/OAI/arXivRaw/"><id>{paper.id}</id>'
        f"<submitter>{AUTHORS[0]}</submitter>{versions}"
        f"<categories>{' '.join(paper.categories)}</categories>{'' if is_bare else optional}"
        f"{'<undocumented/>' if is_odd else ''}</arXivRaw></metadata></record>\n"
    )


SITE_KINDS = (Site, OaiSite)
