import pytest

from tests.crawlers.request_kinds import kind_of


@pytest.mark.parametrize(
    ("source", "url", "kind"),
    [
        ("arxiv", "/src/2404.00001v1", "/src/{}"),
        ("arxiv", "https://export.arxiv.org/api/query?start=0&max_results=5",
         "/api/query?max_results&start"),
        ("arxiv", "/oai?verb=GetRecord&identifier=", "/oai?identifier&verb"),
        ("wikipedia_new", "/w/api.php?action=query&revids=1%7C2", "/w/api.php?action&revids"),
        ("wikipedia_new", "/wiki/Some_title", "/{}/{}"),
        ("wikipedia_new", "/robots.txt", "/robots.txt"),
        ("wikipedia_new", "/", "/"),
    ],
)  # fmt: skip
def test_what_the_code_does_not_have_varies(source: str, url: str, kind: str) -> None:
    assert kind_of(url, source) == kind
