import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from core.errors import AccessRefused, SourceChanged, SourceError, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.apis.mediawiki import API_PATH, Edition, MediaWiki, Revision
from crawlers.apis.wiki_documents import document
from crawlers.contract import Document, Drop
from crawlers.web.fetcher import Fetcher
from simulator.mediawiki import MAX_ROWS, MAX_TEXTS, lagging
from simulator.server import Fault, Request, Response, Web, serve_sites
from simulator.sites.wikimedia import Wikipedia as Site
from simulator.wiki import Wiki
from simulator.world import World

FIRST, LAST = Month("2023-01"), Month("2024-12")
WORLD = World(5, FIRST, LAST, stories_per_month=30)
PAGE = 1_000_000  # the first story's page
WHOLE = {"rvstart": "2023-01-01T00:00:00Z", "rvend": "2024-12-31T23:59:59Z"}


@pytest.fixture
def make_fetcher(own: Settings) -> Callable[[], Fetcher]:
    sites = {"wikipedia": "https://unused.example"}
    return lambda: Fetcher(own, sites, 0, robots_exempt_paths=[API_PATH])


@pytest.fixture
def wiki(make_fetcher: Callable[[], Fetcher]) -> MediaWiki:
    return MediaWiki(make_fetcher())


def _api_requests(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if target.startswith(API_PATH)]


def _answer_with(web: Web, body: object, times: int = 100) -> None:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    web.faults.append(Fault("status", "wikipedia", "api.php", times, 200, body=text))


def test_every_request_has_the_common_parameters(wiki: MediaWiki, web: Web) -> None:
    wiki.last_revision_before(PAGE, FIRST.end)
    for part in ("format=json", "formatversion=2", "maxlag=5", "errorformat=plaintext"):
        assert all(part in target for target in _api_requests(web))


def test_texts_come_from_many_pieces_and_batches(wiki: MediaWiki, web: Web) -> None:
    pages = [page for m in WORLD.months[:3] for page in Wiki(WORLD).pages_created(m)]
    wanted = {
        row.revision_id: row.wikitext
        for page in pages
        if page.oddity != "deleted"
        for row in page.revisions
    }
    found = wiki.texts(list(wanted))
    assert {key: row.wikitext for key, row in found.items()} == wanted
    asked = [target for target in _api_requests(web) if "rvcontinue" not in target]
    assert len(asked) == -(-len(wanted) // 50)
    assert len(_api_requests(web)) >= len(wanted) / MAX_TEXTS


def _read_a_long_history(wiki: MediaWiki) -> None:
    page = next(page for n in range(1, 99, 2) if (page := Wiki(WORLD).page(n)) and page.page_id % 8)
    rows = wiki.history(page.page_id, rvdir="newer", rvlimit="max", **WHOLE)
    expected = [row.revision_id for row in page.revisions if row.timestamp >= FIRST.start]
    assert rows is not None and [row.revision_id for row in rows] == expected
    assert len(expected) > MAX_ROWS


def test_history_follows_every_continue(wiki: MediaWiki) -> None:
    _read_a_long_history(wiki)


def test_last_revision_before_leaves_out_the_instant_itself(wiki: MediaWiki, web: Web) -> None:
    page = Wiki(WORLD).page(PAGE)
    assert page is not None
    second = page.revisions[1]
    tick = dt.timedelta(seconds=1)
    at, after = (wiki.last_revision_before(PAGE, second.timestamp + n * tick) for n in (0, 1))
    assert at is not None and at.revision_id == page.revisions[0].revision_id
    assert after is not None and after.revision_id == second.revision_id
    assert wiki.last_revision_before(PAGE, page.revisions[0].timestamp) is None
    assert len(_api_requests(web)) == 3  # no request for older revisions of the page


def test_revisions_that_are_gone_are_left_out(wiki: MediaWiki) -> None:
    assert list(wiki.texts([PAGE * 10_000, PAGE * 10_000 + 9, 42])) == [PAGE * 10_000]


@pytest.mark.parametrize(
    "body",
    [
        lagging(7.5).body,
        b"",
        b'{"errors":[{"code":"readonly"}]}',
        b'{"errors":[{"code":"ratelimited","text":"slow down"}]}',
        b'{"error":{"code":"maxlag","info":"the form of old"}}',
    ],
)
def test_waits_out_what_passes_and_does_not_cache_it(
    body: bytes, make_fetcher: Callable[[], Fetcher], web: Web
) -> None:
    again = {"Retry-After": "0"}
    fault = Fault("status", "wikipedia", "api.php", 2, 200, again, body)
    web.faults.append(fault)
    fetcher = make_fetcher()
    found = MediaWiki(fetcher).texts([PAGE * 10_000])
    assert fault.times == 0 and fetcher.stats["retries"] == 2
    second = make_fetcher()
    assert MediaWiki(second).texts([PAGE * 10_000]) == found
    assert second.stats["requests"] == 0


def test_gives_up_on_a_wiki_that_lags_for_ever(wiki: MediaWiki, web: Web) -> None:
    again = {"Retry-After": "0"}
    fault = Fault("status", "wikipedia", "api.php", 100, 200, again, lagging(60).body)
    web.faults.append(fault)
    with pytest.raises(SourceUnavailable, match="busy"):
        wiki.texts([1])


def _page(**fields: Any) -> dict[str, Any]:
    return {"query": {"pages": [{"pageid": 1, "ns": 0, "title": "A", **fields}]}}


def _cannot_continue(web: Web, times: int) -> Fault:
    body = b'{"errors":[{"code":"badcontinue","text":"Invalid continue param."}]}'
    fault = Fault("status", "wikipedia", "rvcontinue", times, 200, body=body)
    web.faults.append(fault)
    return fault


def test_badcontinue_reads_the_list_once_more_and_keeps_each_row_once(
    wiki: MediaWiki, web: Web
) -> None:
    fault = _cannot_continue(web, times=1)
    _read_a_long_history(wiki)
    assert fault.times == 0
    assert "requestid=again-" in _api_requests(web)[-1]


def test_badcontinue_for_ever_ends_the_source_as_partial(wiki: MediaWiki, web: Web) -> None:
    _cannot_continue(web, times=100)
    with pytest.raises(SourceUnavailable, match="cannot continue"):
        wiki.history(1, rvdir="newer", rvlimit="max", **WHOLE)


def test_a_page_that_is_gone_has_no_history_and_none_is_made_up(wiki: MediaWiki) -> None:
    deleted = next(p for p in Wiki(WORLD).pages_created(FIRST) if p.oddity == "deleted")
    assert wiki.history(deleted.page_id, rvdir="newer", rvlimit="max") is None


def test_an_answer_of_formatversion_1_is_a_change_not_an_empty_wiki(
    wiki: MediaWiki, web: Web
) -> None:
    row = {"revid": 1, "timestamp": "2024-01-01T00:00:00Z", "*": "text as of old"}
    _answer_with(web, {"query": {"pages": {"1": {"pageid": 1, "ns": 0, "revisions": [row]}}}})
    with pytest.raises(SourceChanged, match="'pages'"):
        wiki.texts([1])


class _Listening(Site):
    def __init__(self) -> None:
        super().__init__(WORLD)
        self.shown: list[str | None] = []

    def respond(self, request: Request) -> Response:
        self.shown.append(request.headers.get("authorization"))
        return super().respond(request)


@pytest.mark.parametrize("tokens", [{}, {"wikipedia": "s3cret-of-mine"}])
def test_a_token_is_shown_where_there_is_one_and_kept_nowhere(
    tokens: dict[str, str], settings: Settings
) -> None:
    site = _Listening()
    with serve_sites([site]) as running:
        secrets = {key: SecretStr(token) for key, token in tokens.items()}
        own = settings.model_copy(update={"sites": running.urls, "tokens": secrets})
        sites = {"wikipedia": "https://unused.example"}
        MediaWiki(Fetcher(own, sites, 0, robots_exempt_paths=[API_PATH])).texts([PAGE * 10_000])
    expected = "Bearer s3cret-of-mine" if tokens else None
    assert site.shown == [expected]
    files = [path for path in settings.scratch.rglob("*") if path.is_file()]
    assert files and not any(b"s3cret" in path.read_bytes() for path in files)


UNKNOWN: list[tuple[object, str]] = [
    ({"errors": [{"code": "badvalue", "text": "no such thing"}]}, "no such thing"),
    ({"query": []}, "'query'"),
    ({"error": 1, "query": []}, "'error'"),
    ({"error": {"code": "badvalue", "info": "of old"}}, "of old"),
    (["query"], "without errors"),
    (b"<html>consent</html>", "expected JSON"),
    ({"query": {"pages": {"1": {"pageid": 1}}}}, "'pages'"),
    ({"query": {"pages": ["A"]}}, "list of objects"),
    (_page(revisions=[{"revid": "x", "timestamp": "2024-01-01T00:00:00Z"}]), "'revid'"),
    (_page(revisions=[{"revid": 1}]), "'timestamp'"),
    (_page(revisions=[{"revid": 1, "timestamp": "yesterday"}]), "ISO 8601"),
    (_page(revisions=[{"revid": 1, "timestamp": "2024-01-01T00:00:00"}]), "UTC"),
    (
        _page(revisions=[{"revid": 1, "timestamp": "2024-01-01T00:00:00Z", "slots": []}]),
        "'slots'",
    ),
    ({"query": {}, "continue": {"rvcontinue": "1"}}, "leads on"),
    ({"errors": [7]}, "list of objects"),
    ({"query": {"pages": [{"pageid": [7], "title": "A"}]}}, "'pageid'"),
    ({"query": {"pages": [{"pageid": True, "title": "A"}]}}, "'pageid'"),
    ({"query": {"pages": [{"pageid": 10**30, "title": "A"}]}}, "'pageid'"),
    (b'{"query": {"pages": [{"pageid": %s}]}}' % (b"9" * 5000), "'pageid'"),
    (_page(revisions=[{"revid": 1, "timestamp": "0001-01-01T00:00:00+14:00"}]), "UTC"),
    (_page(revisions=[{"revid": 1, "timestamp": None}]), "'timestamp'"),
]


def test_unknown_shapes_stop_the_crawl(wiki: MediaWiki, web: Web) -> None:
    for number, (answer, what) in enumerate(UNKNOWN, 1):
        web.faults.clear()
        _answer_with(web, answer)
        with pytest.raises(SourceChanged, match=what):
            wiki.texts([number])


@pytest.mark.parametrize(("status", "error"), [(403, AccessRefused), (404, SourceUnavailable)])
def test_a_closed_api_is_no_dropped_item(
    status: int, error: type[SourceError], wiki: MediaWiki, web: Web
) -> None:
    web.faults.append(Fault("status", "wikipedia", "api.php", 100, status))
    with pytest.raises(error, match="API"):
        wiki.texts([1])


def test_without_the_exemption_robots_txt_closes_the_api(own: Settings) -> None:
    wiki = MediaWiki(Fetcher(own, {"wikipedia": "https://unused.example"}, 0))
    with pytest.raises(AccessRefused, match="robots.txt disallows"):
        wiki.texts([1])


def _revision(text: str | None, at: str = "2024-01-05", is_hidden: bool = False) -> Revision:
    moment = dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC)
    return Revision(7, 70, moment, text, is_hidden, moment)


def _document(revision: Revision) -> Document | Drop:
    return document(Edition(), "A", revision, event_time=revision.timestamp, date_kind="revised")


def test_a_page_of_another_language_has_that_language_in_its_id() -> None:
    german = Edition("de", "wikipedia_de", is_home=False)
    dates = {"event_time": _revision("a").timestamp, "date_kind": "revised"}
    found = document(german, "A", _revision("Text.\n== Literatur ==\nBuch"), **dates)
    assert isinstance(found, Document)
    assert (found.native_id, found.cluster_id, found.language) == ("de:7", "page:de:7", "de")
    assert found.url == "https://de.wikipedia.org/w/index.php?oldid=70"
    assert found.text == "Text."


def test_document_names_its_version_licence_and_authors() -> None:
    found = _document(_revision("'''A''' is b."))
    assert isinstance(found, Document)
    assert (found.text, found.native_id, found.version_id) == ("A is b.", "7", "70")
    assert (found.cluster_id, found.licence) == ("page:7", "CC-BY-SA-4.0")
    assert found.url == "https://en.wikipedia.org/w/index.php?oldid=70"
    assert "curid=7&action=history" in found.attribution and "“A”" in found.attribution
    earlier, later = (_document(_revision("a", at)) for at in ("2023-06-06", "2023-06-07"))
    assert isinstance(earlier, Document) and earlier.licence == "CC-BY-SA-3.0"
    assert isinstance(later, Document) and later.licence == "CC-BY-SA-4.0"


@pytest.mark.parametrize(
    ("revision", "reason"),
    [
        (_revision(None, is_hidden=True), "suppressed"),
        (_revision("#REDIRECT [[B]]"), "redirect_page"),
        (_revision("{{a " * 500), "parse_error"),
    ],
)
def test_what_is_no_document_is_dropped_with_its_reason(revision: Revision, reason: str) -> None:
    found = _document(revision)
    assert isinstance(found, Drop) and (found.native_id, found.reason) == ("7", reason)


def test_a_missing_text_is_not_taken_for_a_hidden_one() -> None:
    with pytest.raises(SourceChanged, match="its text"):
        _document(_revision(None))
