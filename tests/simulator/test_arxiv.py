"""The simulated arXiv speaks arXiv's protocols."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest
from defusedxml import ElementTree

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.arxiv import MAX_RESULTS, OAI_PAGE_SIZE, Site
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


def test_the_window_is_by_minute_and_includes_both_ends(site: Site) -> None:
    feed = query(site, f"cat:cs.CL AND {FEBRUARY}", max_results="100")
    dates = [e.findtext("a:published", "", ATOM) for e in feed.iterfind("a:entry", ATOM)]
    assert dates == sorted(dates)
    assert (dates[0], dates[-1]) == ("2023-02-01T00:00:00Z", "2023-02-28T23:59:59Z")
    assert feed.findtext("s:totalResults", "", ATOM) == str(len(dates)) == "26"
    feed = query(site, "cat:cs.CL AND submittedDate:[202302282359 TO 202303010000]")
    assert feed.findtext("s:totalResults", "", ATOM) == "2"


def test_categories_and_pages(site: Site) -> None:
    both = query(site, f"(cat:cs.CL OR cat:stat.ML) AND {FEBRUARY}", start="25", max_results="5")
    assert both.findtext("s:totalResults", "", ATOM) == "27"
    assert both.findtext("s:startIndex", "", ATOM) == "25"
    assert len(both.findall("a:entry", ATOM)) == 2
    entry = both.find("a:entry", ATOM)
    assert entry is not None
    primary = entry.find("x:primary_category", ATOM)
    assert primary is not None
    assert primary.get("term") in {"cs.CL", "cs.LG", "stat.ML"}
    assert not query(site, f"cat:cs.CL AND {FEBRUARY}", start="26").findall("a:entry", ATOM)


@pytest.mark.parametrize(
    "wrong", [{"start": "-1"}, {"max_results": str(MAX_RESULTS + 1)}, {"search_query": "all:x"}]
)
def test_errors_are_an_entry(site: Site, wrong: dict[str, str]) -> None:
    arguments = {"search_query": f"cat:cs.CL AND {FEBRUARY}", **wrong}
    feed = ElementTree.fromstring(get(site, "/api/query", **arguments).body)
    assert [e.findtext("a:title", "", ATOM) for e in feed.iterfind("a:entry", ATOM)] == ["Error"]


def test_a_record_has_the_licence_and_all_versions(site: Site) -> None:
    record = oai(
        site, verb="GetRecord", identifier="oai:arXiv.org:2302.00005", metadataPrefix="arXivRaw"
    )
    assert record.findtext(".//r:license", "", OAI).startswith("http://arxiv.org/licenses/")
    assert [v.get("version") for v in record.iterfind(".//r:version", OAI)] == ["v1", "v2"]
    assert [s.text for s in record.iterfind(".//o:setSpec", OAI)] == ["cs:cs:CL", "cs:cs:AI"]


def test_lists_are_by_datestamp_and_go_on_with_a_token(site: Site) -> None:
    arguments = {"from": "2023-02-01", "until": "2023-03-31", "set": "cs:cs:CL"}
    page = oai(site, verb="ListRecords", metadataPrefix="arXivRaw", **arguments)
    seen: list[str] = []
    while True:
        ids = [node.text or "" for node in page.iterfind(".//r:id", OAI)]
        assert len(ids) <= OAI_PAGE_SIZE
        stamps = [node.text or "" for node in page.iterfind(".//o:datestamp", OAI)]
        assert all("2023-02-01" <= stamp <= "2023-03-31" for stamp in stamps)
        seen += ids
        token = page.findtext(".//o:resumptionToken", "", OAI)
        if not token:
            break
        page = oai(site, verb="ListRecords", resumptionToken=token)
    assert len(seen) == len(set(seen)) > OAI_PAGE_SIZE
    assert "2301.00005" in seen  # of January, changed in February


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"verb": "Nonsense"}, "badVerb"),
        ({"verb": "GetRecord", "metadataPrefix": "arXivRaw", "identifier": "x"}, "idDoesNotExist"),
        ({"verb": "GetRecord", "identifier": "x"}, "cannotDisseminateFormat"),
        ({"verb": "ListRecords", "from": "1990-01-01", "until": "1990-01-02"}, "noRecordsMatch"),
        ({"verb": "ListRecords", "resumptionToken": "x"}, "badResumptionToken"),
    ],
)
def test_oai_errors_have_their_codes(site: Site, arguments: dict[str, str], code: str) -> None:
    error = oai(site, **arguments).find("o:error", OAI)
    assert error is not None
    assert error.get("code") == code


def test_a_package_has_several_files_and_no_date(site: Site) -> None:
    response = get(site, "/src/2302.00002v1")
    files = members(response)
    assert {"main.tex", "sections/introduction.tex", "appendix.tex", "main.bbl"} <= files.keys()
    assert b"\\input{sections/introduction}" in files["main.tex"]
    again = Site(World(0, Month("2023-01"), Month("2023-03")))
    assert get(again, "/src/2302.00002v1").body == response.body


def test_versions_differ_and_the_latest_is_the_default(site: Site) -> None:
    name = "sections/introduction.tex"
    first = members(get(site, "/src/2302.00005v1"))[name]
    second = members(get(site, "/src/2302.00005v2"))[name]
    assert b"revised" in second
    assert b"revised" not in first
    assert members(get(site, "/src/2302.00005"))[name] == second


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


def test_people_can_click_through(site: Site) -> None:
    assert b'href="/abs/2302.00001"' in get(site, "/").body
    assert b'href="/src/2302.00001v1"' in get(site, "/abs/2302.00001").body
