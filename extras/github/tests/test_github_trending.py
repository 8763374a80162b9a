import datetime as dt
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Drop, Failure, Repeat
from crawlers.crawling.crawl import crawl_partition
from crawlers.web.fetcher import Fetcher
from extras.github import github_trending
from extras.github.github_trending import INFO, most_starred, read_links
from simulator.repositories import TRENDING, trending_repositories
from simulator.server import Fault, Request, Web, serve_sites
from simulator.sites import github, github_api
from simulator.world import World
from tests.crawlers.conftest import Crawl, documents_of, reasons_of, refused, rows_of

MONTH = Month("2024-02")
WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=12)
NAMES = [repository.name for repository in trending_repositories(WORLD)]
# Number 2 is under Apache-2.0, number 3 has no README, number 4 did nothing in February.
GOOD = [0, 1, 5]
TOKENS = {"github_api": SecretStr(github_api.TOKEN)}


@pytest.fixture(autouse=True)
def recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github_trending, "RECENT_DAYS", 100_000)


@pytest.fixture
def old(recent: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(github_trending, "RECENT_DAYS", 40)


@pytest.fixture
def site() -> github.Site:
    return github.Site(WORLD)


@pytest.fixture
def api() -> github_api.Site:
    return github_api.Site(WORLD)


@pytest.fixture
def web(site: github.Site, api: github_api.Site) -> Iterator[Web]:
    with serve_sites([site, api, github_api.Archive(WORLD)]) as running:
        yield running


def test_documents_are_the_readmes_of_the_months_end(crawl: Crawl) -> None:
    items = crawl()
    documents = documents_of(items)
    assert [document.native_id for document in documents] == [NAMES[n] for n in GOOD]
    for number, document in zip(GOOD, documents, strict=True):
        story = WORLD.story(MONTH, "github_trending", number)
        assert all(paragraph in document.text for paragraph in story.paragraphs)
        assert document.text.startswith(f"# {story.title}\n")
        assert "See the guide." in document.text
        assert "example.org" not in document.text
        assert document.event_time == MONTH.end - dt.timedelta(seconds=1)
    assert reasons_of(items) == {
        NAMES[2]: "licence", NAMES[3]: "empty", NAMES[4]: "outside_month"
    }  # fmt: skip


def test_every_field_of_a_document(crawl: Crawl, api: github_api.Site) -> None:
    first = documents_of(crawl())[0]
    commit = next(c for c in api.repositories[NAMES[0]].commits if c.committed_at < MONTH.end)
    assert (first.date_kind, first.licence, first.language) == ("committed", "MIT", None)
    assert first.url == f"https://github.com/{NAMES[0]}/blob/{commit.sha}/README.md"
    assert first.version_id == {e.path: e.sha for e in commit.entries()}["README.md"]
    assert first.text_as_of == first.event_time == commit.committed_at
    assert first.extra == {"commit": commit.sha, "list": "daily"}


def test_a_readme_in_another_markup_is_read(crawl: Crawl) -> None:
    story = WORLD.story(Month("2024-03"), "github_trending", 4)
    [document] = [d for d in documents_of(crawl(Month("2024-03"))) if d.native_id == NAMES[4]]
    assert document.text == "\n\n".join([story.title, *story.paragraphs])


def test_robots_txt_closes_the_list_by_month_so_that_of_the_day_is_taken(
    crawl: Crawl, web: Web
) -> None:
    assert documents_of(crawl())
    pages = [target for key, _, target in web.requests if key == "github"]
    assert pages == ["/robots.txt", "/trending/python"]


def test_where_robots_txt_leaves_it_open_the_list_by_month_is_taken(
    crawl: Crawl, site: github.Site, web: Web
) -> None:
    site.robots = None
    documents = documents_of(crawl())
    assert {document.extra["list"] for document in documents} == {"monthly"}
    assert "/trending/python?since=monthly" in [target for _, _, target in web.requests]


@pytest.mark.parametrize(("status", "says"), [(200, "no row"), (404, "is gone")])
def test_a_list_without_rows_is_an_alarm_not_an_empty_month(
    status: int, says: str, crawl: Crawl, web: Web
) -> None:
    page = b"<html><body>It looks like we don't have any trending repositories.</body></html>"
    web.faults.append(Fault("status", "github", "/trending", 1, status, body=page))
    with pytest.raises(SourceChanged, match=says):
        crawl()


def test_a_list_that_robots_txt_closes_is_not_asked_for(
    crawl: Crawl, site: github.Site, web: Web
) -> None:
    site.robots = "User-agent: *\nDisallow: /trending\n"
    with pytest.raises(SourceChanged, match=r"robots.txt disallows"):
        crawl()
    assert [target for key, _, target in web.requests if key == "github"] == ["/robots.txt"]


def test_an_older_month_is_rebuilt_from_stars_not_from_todays_page(
    old: None, own: Settings, store: Store, web: Web
) -> None:
    seal = crawl_partition("github_trending", MONTH, store, own)
    rows = rows_of(store, seal)
    assert {row["native_id"] for row in rows} == {NAMES[n] for n in GOOD}
    assert {json.loads(row["extra"])["list"] for row in rows} == {"archive"}
    assert not [target for key, _, target in web.requests if "trending" in target]
    hours = [target for key, _, target in web.requests if key == "gharchive"][1:]
    assert len(hours) == github_trending.NUM_HOURS
    assert all(re.fullmatch("/2024-02-[0-9]{2}-[1-9]?[0-9].json.gz", hour) for hour in hours)


@pytest.fixture
def context(own: Settings) -> CrawlContext:
    return CrawlContext(own, Fetcher(own, INFO.sites, 0))


def test_the_hours_are_drawn_by_the_seed(context: CrawlContext) -> None:
    contexts = [replace(context, seed=seed) for seed in (1, 1, 2)]
    drawn = [github_trending.draw_hours(MONTH, each) for each in contexts]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(hour in MONTH for hour in drawn[0])


def test_the_most_starred_come_first_and_pushes_are_no_stars(
    old: None, context: CrawlContext
) -> None:
    assert list(github_trending.most_starred(MONTH, context, 3)) == NAMES[:3]


def test_an_hour_that_is_missing_is_counted_and_no_hour_at_all_is_no_empty_month(
    old: None, crawl: Crawl, web: Web
) -> None:
    web.faults.append(Fault("status", "gharchive", "json", 1, 404))
    items = crawl()
    assert [key for key in reasons_of(items) if key.startswith("hour:")]
    assert len(documents_of(items)) == len(GOOD)
    web.faults.append(Fault("status", "gharchive", "json", 99, 404))
    with pytest.raises(SourceUnavailable, match="gave none of 6 hours"):
        crawl()


def _hour(**stars: int) -> bytes:
    lines = (
        json.dumps({"type": "WatchEvent", "repo": {"name": f"{name}/{name}"}})
        for name, number in stars.items()
        for _ in range(number)
    )
    return gzip.compress("\n".join(lines).encode())


def test_an_hour_whose_stars_are_lost_is_not_used_and_counted(
    old: None, context: CrawlContext, web: Web
) -> None:
    for body in (_hour(lost=84), _hour(b=500, c=300), _hour(lost=80), _hour(), _hour(c=201, d=1)):
        web.faults.append(Fault("status", "gharchive", "json", 1, 200, body=body))
    *names, first, second, third = github_trending.most_starred(MONTH, context, 2)
    assert names == ["c/c", "b/b"]
    details = [f"{number} stars in an hour, of some 885" for number in (84, 80, 0)]
    for drop, detail in zip((first, second, third), details, strict=True):
        assert isinstance(drop, Drop) and drop.reason == "damaged"
        assert drop.native_id.startswith("hour:2024-02-") and detail in drop.detail


def test_months_in_which_nearly_all_stars_are_lost_are_refused(
    old: None, settings: Settings
) -> None:
    """Since 2026 all hours have few stars, so that none is fuller than the others."""
    months = [Month("2025-04"), Month("2026-05")]
    world = World(3, months[0], months[-1])
    with serve_sites([github_api.Archive(world)]) as web:
        own = settings.model_copy(update={"sites": dict(web.urls)})
        context = CrawlContext(own, Fetcher(own, INFO.sites, 0, use_cache=False))
        for month in (*months, Month("2025-05")):
            assert all(isinstance(row, str) for row in most_starred(month, context, 3))
        web.faults.append(Fault("status", "gharchive", "json", 99, 200, body=_hour(a=422)))
        assert list(most_starred(months[0], context, 3)) == ["a/a"]
        with pytest.raises(SourceUnavailable, match="422 stars in an hour, of some 8000"):
            list(most_starred(months[-1], context, 3))


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"no gzip", "bad_archive"),
        (gzip.compress(b"x" * 10_000, mtime=0)[:-20], "bad_archive"),
        (gzip.compress(bytes(200_000), mtime=0), "too_large"),
    ],
    ids=["no gzip", "truncated", "too large"],
)
def test_a_hostile_hour_is_refused(
    packed: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_trending, "MAX_UNPACKED_BYTES", 100_000)
    with refused(reason):
        list(github_trending.read_stars(packed))


def test_lines_that_are_no_star_are_passed_over() -> None:
    lines = [b'{"type":"WatchEvent"', b'["WatchEvent"]', b'{"type":"WatchEvent","repo":3}',
             b'{"type":"WatchEvent","repo":{"id":7,"name":["a/b"]}}', b'{"repo":"WatchEvent"}',
             b'{"type":"PushEvent","repo":{"name":"a/b"},"payload":"\\"WatchEvent\\""}',
             b'{"type":"WatchEvent","repo":{"name":"c/d"}}']  # fmt: skip
    assert list(github_trending.read_stars(gzip.compress(b"\n".join(lines)))) == [("c/d", "c/d")]


def test_the_stars_of_a_renamed_repository_are_counted_together(
    old: None, context: CrawlContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    stars = [(7, "old/one")] * 3 + [(8, "other/one")] * 2 + [(7, "new/one")] + [("x", "no/id")] * 3
    monkeypatch.setattr(
        github_trending, "read_stars", lambda _: (github_trending.Star(*star) for star in stars)
    )
    found = list(github_trending.most_starred(MONTH, context, 9))
    assert found == ["new/one", "no/id", "other/one"]


def _list(web: Web, *links: str) -> None:
    row = '<article class="Box-row"><h2><a href="{}">x</a></h2></article>'
    page = "".join(row.format(link) for link in links).encode()
    web.faults.append(Fault("status", "github", "/trending", 1, 200, body=page))


def test_a_renamed_repository_is_read_through_its_redirect_and_once(
    crawl: Crawl, web: Web, api: github_api.Site
) -> None:
    api.renamed["former/name"] = NAMES[0]
    _list(web, "/former/name", "/" + NAMES[1], "/" + NAMES[0])
    items = crawl()
    assert [document.native_id for document in documents_of(items)] == ["former/name", NAMES[1]]
    [repeat] = [item for item in items if isinstance(item, Repeat)]
    assert repeat.native_id == NAMES[0] and "another name of former/name" in repeat.detail
    number = api.repositories[NAMES[0]].id
    assert [path for _, _, path in web.requests if path.startswith(f"/repositories/{number}/")]


def test_a_redirect_to_another_host_is_not_followed(
    crawl: Crawl, web: Web, api: github_api.Site
) -> None:
    headers = {"Location": "https://elsewhere.example/repositories/7/commits"}
    web.faults.append(Fault("status", "github_api", f"^/repos/{NAMES[0]}/", 1, 301, headers))
    [failure] = [item for item in crawl() if isinstance(item, Failure)]
    assert failure.native_id == NAMES[0] and "none of this source's hosts" in failure.detail


def test_rows_that_name_no_repository_or_one_twice_are_counted(crawl: Crawl, web: Web) -> None:
    _list(web, "/" + NAMES[0], "/" + NAMES[0], "/../..//etc", "https://evil.example/x/y", "")
    items = crawl()
    assert reasons_of(items) == dict.fromkeys(["row:2", "row:3", "row:4"], "parse_error")
    assert [item.native_id for item in items if isinstance(item, Repeat)] == [NAMES[0]]
    assert len(documents_of(items)) == 1


def test_the_link_of_a_row_is_that_of_its_heading_not_the_sponsors() -> None:
    page = github.Site(WORLD).respond(Request("GET", "/trending/python", {}, {}, b"")).body
    assert read_links(page.decode()) == [f"/{name}" for name in NAMES]
    other = '<article class="Other"><h2><a href="/a/b">x</a></h2></article><h2><a href="/c/d">'
    assert read_links(other) == []


def test_without_a_token_the_sample_is_small_and_says_so(
    crawl: Crawl, own: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_trending, "MAX_REPOSITORIES_WITHOUT_TOKEN", 2)
    items = crawl(own=own.model_copy(update={"tokens": {}}))
    left = [item for item in items if isinstance(item, Drop) and "no token" in item.detail]
    assert len(left) == TRENDING - 2


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("trees", b'{"sha": "x", "tree": [], "truncated": true}', "too_large"),
        ("blobs", b'{"encoding": "none", "content": ""}', "parse_error"),  # as of files above 1 MB
        ("blobs", b'{"encoding": "base64", "content": "!"}', "parse_error"),
        ("blobs", b'{"encoding": "base64", "content": "TUlU\\n"}', "damaged"),
        ("blobs", b'{"encoding": "base64"}', "parse_error"),
    ],
)
def test_contents_that_are_not_what_was_asked_for_are_drops(
    kind: str, body: bytes, reason: str, crawl: Crawl, web: Web
) -> None:
    web.faults.append(Fault("status", "github_api", f"/git/{kind}/", 1, 200, body=body))
    assert reasons_of(crawl())[NAMES[0]] == reason


@pytest.mark.parametrize(
    ("month", "label"),
    [
        ("2025-04", None),
        ("2025-05", "gharchive-losses"),
        ("2025-09", "gharchive-losses"),
        ("2025-10", "gharchive-payloads"),
        ("2026-02", "gharchive-few-stars"),
    ],
)
def test_a_month_has_the_regime_of_the_archive(month: str, label: str | None) -> None:
    assert INFO.regime_of(Month(month)) == label
