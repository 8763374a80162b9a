"""Answers with wrong values: each ends in items, counted drops, or an error of this project."""

import copy
import datetime as dt
import json
import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from core.corpus.questions import Question
from core.errors import ItemFailed, SourceUnavailable, TidemarkError
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document
from crawlers.crawling import crawl as crawl_module
from crawlers.questions import manifold
from crawlers.questions.contract import QuestionContext
from crawlers.questions.crawl import tidy
from crawlers.web.fetcher import Fetched, Fetcher
from crawlers.web.pacing import ApiRules, require_ok
from crawlers.web.urls import normalise
from simulator.server import Request
from simulator.sites import manifold as manifold_site
from simulator.world import World

MONTH = Month("2024-03")
WORLD = World(3, MONTH - 1, MONTH, stories_per_month=8)
NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
MAX_REQUESTS = 300
NUM_SEEDS = 10
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 1.5, 2**63, 10**40, float("inf"), "", " ", "x", "yes", "9" * 5_000,
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2024-03-05", "http://[", "\x00",
    [], {}, [None], [[]], [{}], {"a": None}, {"id": 1}, [1, 2], ["x"] * 3, "<b>x</b>",
)  # fmt: skip
BODIES = (b"", b"[" * 100_000, b"1" * 5_000, b"null", b"\xff\xfe", b'{"a": 1')


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else inner:
        yield from places(each, (*place, key))


def mutate(body: bytes, rng: random.Random) -> bytes:
    try:
        value = json.loads(body)
    except ValueError:
        cut = rng.randrange(len(body) + 1)
        return body[:cut] + rng.choice([b"", b"<div>", b"\xff", b'">'] * 3 + [body])
    for _ in range(rng.choice([1, 1, 2, 5])):
        *path, last = rng.choice([each for each in places(value) if each] or [("",)])
        node = value
        for key in path:
            node = node[key]
        if isinstance(node, dict) and rng.random() < 0.2:
            node.pop(last, None)
        elif isinstance(node, dict | list) and node:
            node[last] = copy.deepcopy(rng.choice(ODD))
    return json.dumps(value).encode() if rng.random() < 0.95 else rng.choice(BODIES)


class Mutating(Fetcher):
    def __init__(self, settings: Settings, sites: dict[str, Any], rng: random.Random) -> None:
        super().__init__(settings, dict.fromkeys(sites, "http://127.0.0.1:9"), 0, use_cache=False)
        self._served, self._rng, self._num_asked = sites, rng, 0
        self._of: dict[str, ApiRules] = {}

    def heed(self, key: str, rules: ApiRules) -> None:
        self._of[key] = rules

    def get(self, key: str, path: str, params: Any = None, **options: Any) -> Fetched:
        self._num_asked += 1
        if self._num_asked > MAX_REQUESTS:
            raise SourceUnavailable("the crawl does not end")
        url = normalise(self.base_url(key) + path, params)
        sent = {name.lower(): value for name, value in (options.get("headers") or {}).items()}
        response = self._ask(key, url, {"host": "127.0.0.1", **sent})
        while response.status in (301, 302):
            response = self._ask(key, response.headers["Location"], {"host": "127.0.0.1"})
        require_ok(response.status, url, self._of.get(key))
        headers = {name.lower(): value for name, value in response.headers.items()}
        for name in headers:
            if self._rng.random() < 0.05:
                headers[name] = self._rng.choice(["", "9" * 5_000, "-1", "x"])
        body = mutate(response.body, self._rng) if self._rng.random() < 0.4 else response.body
        fetched = Fetched(url, headers, body, NOW)
        if (is_busy := options.get("is_busy")) and is_busy(fetched):
            raise ItemFailed("http_5xx", "busy")
        return fetched

    def _ask(self, key: str, url: str, headers: dict[str, str]) -> Any:
        parts = urlsplit(url)
        query = parse_qs(parts.query, keep_blank_values=True)
        return self._served[key].respond(
            Request("GET", parts.path, query, headers, b"", parts.query)
        )


SOURCES: dict[str, tuple[Any, Any]] = {
    "manifold": (manifold, lambda: {"manifold": manifold_site.Site(WORLD)}),
}


def items_of(
    crawler: Any, sites: dict[str, Any], seed: int, tokens: Mapping[str, str]
) -> list[Any]:
    stated = {key: site.token for key, site in sites.items() if hasattr(site, "token")}
    given = {key: SecretStr(value) for key, value in {**stated, **tokens}.items()}
    settings = Settings(request_interval_s=0, tokens=given)
    fetcher = Mutating(settings, sites, random.Random(seed))
    if hasattr(crawler, "fetch_questions"):
        found = crawler.fetch_questions([MONTH - 1, MONTH], QuestionContext(settings, fetcher))
        items = [item for _, item in found]
        return [tidy(item) if isinstance(item, Question) else item for item in items]
    items = list(crawler.fetch_month(MONTH, CrawlContext(settings, fetcher)))
    for item in items:
        if isinstance(item, Document):
            crawl_module._row(item, crawler.INFO)
    return items


def check_answers(
    crawler: Any, sites: dict[str, Any], tokens: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Crawl with wrong answers of the sites, by key; any other end fails the test."""
    num_kept, num_errors = 0, 0
    for seed in range(NUM_SEEDS):
        try:
            items = items_of(crawler, sites, seed, tokens)
        except TidemarkError as error:
            assert "does not end" not in str(error)
            num_errors += 1
            continue
        num_kept += sum(isinstance(item, Question | Document) for item in items)
        assert all(isinstance(item.native_id, str) for item in items if hasattr(item, "native_id"))
    assert num_kept > 0 and num_errors < NUM_SEEDS


@pytest.mark.parametrize("source", SOURCES)
def test_no_answer_ends_in_anything_else(source: str) -> None:
    crawler, sites = SOURCES[source]
    check_answers(crawler, sites())
