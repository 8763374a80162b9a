from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from defusedxml import ElementTree

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.arxiv import MAX_RESULTS, Site
from simulator.world import World

ATOM = {
    "a": "http://www.w3.org/2005/Atom",
    "s": "http://a9.com/-/spec/opensearch/1.1/",
    "x": "http://arxiv.org/schemas/atom",
}
OAI = {"o": "http://www.openarchives.org/OAI/2.0/", "r": "http://arxiv.org/OAI/arXivRaw/"}
FEBRUARY = "submittedDate:[202302010000 TO 202302282359]"


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(World(0, Month("2023-01"), Month("2023-03")))


def get(site: Site, path: str, **query: str) -> Response:
    return site.respond(Request("GET", path, {k: [v] for k, v in query.items()}, {}, b""))


def query(site: Site, search_query: str, **more: str) -> ElementTree.Element:
    more = {"sortBy": "submittedDate", "sortOrder": "ascending", **more}
    return ElementTree.fromstring(get(site, "/api/query", search_query=search_query, **more).body)


def oai(site: Site, **arguments: str) -> ElementTree.Element:
    return ElementTree.fromstring(get(site, "/oai", **arguments).body)


def members(response: Response) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(response.body), mode="r:gz") as archive:
        files = {m.name: archive.extractfile(m) for m in archive}
        return {name: file.read() for name, file in files.items() if file}


@pytest.mark.parametrize(
    "wrong", [{"start": "-1"}, {"max_results": str(MAX_RESULTS + 1)}, {"search_query": "all:x"}]
)
def test_errors_are_an_entry(site: Site, wrong: dict[str, str]) -> None:
    arguments = {"search_query": f"cat:cs.CL AND {FEBRUARY}", **wrong}
    feed = ElementTree.fromstring(get(site, "/api/query", **arguments).body)
    assert [e.findtext("a:title", "", ATOM) for e in feed.iterfind("a:entry", ATOM)] == ["Error"]


def test_some_sources_are_something_else(site: Site) -> None:
    lone = get(site, "/e-print/2302.00004v1")
    assert lone.headers["Content-Encoding"] == "x-gzip"
    assert gzip.decompress(lone.body).startswith(b"\\documentclass")
    packed = get(site, "/src/2302.00004v1")  # always a tar, even of one file
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        assert archive.getnames() == ["main.tex"]
    assert get(site, "/src/2302.00025v1").body.startswith(b"%PDF")
    for gone in ("/src/2302.00026v1", "/src/2302.00001v2", "/src/2302.77777v1", "/list/cs"):
        assert get(site, gone).status == 404
