import dataclasses
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from core.corpus.partition import list_sealed
from core.errors import (
    AccessRefused,
    MalformedInput,
    SourceChanged,
    SourceUnavailable,
    StorageError,
    UsageError,
)
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers import hackernews
from crawlers.contract import Document
from crawlers.questions.contract import list_question_sources
from crawlers.registry import list_all_sources
from crawlers.web import pacing
from extras.recording.recording import compare_live, fetch_items, load, record
from extras.recording.tests.replay import replay
from simulator.server import Fault, Request, Response, Web, serve, serve_sites
from simulator.sites.hackernews import Site as HackerNews
from simulator.world import World
from tests.crawlers.questions.scene import permit
from tests.tiers import few

MONTH = Month("2024-03")
TOKEN = "s3cret-t0ken-of-a-user"
CONTACT = "reader@example.org"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(3, MONTH - 1, MONTH)) as running:
        yield running


@pytest.fixture
def own(settings: Settings, web: Web) -> Settings:
    tokens = {key: SecretStr(site.token) for key, site in web.sites.items() if "token" in dir(site)}  # type: ignore[attr-defined]
    given = {"sites": dict(web.urls), "tokens": tokens, "request_interval_s": 0.0}
    return settings.model_copy(update=given)


def recorded(source: str, folder: Path, own: Settings, limit: int = 3) -> str:
    return record(source, MONTH, folder, Store(own.home, own.scratch), own, limit)


def crawled(source: str, own: Settings, limit: int = 3) -> list[Any]:
    fetcher = load(source).INFO.open_fetcher(own, use_cache=False)
    items = fetch_items(source, MONTH, own, fetcher, limit)
    times = {"retrieved_at": None}
    return [replace(each, **times) if hasattr(each, "retrieved_at") else each for each in items]


def require(source: str, own: Settings) -> None:
    """Skip a source of an extra that is not there; permit one that needs a permission."""
    if source not in [*list_all_sources(), *list_question_sources()]:
        pytest.skip(f"no extra has {source}")
    if load(source).INFO.permission:
        permit(Store(own.home), source)


def entries_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("[0-9]*.json"))]


@pytest.mark.parametrize(
    "source",
    few(
        [
            "hackernews", "arxiv", "polymarket", "git_posts:rust_weekly", "govuk", "manifold",
            "kalshi", "metaculus", "common_crawl",
        ],
        4,
    ),
)  # fmt: skip
def test_a_replayed_recording_gives_what_the_site_gave(
    source: str, own: Settings, tmp_path: Path
) -> None:
    require(source, own)
    found = recorded(source, tmp_path / "made", own)
    true = crawled(source, own)
    with replay(tmp_path / "made") as urls:
        replayed = crawled(source, own.model_copy(update={"sites": urls}))
    assert replayed == true
    assert sum(isinstance(item, Document) or hasattr(item, "options") for item in true) >= 3
    assert "came to its end" in found
    assert list_sealed(Store(own.home)) == []
    assert not (own.scratch / "http-cache").exists()


@pytest.mark.smoke
def test_the_readme_says_what_the_folder_holds(own: Settings, tmp_path: Path) -> None:
    recorded("wikipedia_new", folder := tmp_path / "made", own)
    readme = (folder / "README.txt").read_text("utf-8")
    entries = entries_of(folder)
    assert any(entry["url"].endswith("/robots.txt") for entry in entries)
    assert f"HTTP exchanges: {len(entries)}," in readme
    for text in ('"wikipedia_new"', "2024-03", "CC-BY-SA", "rights of their authors"):
        assert text in readme
    keys = {"url", "status", "headers", "retrieved_at", "body", "body_as"}
    assert all(set(entry) == keys for entry in entries)


class Telling(HackerNews):
    """A site that redirects once, sets a cookie, and shows what a user sent."""

    robots = f"# seen: {CONTACT}\nUser-agent: *\nAllow: /\n"

    def respond(self, request: Request) -> Response:
        if request.path.startswith("/api/v1/items/") and "again" not in request.raw_query:
            target = f"{request.path}?again={TOKEN}"
            return Response(302, {"Location": target})
        response = super().respond(request)
        told = json.dumps({"told": [TOKEN, CONTACT, request.headers["user-agent"]]})[1:-1]
        body = response.body.replace(b"{", b"{" + told.encode() + b",", 1)
        more = {"Set-Cookie": "id=sweet-session", "X-Client-IP": "192.0.2.7", "X-Seen": CONTACT}
        return replace(response, headers={**response.headers, **more}, body=body)


def test_no_secret_is_recorded_and_redirects_and_errors_are(
    settings: Settings, tmp_path: Path
) -> None:
    with serve_sites([Telling(World(3, MONTH - 1, MONTH))]) as web:
        web.faults.append(Fault("status", "hackernews", "search_by_date", status=503))
        own = settings.model_copy(
            update={
                "sites": dict(web.urls),
                "tokens": {"hackernews": SecretStr(TOKEN)},
                "contact": CONTACT,
                "request_interval_s": 0.0,
            }
        )
        recorded("hackernews", folder := tmp_path / "made", own)
    written = "".join(path.read_text("utf-8") for path in folder.iterdir())
    for secret in (TOKEN, CONTACT, "sweet-session", "192.0.2.7"):
        assert secret not in written
    assert {entry["status"] for entry in entries_of(folder)} == {200, 302, 503}
    assert "[contact]" in written
    with replay(folder) as sites:
        replayed = crawled("hackernews", own.model_copy(update={"sites": sites, "tokens": {}}))
    assert any(isinstance(item, Document) for item in replayed)


def test_a_recording_of_a_repository_has_the_contents_of_its_month_alone(
    own: Settings, tmp_path: Path
) -> None:
    source = "git_posts:rust_weekly"
    recorded(source, tmp_path / "made", own)
    folder = tmp_path / "made" / "repositories"
    assert {path.name for path in folder.iterdir()} == {
        "rust-lang+this-week-in-rust.json", "rust-lang+this-week-in-rust.pack",
    }  # fmt: skip
    assert "repositories" in (tmp_path / "made" / "README.txt").read_text("utf-8")
    assert not (own.scratch / "git").exists()  # the mirrors of crawls are left alone
    with replay(tmp_path / "made") as urls:
        there = own.model_copy(update={"sites": urls})
        assert crawled(source, there)
        fetcher = load(source).INFO.open_fetcher(there, use_cache=False)
        with pytest.raises((SourceUnavailable, StorageError)):  # another month's contents
            list(fetch_items(source, MONTH - 1, there, fetcher, 3))


def test_a_failed_crawl_is_recorded_with_its_error(own: Settings, web: Web, tmp_path: Path) -> None:
    web.faults.append(Fault("status", "hackernews", "search_by_date", times=99, status=500))
    try:
        found = recorded("hackernews", tmp_path / "made", own)
    finally:
        web.faults.clear()
    assert "ended with" in found
    assert "answered 500" in (tmp_path / "made" / "README.txt").read_text("utf-8")
    assert [entry["status"] for entry in entries_of(tmp_path / "made")][-1] == 500


def test_what_may_not_be_recorded_is_refused_before_a_request(
    own: Settings, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    asked = len(web.requests)
    with pytest.raises(UsageError, match="not empty"):
        recorded("hackernews", tmp_path, own)
    gated = dataclasses.replace(hackernews.INFO, permission="ask first")
    monkeypatch.setattr(hackernews, "INFO", gated)
    with pytest.raises(AccessRefused, match="ask first"):
        recorded("hackernews", tmp_path / "new", own)
    assert len(web.requests) == asked
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".json"]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("source", ["polymarket", "manifold", "hackernews", "kalshi", "metaculus"])
def test_a_live_response_is_compared_with_its_recording_by_one_request(
    source: str, own: Settings, web: Web, tmp_path: Path
) -> None:
    require(source, own)
    recorded(source, tmp_path / "made", own, limit=30)
    store = Store(own.home)
    site = web.sites[source]
    asked = len(web.requests)
    assert compare_live(tmp_path / "made", store, own) == []
    paths = [target for _, _, target in web.requests[asked:]]
    assert len([path for path in paths if path != "/robots.txt"]) == 1
    site.quirks["extra_fields"] = 1
    try:
        news = compare_live(tmp_path / "made", store, own)
    finally:
        site.quirks.clear()
    assert {each.what for each in news} == {"new"}
    assert not any(each.is_fault for each in news)


class Changed(HackerNews):
    def respond(self, request: Request) -> Response:
        response = super().respond(request)
        body = response.body.replace(b'"title"', b'"headline"')
        return replace(response, body=body.replace(b'"nbPages": ', b'"nbPages": "" , "nbp": '))


def test_what_is_missing_or_of_another_type_is_a_fault(
    own: Settings, settings: Settings, tmp_path: Path
) -> None:
    recorded("hackernews", tmp_path / "made", own)
    with serve_sites([Changed(World(3, MONTH - 1, MONTH))]) as web:
        there = own.model_copy(update={"sites": dict(web.urls)})
        found = compare_live(tmp_path / "made", Store(own.home), there)
        web.faults.append(Fault("status", "hackernews", "search_by_date", status=404))
        with pytest.raises(SourceChanged, match="answers 404"):
            compare_live(tmp_path / "made", Store(own.home), there)
    faults = {each.path: each.what for each in found if each.is_fault}
    assert faults == {
        "$.hits[].title": "missing",
        "$.hits[]._highlightResult.title": "missing",
        "$.nbPages": "another type",
    }


@pytest.mark.parametrize("damage", ["[1]", "{", '{"source": 1, "month": "never"}'])
def test_a_damaged_recording_is_refused(damage: str, own: Settings, tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text(damage)
    with pytest.raises(MalformedInput, match="not of a recording"):
        compare_live(tmp_path, Store(own.home), own)
