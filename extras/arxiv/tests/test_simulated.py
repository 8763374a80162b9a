"""Simulated arXiv refuses what the real one refuses, in its words, and pages as it does."""

import gzip
import io
import tarfile
from typing import Any

import pytest
from defusedxml import ElementTree

from extras.arxiv.simulator import arxiv
from tests.simulator.test_sites import check_refused, get

NAMESPACES = {
    "a": "http://www.w3.org/2005/Atom",
    "o": "http://www.openarchives.org/OAI/2.0/",
    "r": "http://arxiv.org/OAI/arXivRaw/",
}
FEBRUARY = "search_query=cat:cs.CL+AND+submittedDate:[202302010000+TO+202302282359]"
LIST = "/oai?verb=ListRecords&metadataPrefix=arXivRaw"
REFUSED: list[tuple[type[Any], int, str, list[str]]] = [
    (arxiv.Site, 200, "<title>Error</title>", [
        f"/api/query?{FEBRUARY}&start=-1", "/api/query?search_query=all:x",
        f"/api/query?{FEBRUARY}&max_results={arxiv.MAX_RESULTS + 1}",
    ]),
    (arxiv.Site, 404, "", ["/src/2302.00016v1", "/src/2302.00001v2", "/src/2302.77777v1", "/list"]),
    (arxiv.OaiSite, 200, "'badArgument'", [
        "/oai", "/oai?verb=ListRecords", f"{LIST}&until=2023-02-28T00:00:00Z",
        f"{LIST}&from=1999-01-01",
    ]),
    (arxiv.OaiSite, 200, "'badResumptionToken'", ["/oai?verb=ListRecords&resumptionToken=x"]),
    (arxiv.OaiSite, 200, "'noRecordsMatch'", [f"{LIST}&from=2023-01-01&until=2023-01-01"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "status", "says", "target"),
    [(kind, status, says, each) for kind, status, says, targets in REFUSED for each in targets],
)
def test_what_the_real_site_refuses_is_refused(
    kind: type[Any], status: int, says: str, target: str
) -> None:
    check_refused(kind, status, says, target)


def test_some_sources_of_arxiv_are_no_archive() -> None:
    lone = get(arxiv.Site, "/src/2302.00004v1")
    assert gzip.decompress(lone.body).startswith(b"\\documentclass")
    packed = get(arxiv.Site, "/src/2302.00003v1")
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        assert "main.tex" in archive.getnames()
    assert get(arxiv.Site, "/src/2302.00015v1").body.startswith(b"%PDF")


def test_a_list_of_oai_ends_in_an_empty_token() -> None:
    target = f"{LIST}&from=2023-02-01"
    ids = list[Any]()
    days = list[Any]()
    arguments: dict[str, str] = {}
    while target:
        page = ElementTree.fromstring(get(arxiv.OaiSite, target, **arguments).body)
        ids += [each.text for each in page.iterfind(".//r:id", NAMESPACES)]
        days += [each.text for each in page.iterfind(".//o:datestamp", NAMESPACES)]
        token = page.find(".//o:resumptionToken", NAMESPACES)
        assert token is not None
        assert (token.get("expirationDate") is None) == (token.text is None)
        target = "/oai?verb=ListRecords" if token.text else ""
        arguments = {"resumptionToken": token.text or ""}
    assert len(ids) == len(set(ids)) > 2 * 17
    assert days == sorted(days)
