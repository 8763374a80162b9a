import pytest

from tests.crawlers.request_kinds import kind_of


@pytest.mark.parametrize(
    ("source", "url", "kind"),
    [
        ("hackernews", "https://hn.algolia.com/api/v1/search_by_date?page=0&hitsPerPage=5",
         "/api/v1/search_by_date?hitsPerPage&page"),
        ("hackernews", "/api/v1/items/12", "/api/v1/items/{}"),
        ("wikipedia_new", "/w/api.php?action=query&revids=1%7C2", "/w/api.php?action&revids"),
        ("wikipedia_new", "/wiki/Some_title", "/{}/{}"),
        ("wikipedia_new", "/robots.txt", "/robots.txt"),
        ("wikipedia_new", "/", "/"),
    ],
)  # fmt: skip
def test_what_the_code_does_not_have_varies(source: str, url: str, kind: str) -> None:
    assert kind_of(url, source) == kind
