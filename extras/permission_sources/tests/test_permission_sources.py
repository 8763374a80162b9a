"""Gated sources: no request without a permission; then the pages that a standard list names."""

import datetime as dt
import json
import re
import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from core.corpus.permissions import record_permission
from core.errors import AccessRefused, SourceChanged
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Document
from crawlers.crawling.crawl import crawl_partition
from crawlers.crawling.source_list import list_source_facts
from crawlers.registry import list_gated_sources, load_crawler
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from extras.permission_sources import reddit
from instruments.planning import plan_crawl
from simulator.server import Fault, Web, serve
from simulator.world import World
from tests.crawlers.clock import SimulatedTime
from tests.crawlers.conftest import rows_of
from tests.tiers import needs_extra

MONTH = Month("2024-02")
LATER = str(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=9))
SITES = ("ao3", "bbc", "yahoo_finance")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(7, MONTH - 1, MONTH, stories_per_month=6)) as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "_pause_s", lambda *_: 0.0)


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    asked: list[object] = []

    def refuse(*args: object, **kwargs: object) -> None:
        asked.append(args)
        raise OSError("a socket was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def permit(store: Store, source: str) -> None:
    record_permission(store, source, "A. Smith, 3 May", LATER)


@pytest.mark.smoke
@pytest.mark.parametrize("source", list_gated_sources())
@pytest.mark.parametrize("until", [None, "2020-01-01"])
def test_without_a_permission_in_force_not_even_a_name_is_looked_up(
    source: str, until: str | None, settings: Settings, store: Store, deaf: list[object]
) -> None:
    if until:
        text = f'{{"source": "{source}", "note": "n", "until": "{until}", '
        text += '"recorded_at": "2019-01-01T00:00:00Z"}'
        store.write_bytes(f"permissions/{source}.json", text.encode())
    with pytest.raises(AccessRefused, match="none is recorded" if not until else "ended") as caught:
        crawl_partition(source, MONTH, store, settings)
    assert re.search("stands? in for it|import html", str(caught.value))
    assert deaf == []


def test_a_socket_that_is_used_is_noticed(
    settings: Settings, store: Store, deaf: list[object], clock: SimulatedTime
) -> None:
    permit(store, "bbc")
    with pytest.raises(Exception, match="bbc"):
        crawl_partition("bbc", MONTH, store, settings.model_copy(update={"sites": {}}))
    assert deaf


def test_default_runs_and_deployments_leave_them_out(settings: Settings, store: Store) -> None:
    permit(store, "bbc")
    assert len(list_gated_sources()) == 6
    partitions = plan_crawl(None, [MONTH], settings).partitions
    assert not {source for source, _ in partitions} & {*list_gated_sources()}
    assert plan_crawl(["bbc"], [MONTH], settings).partitions == [("bbc", MONTH)]


@pytest.mark.smoke
@pytest.mark.parametrize("source", SITES)
def test_with_a_permission_the_listed_pages_are_read(
    source: str, own: Settings, store: Store, web: Web
) -> None:
    permit(store, source)
    seal = crawl_partition(source, MONTH, store, own)
    texts = {row["text"] for row in rows_of(store, seal)}
    articles = web.sites[source].newsroom.of_month(MONTH)  # type: ignore[attr-defined]
    kept = [each for each in articles if each.oddity in ("", "elsewhere")]
    assert texts == {article.text for article in kept}
    manifest: Any = seal.manifest
    assert manifest["permission"]["note"] == "A. Smith, 3 May"
    dropped = Counter(manifest["dropped"])
    assert dropped["edited_later"] == 1 and dropped["http_404"] == 1 and dropped["no_date"] >= 1


def test_pages_without_text_are_a_change(own: Settings, store: Store, web: Web) -> None:
    permit(store, "bbc")
    stated = b'<script type="application/ld+json">{"datePublished": "2024-02-08"}</script>'
    page = b"<html><head>%s</head><body><p>Please enable scripts</p></body></html>" % stated
    web.faults.append(Fault("status", "bbc", "^/articles", 99, 200, {}, page))
    with pytest.raises(SourceChanged, match="has no text"):
        crawl_partition("bbc", MONTH, store, own)
    web.faults.clear()


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        ("quora", "no public interface"), ("wattpad", "no public interface"),
        ("reddit", "TIDEMARK_TOKENS__REDDIT"),
    ],
)  # fmt: skip
def test_without_an_interface_or_a_token_a_permission_does_not_suffice(
    source: str, lacks: str, settings: Settings, store: Store, deaf: list[object]
) -> None:
    permit(store, source)
    with pytest.raises(AccessRefused, match=lacks):
        crawl_partition(source, MONTH, store, settings)
    assert deaf == []


def test_reddits_documented_answer_is_read(settings: Settings, web: Web) -> None:
    def post(name: str, **more: object) -> dict[str, object]:
        known = {"name": name, "title": "Why?", "selftext": "Because.", "created_utc": 1707400000.0}
        return {"kind": "t3", "data": {**known, "edited": False, **more}}

    children = [
        post("t3_a"), post("t3_b", selftext="[removed]"), post("t3_c", selftext=""),
        post("t3_d", edited=1717400000.0), post("t3_e", created_utc=1600000000.0), post("t3_a"),
    ]  # fmt: skip
    body = json.dumps({"kind": "Listing", "data": {"after": None, "children": children}}).encode()
    web.faults.append(Fault("status", "bbc", "^/r/", 99, 200, {}, body))
    given = {
        "sites": {"reddit": web.urls["bbc"]},
        "tokens": {"reddit": SecretStr("a-b-token")},
    }
    own = settings.model_copy(update=given)
    context = CrawlContext(own, Fetcher(own, reddit.INFO.sites, 0, use_cache=False))
    items = list(load_crawler("reddit").fetch_month(MONTH, context))
    web.faults.clear()
    assert [each.text for each in items if isinstance(each, Document)] == ["Because."] * 4
    reasons = Counter(getattr(each, "reason", "kept") for each in items)
    assert reasons["deleted"] == reasons["empty"] == reasons["edited_later"] == 4


@needs_extra("more_sources")
def test_a_listing_has_the_status_and_the_stand_ins(settings: Settings) -> None:
    facts = {each.source: each for each in list_source_facts(settings)}
    assert (facts["bbc"].status, facts["bbc"].licence) == ("needs permission", "LicenseRef-BBC")
    assert {"global_voices", "wikinews"} <= set(facts["bbc"].stand_ins)
