"""New repositories: the simulated API over loopback HTTP, texts compared with the world's."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from core.corpus import read_documents
from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers import github_api, github_new, pacing
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat, load_crawler
from crawlers.crawl import crawl_partition
from crawlers.github_new import INFO, MAX_FILES, fetch_month
from crawlers.http import Fetcher
from simulator.repositories import (
    HOSTILE,
    MODULES,
    ODDITIES,
    Repository,
    hostile_tarball,
    module_texts,
)
from simulator.server import Fault, Web, serve_sites
from simulator.sites.github_api import TOKEN, Site
from simulator.world import World

MONTH = Month("2024-02")
WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=24)
NUM_USEFUL = 4
Crawl = Callable[..., list[Item]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site]) as running:
        yield running


@pytest.fixture
def own(settings: Settings, web: Web) -> Settings:
    tokens = {"github_api": SecretStr(TOKEN)}
    return settings.model_copy(update={"sites": dict(web.urls), "tokens": tokens})


@pytest.fixture
def crawl(own: Settings) -> Crawl:
    def run(month: Month = MONTH, own: Settings = own, **options: int) -> list[Item]:
        fetcher = Fetcher(own, INFO.sites, 0, use_cache=False)
        return list(fetch_month(month, CrawlContext(own, fetcher, **options)))

    return run


def documents_of(items: list[Item]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def drops_of(items: list[Item]) -> Counter[str]:
    return Counter(item.reason for item in items if isinstance(item, Drop))


def searches(web: Web) -> list[dict[str, list[str]]]:
    return [
        parse_qs(urlsplit(target).query)
        for _, _, target in web.requests
        if target.startswith("/search/")
    ]


def created(number: int, at: dt.datetime) -> Repository:
    return Repository(500_000 + number, f"many/one-{number}", at, "MIT", is_gone=True)


def test_the_source_is_found_by_its_file() -> None:
    assert load_crawler("github_new").INFO is INFO


def test_a_month_holds_the_modules_of_its_new_repositories_as_they_were_at_its_end(
    crawl: Crawl,
) -> None:
    """Ten days later all of them were rewritten; of today's text nothing is here."""
    items = crawl()
    texts = {t for n in range(NUM_USEFUL) for t in module_texts(WORLD, MONTH, n).values()}
    assert len(texts) == NUM_USEFUL * MODULES
    assert {document.text for document in documents_of(items)} == texts
    assert drops_of(items) == {
        "generated_code": 3 * NUM_USEFUL,  # vendored, generated, minified
        "binary": NUM_USEFUL,
        "too_large": NUM_USEFUL,
        "empty": 1,
        "http_404": 1,
        "licence": 1,
        "outside_month": 1,
    }
    assert sum(drops_of(items).values()) - 5 * NUM_USEFUL == len(ODDITIES)


def test_every_field_of_a_document(crawl: Crawl, site: Site) -> None:
    first = documents_of(crawl())[0]
    name = first.native_id.partition(":")[0]
    repository = site.repositories[name]
    sha = repository.commits[-1].sha
    assert first.event_time == repository.created_at == MONTH.start
    assert first.text_as_of == repository.commits[-1].committed_at
    assert (first.date_kind, first.language, first.licence) == ("created", "code:python", "MIT")
    assert first.url == f"https://github.com/{name}/blob/{sha}/{first.title}"
    assert first.extra == {"commit": sha, "repository_id": repository.id}
    assert (first.cluster_id, first.attribution) == (f"repo:{name}", f"{name} contributors")
    assert re.fullmatch("[0-9a-f]{40}", first.version_id or "")
    tree = {entry.path: entry.sha for entry in repository.commits[-1].entries()}
    assert first.version_id == tree[first.title]  # as git names it


def test_a_month_is_half_open(crawl: Crawl) -> None:
    """One repository is created in the month's first second, one in its last."""
    times = sorted({d.event_time for d in documents_of(crawl())})
    assert (times[0], times[-1]) == (MONTH.start, MONTH.end - dt.timedelta(seconds=1))
    following = {d.native_id for d in documents_of(crawl(MONTH + 1))}
    assert not following & {d.native_id for d in documents_of(crawl())}


def test_the_licence_is_that_of_the_pinned_commit_not_todays(crawl: Crawl, site: Site) -> None:
    [drop] = [i for i in crawl() if isinstance(i, Drop) and i.reason == "licence"]
    repository = site.repositories[drop.native_id]
    assert repository.licence in ("MIT", "BSD-2-Clause", "BSD-3-Clause")
    assert b"GENERAL PUBLIC" in repository.commits[-1].files["LICENSE"][1]


def test_a_history_that_is_older_than_the_month_is_not_new_text(crawl: Crawl) -> None:
    [drop] = [i for i in crawl() if isinstance(i, Drop) and i.reason == "outside_month"]
    assert "its last commit claims 202" in drop.detail


# The search


def test_windows_are_halved_until_they_hold_no_more_than_1000(
    crawl: Crawl, site: Site, web: Web
) -> None:
    step = (MONTH.end - MONTH.start) / 2500
    for number in range(2500):
        at = (MONTH.start + number * step).replace(microsecond=0)
        site.repositories[f"many/one-{number}"] = created(number, at)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    items = crawl(limit=1)
    names = {item.native_id.partition(":")[0] for item in items}
    assert {f"many/one-{number}" for number in range(2500)} <= names
    asked = [query for query in searches(web) if "license:mit" in query["q"][0]]
    windows = {query["q"][0].split(" ")[0] for query in asked if int(query["page"][0]) > 1}
    assert len(windows) >= 3  # of the four quarters of the month
    assert not any(isinstance(item, Repeat) for item in items)  # no second is in two windows


def test_no_page_beyond_the_tenth_is_asked_for_and_the_tenth_is_not_page_0(
    crawl: Crawl, site: Site, web: Web
) -> None:
    for number in range(1000 - 3):  # and those under MIT that are there anyway
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    crawl(limit=1)
    asked = [query for query in searches(web) if "license:mit" in query["q"][0]]
    whole = [query for query in asked if "02-01T00:00:00Z..2024-02-29T23:59:59Z" in query["q"][0]]
    assert sorted(int(query["page"][0]) for query in whole) == list(range(1, 11))


def test_more_than_1000_in_one_second_are_listed_in_part_and_said_so(
    crawl: Crawl, site: Site, web: Web
) -> None:
    for number in range(1100):
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    items = crawl(limit=1)
    [cap] = [i for i in items if isinstance(i, Drop) and i.native_id.startswith("search:")]
    assert cap.reason == "sample_cap"
    assert "of which the search lists a part" in cap.detail
    listed = {item.native_id for item in items if item.native_id.startswith("many/")}
    assert 990 <= len(listed) <= 1000  # of the 1,000, some are the world's own
    assert not [t for _, _, t in web.requests if "page=11" in t]


def test_an_incomplete_search_is_asked_again(crawl: Crawl, site: Site, web: Web) -> None:
    whole = crawl()
    web.requests.clear()
    site.quirks["error_as_200"] = 2
    assert [item.native_id for item in crawl()] == [item.native_id for item in whole]
    assert len(searches(web)) == 3 + 2


def test_a_search_that_stays_incomplete_is_a_failure_and_the_other_windows_are_kept(
    crawl: Crawl, site: Site
) -> None:
    site.quirks["error_as_200"] = 5
    items = crawl()
    [failure] = [item for item in items if isinstance(item, Failure)]
    assert "license:mit" in failure.native_id
    assert documents_of(items)


def test_an_empty_page_where_items_follow_does_not_loop_and_loses_nothing(
    crawl: Crawl, site: Site, web: Web
) -> None:
    site.quirks["empty_page"] = 1
    assert len(documents_of(crawl())) == NUM_USEFUL * MODULES
    assert len(searches(web)) == 3 + 1


def test_an_item_that_moves_to_the_next_page_is_counted_once(crawl: Crawl, site: Site) -> None:
    for number in range(150):
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.quirks["moving_items"] = 1
    items = crawl()
    [repeat] = [item for item in items if isinstance(item, Repeat)]
    others = [item.native_id for item in items if item is not repeat]
    assert len(others) == len(set(others))


def test_fields_nobody_documented_and_fields_that_are_missing_do_no_harm(
    crawl: Crawl, site: Site
) -> None:
    site.quirks |= {"extra_fields": 5, "missing_fields": 5}
    assert len(documents_of(crawl())) == NUM_USEFUL * MODULES


def test_a_row_of_another_shape_is_a_drop(crawl: Crawl, web: Web) -> None:
    rows = [{"full_name": "../../etc", "id": 1}, {"full_name": "a/b"}, "x", None]
    body = json.dumps({"total_count": 4, "incomplete_results": False, "items": rows}).encode()
    web.faults.append(Fault("status", "github_api", "license%3Amit", 1, 200, body=body))
    items = crawl()
    assert drops_of(items)["parse_error"] == 4
    assert documents_of(items)


def test_a_search_of_another_shape_stops_the_crawl(crawl: Crawl, web: Web) -> None:
    web.faults.append(Fault("status", "github_api", "/search", 1, 200, body=b'{"items": []}'))
    with pytest.raises(SourceChanged, match="'total_count'"):
        crawl()


def test_a_repository_of_another_month_is_counted_not_kept(crawl: Crawl, web: Web) -> None:
    row = {"id": 1, "full_name": "a/b", "created_at": "2024-03-01T00:00:00Z"}
    body = json.dumps({"total_count": 1, "incomplete_results": False, "items": [row]}).encode()
    web.faults.append(Fault("status", "github_api", "license%3Amit", 1, 200, body=body))
    assert [i.native_id for i in crawl() if i.native_id == "a/b"] == ["a/b"]


# The sample


def test_a_sample_is_drawn_by_the_seed_from_several_repositories(crawl: Crawl) -> None:
    whole = crawl()
    first, again, other = (crawl(limit=4, seed=seed) for seed in (1, 1, 2))
    ids = [[d.native_id for d in documents_of(items)] for items in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert [len(kept) for kept in ids] == [4, 4, 4]
    assert len({d.cluster_id for d in documents_of(first)}) == NUM_USEFUL
    everything = {item.native_id.partition(":")[0] for item in whole}
    assert {item.native_id.partition(":")[0] for item in first} == everything


def test_what_the_sample_does_not_want_is_never_fetched(crawl: Crawl, web: Web) -> None:
    items = crawl(max_bytes=1)
    assert len(documents_of(items)) == 1
    tarballs = [target for _, _, target in web.requests if "/legacy.tar.gz/" in target]
    assert len(tarballs) <= 3  # the one it is from, and those that gave nothing
    assert drops_of(items)["sample_cap"] >= NUM_USEFUL - 1


def test_no_repository_gives_more_than_its_share(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_new, "MAX_FILES", 2)
    items = crawl()
    counts = Counter(document.cluster_id for document in documents_of(items))
    assert set(counts.values()) == {2}
    assert drops_of(items)["sample_cap"] >= (MODULES - 2) * NUM_USEFUL
    assert MAX_FILES == 10


def test_without_a_token_the_sample_is_small_and_says_so(
    crawl: Crawl, own: Settings, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_new, "MAX_REPOSITORIES_WITHOUT_TOKEN", 3)
    items = crawl(own=own.model_copy(update={"tokens": {}}))
    left = [i for i in items if isinstance(i, Drop) and "no token" in i.detail]
    assert len(left) == NUM_USEFUL + len(ODDITIES) - 3
    assert site.num_refused == 0


# Limits


def test_no_request_is_sent_above_a_limit(crawl: Crawl, site: Site) -> None:
    """What is left is said in each answer; when nothing is, the host is left alone."""
    site.limits = dict.fromkeys(site.limits, (7, 1.0))
    assert len(documents_of(crawl())) == NUM_USEFUL * MODULES
    assert site.num_refused == 0


def test_a_limit_that_lasts_ends_the_source_and_keeps_what_came_before(
    own: Settings, site: Site
) -> None:
    site.limits = dict.fromkeys(site.limits, (5, 3600.0))
    fetcher, found = Fetcher(own, INFO.sites, 0), []
    with pytest.raises(SourceUnavailable, match="asks for a pause of"):
        found.extend(fetch_month(MONTH, CrawlContext(own, fetcher)))
    assert documents_of(found)
    assert site.num_refused == 0


@pytest.mark.parametrize("status", [403, 429])
def test_a_secondary_limit_is_waited_for_not_dropped_as_http_403(
    status: int, crawl: Crawl, web: Web
) -> None:
    body = b'{"message": "You have exceeded a secondary rate limit."}'
    headers = {"Retry-After": "0"}
    web.faults.append(Fault("status", "github_api", "/commits", 2, status, headers, body))
    items = crawl()
    assert len(documents_of(items)) == NUM_USEFUL * MODULES
    assert "http_403" not in drops_of(items)


def test_a_secondary_limit_without_a_time_is_waited_for_too(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_api, "SECONDARY_PAUSE_S", 0.01)
    body = b'{"message": "You have exceeded a secondary rate limit."}'
    web.faults.append(Fault("status", "github_api", "/commits", 1, 403, {}, body))
    assert len(documents_of(crawl())) == NUM_USEFUL * MODULES


def test_a_403_that_is_no_limit_is_a_drop(crawl: Crawl, web: Web) -> None:
    body = b'{"message": "Repository access blocked"}'
    web.faults.append(Fault("status", "github_api", "/commits", 1, 403, {}, body))
    assert drops_of(crawl())["http_403"] == 1


def test_the_token_is_sent_to_the_api_and_not_to_codeload(own: Settings) -> None:
    class Recording(Site):
        seen: list[tuple[str, str]]

        def respond(self, request):  # type: ignore[no-untyped-def]
            self.seen.append((request.path, request.headers.get("authorization", "")))
            return super().respond(request)

    api, codeload = Recording(WORLD), Recording(WORLD)
    api.seen, codeload.seen = [], []
    with serve_sites([codeload]) as there, serve_sites([api]) as here:
        api.codeload_url = there.urls["github_codeload"]
        sites = {"github_api": here.urls["github_api"], **{"github_codeload": api.codeload_url}}
        mine = own.model_copy(update={"sites": sites})
        items = list(fetch_month(MONTH, CrawlContext(mine, Fetcher(mine, INFO.sites, 0))))
    assert len(documents_of(items)) == NUM_USEFUL * MODULES
    assert {token for _, token in api.seen} == {f"Bearer {TOKEN}"}
    assert len(codeload.seen) >= NUM_USEFUL
    assert {token for _, token in codeload.seen} == {""}
    assert TOKEN not in repr(items)


# Hostile archives


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_archive_harms_nothing_but_itself(
    number: int, crawl: Crawl, site: Site, web: Web
) -> None:
    expected = {
        "parent": "unsafe_path", "absolute": "unsafe_path", "links": "licence",
        "many": "too_large", "bomb": "too_large", "cut": "bad_archive",
    }  # fmt: skip
    name = documents_of(crawl())[0].native_id.partition(":")[0]
    pattern = f"^/{name}/legacy"
    web.faults.append(
        Fault("status", "github_codeload", pattern, 1, 200, body=hostile_tarball(HOSTILE[number]))
    )
    items = crawl()
    [drop] = [item for item in items if item.native_id == name]
    assert isinstance(drop, Drop)
    assert drop.reason == expected[HOSTILE[number]]
    assert len(documents_of(items)) == (NUM_USEFUL - 1) * MODULES


def test_the_sites_own_hostile_archives_are_all_refused(crawl: Crawl, site: Site) -> None:
    site.quirks["hostile_archive"] = 100
    assert not documents_of(crawl())


def test_a_tarball_beyond_the_cap_is_not_read(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_api, "MAX_TARBALL_BYTES", 1000)
    items = crawl()
    assert not documents_of(items)
    assert drops_of(items)["too_large"] >= NUM_USEFUL


# Whole partitions


def test_the_partition_seals_the_modules(own: Settings, store: Store) -> None:
    seal = crawl_partition("github_new", MONTH, store, own)
    rows = [row for table in read_documents(store, seal) for row in table.to_pylist()]
    texts = {t for n in range(NUM_USEFUL) for t in module_texts(WORLD, MONTH, n).values()}
    assert {row["text"] for row in rows} == texts


@pytest.mark.parametrize(
    "kind", ["status", "truncate", "disconnect", "redirect_loop", "redirect_off_host", "empty",
             "gzip_bomb", "wrong_charset"]
)  # fmt: skip
def test_one_faulty_answer_costs_one_repository_at_most(kind: str, crawl: Crawl, web: Web) -> None:
    web.faults.append(Fault(kind, "github_api", "/commits"))  # type: ignore[arg-type]
    items = crawl()
    assert len(documents_of(items)) >= (NUM_USEFUL - 1) * MODULES
    by_name = {item.native_id.partition(":")[0] for item in items}
    assert len(by_name) == NUM_USEFUL + len(ODDITIES)


@pytest.mark.parametrize("kind", ["status", "truncate", "disconnect", "empty", "wrong_charset"])
def test_a_fault_of_the_search_that_passes_costs_nothing(kind: str, crawl: Crawl, web: Web) -> None:
    web.faults.append(Fault(kind, "github_api", "/search"))  # type: ignore[arg-type]
    assert len(documents_of(crawl())) == NUM_USEFUL * MODULES


def test_a_second_run_gives_the_same_and_asks_again_only_for_what_was_not_there(
    own: Settings, web: Web, site: Site
) -> None:
    runs = []
    for _ in range(2):
        web.requests.clear()
        runs.append(list(fetch_month(MONTH, CrawlContext(own, Fetcher(own, INFO.sites, 0)))))
    assert runs[0] == runs[1]
    missing = [
        item.native_id
        for item in runs[0]
        if isinstance(item, Drop) and item.reason in ("empty", "http_404")
    ]
    again = [target.partition("?")[0] for _, _, target in web.requests if "robots" not in target]
    assert again and set(again) <= {f"/repos/{name}/commits" for name in missing}
