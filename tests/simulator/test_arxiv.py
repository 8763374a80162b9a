from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from defusedxml import ElementTree

from core.month import Month
from simulator.server import Request, Response, WorldSite
from simulator.sites.arxiv import MAX_RESULTS, OaiSite, Site
from simulator.world import World

ATOM = {
    "a": "http://www.w3.org/2005/Atom",
    "s": "http://a9.com/-/spec/opensearch/1.1/",
    "x": "http://arxiv.org/schemas/atom",
}
LIST = {"verb": "ListRecords", "metadataPrefix": "arXivRaw"}
WORLD = World(0, Month("2023-01"), Month("2023-03"))
OAI = {"o": "http://www.openarchives.org/OAI/2.0/", "r": "http://arxiv.org/OAI/arXivRaw/"}
FEBRUARY = "submittedDate:[202302010000 TO 202302282359]"


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(WORLD)


def get(site: WorldSite, path: str, **query: str) -> Response:
    return site.respond(Request("GET", path, {k: [v] for k, v in query.items()}, {}, b""))


@pytest.mark.parametrize(
    "wrong", [{"start": "-1"}, {"max_results": str(MAX_RESULTS + 1)}, {"search_query": "all:x"}]
)
def test_errors_are_an_entry(site: Site, wrong: dict[str, str]) -> None:
    arguments = {"search_query": f"cat:cs.CL AND {FEBRUARY}", **wrong}
    feed = ElementTree.fromstring(get(site, "/api/query", **arguments).body)
    assert [e.findtext("a:title", "", ATOM) for e in feed.iterfind("a:entry", ATOM)] == ["Error"]


def test_some_sources_are_something_else(site: Site) -> None:
    lone = get(site, "/src/2302.00004v1")
    assert gzip.decompress(lone.body).startswith(b"\\documentclass")
    packed = get(site, "/src/2302.00003v1")
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        assert "main.tex" in archive.getnames()
    assert get(site, "/src/2302.00025v1").body.startswith(b"%PDF")
    for gone in ("/src/2302.00026v1", "/src/2302.00001v2", "/src/2302.77777v1", "/list/cs"):
        assert get(site, gone).status == 404


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "badArgument"),
        ({"verb": "ListRecords"}, "badArgument"),
        ({"until": "2023-02-28T00:00:00Z", **LIST}, "badArgument"),
        ({"from": "1999-01-01", **LIST}, "badArgument"),
        ({"verb": "ListRecords", "resumptionToken": "x"}, "badResumptionToken"),
        ({"from": "2023-01-01", "until": "2023-01-01", **LIST}, "noRecordsMatch"),
    ],
)
def test_errors_of_oai_have_a_code(arguments: dict[str, str], code: str) -> None:
    body = get(OaiSite(WORLD), "/oai", **arguments).body
    error = ElementTree.fromstring(body).find("o:error", OAI)
    assert error is not None and error.get("code") == code and error.text


def test_a_list_of_oai_ends_in_an_empty_token() -> None:
    site, arguments, ids, days = OaiSite(WORLD), {"from": "2023-02-01", **LIST}, [], []
    while arguments:
        page = ElementTree.fromstring(get(site, "/oai", **arguments).body)
        ids += [each.text for each in page.iterfind(".//r:id", OAI)]
        days += [each.text for each in page.iterfind(".//o:datestamp", OAI)]
        token = page.find(".//o:resumptionToken", OAI)
        assert token is not None
        assert (token.get("expirationDate") is None) == (token.text is None)
        arguments = {"verb": "ListRecords", "resumptionToken": token.text} if token.text else {}
    assert len(ids) == len(set(ids)) > 2 * 27
    assert days == sorted(days)
