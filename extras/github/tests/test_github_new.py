import dataclasses
import datetime as dt
import json
import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Drop, Failure, Repeat
from crawlers.web.fetcher import Fetcher
from extras.github import api as github_api
from extras.github import github_new
from extras.github.github_new import INFO, MAX_FILES, fetch_month
from simulator.repositories import (
    HOSTILE,
    MODULES,
    ODDITIES,
    Repository,
    hostile_tarball,
    module_texts,
)
from simulator.server import Fault, Web, serve_sites
from simulator.sites import github_api as simulated
from simulator.sites.github_api import TOKEN, Site
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=24)
NUM_USEFUL = 4
TOKENS = {"github_api": SecretStr(TOKEN)}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of what GitHub's search gives, in ten pages as well."""
    assert (github_api.MAX_RESULTS, github_api.PER_PAGE) == (1000, 100)
    assert simulated.MAX_RESULTS == 1000
    monkeypatch.setattr(github_api, "MAX_RESULTS", 100)
    monkeypatch.setattr(github_api, "PER_PAGE", 10)
    monkeypatch.setattr(simulated, "MAX_RESULTS", 100)


def searches(web: Web) -> list[dict[str, list[str]]]:
    return [
        parse_qs(urlsplit(target).query)
        for _, _, target in web.requests
        if target.startswith("/search/")
    ]


def created(number: int, at: dt.datetime) -> Repository:
    return Repository(500_000 + number, f"many/one-{number}", at, "MIT", is_gone=True)


def test_a_month_holds_the_modules_of_its_new_repositories_as_they_were_at_its_end(
    whole: Whole,
) -> None:
    """All were rewritten ten days later; today's text must not appear."""
    items = whole.items
    texts = {t for n in range(NUM_USEFUL) for t in module_texts(WORLD, MONTH, n).values()}
    assert len(texts) == NUM_USEFUL * MODULES
    assert {document.text for document in documents_of(items)} == texts
    assert count_drops(items) == {
        "generated_code": 3 * NUM_USEFUL,  # vendored, generated, minified
        "binary": NUM_USEFUL,
        "too_large": NUM_USEFUL,
        "empty": 1,
        "http_404": 1,
        "licence": 1,
        "outside_month": 1,
    }
    assert sum(count_drops(items).values()) - 5 * NUM_USEFUL == len(ODDITIES)


def test_every_field_of_a_document(whole: Whole, site: Site) -> None:
    first = documents_of(whole.items)[0]
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


def test_windows_are_halved_until_they_hold_no_more_than_the_search_gives(
    crawl: Crawl, site: Site, web: Web
) -> None:
    step = (MONTH.end - MONTH.start) / 250
    for number in range(250):
        at = (MONTH.start + number * step).replace(microsecond=0)
        site.repositories[f"many/one-{number}"] = created(number, at)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    items = crawl(limit=1)
    names = {item.native_id.partition(":")[0] for item in items}
    assert {f"many/one-{number}" for number in range(250)} <= names
    asked = [query for query in searches(web) if "license:mit" in query["q"][0]]
    windows = {query["q"][0].split(" ")[0] for query in asked if int(query["page"][0]) > 1}
    assert len(windows) >= 3  # of the four quarters of the month
    assert not any(isinstance(item, Repeat) for item in items)  # no second is in two windows


def test_no_page_beyond_the_tenth_is_asked_for_and_the_tenth_is_not_page_0(
    crawl: Crawl, site: Site, web: Web
) -> None:
    for number in range(100 - 3):  # and those under MIT that are there anyway
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    crawl(limit=1)
    asked = [query for query in searches(web) if "license:mit" in query["q"][0]]
    whole = [query for query in asked if "02-01T00:00:00Z..2024-02-29T23:59:59Z" in query["q"][0]]
    assert sorted(int(query["page"][0]) for query in whole) == list(range(1, 11))


def test_more_than_the_search_gives_in_one_second_are_listed_in_part_and_said_so(
    crawl: Crawl, site: Site, web: Web
) -> None:
    for number in range(110):
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.limits = dict.fromkeys(site.limits, (10_000, 60.0))
    items = crawl(limit=1)
    [cap] = [i for i in items if isinstance(i, Drop) and i.native_id.startswith("search:")]
    assert cap.reason == "sample_cap"
    assert "of which the search lists a part" in cap.detail
    listed = {item.native_id for item in items if item.native_id.startswith("many/")}
    assert 90 <= len(listed) <= 100  # of the 100, some are the world's own
    assert not [t for _, _, t in web.requests if "page=11" in t]


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
    for number in range(15):
        site.repositories[f"many/one-{number}"] = created(number, MONTH.start)
    site.quirks["moving_items"] = 1
    items = crawl()
    [repeat] = [item for item in items if isinstance(item, Repeat)]
    others = [item.native_id for item in items if item is not repeat]
    assert len(others) == len(set(others))


def test_a_row_of_another_shape_is_a_drop(crawl: Crawl, web: Web) -> None:
    rows = [{"full_name": "../../etc", "id": 1}, {"full_name": "a/b"}, "x", None]
    body = json.dumps({"total_count": 4, "incomplete_results": False, "items": rows}).encode()
    web.faults.append(Fault("status", "github_api", "license%3Amit", 1, 200, body=body))
    items = crawl()
    assert count_drops(items)["parse_error"] == 4
    assert documents_of(items)


def test_totals_that_stay_huge_end_the_crawl(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_new, "MAX_SEARCHES", 20)
    body = b'{"total_count": 1%s, "incomplete_results": false, "items": []}' % (b"0" * 14)
    web.faults.append(Fault("status", "github_api", "^/search/.*page=[2-9]", 10**6, 200))
    body = body.replace(b"[]", b"[{}]")
    web.faults.append(Fault("status", "github_api", "^/search/", 10**6, 200, {}, body))
    with pytest.raises(SourceChanged, match="more than 20 searches"):
        crawl()


def test_a_new_repository_that_was_renamed_since_is_read_through_its_redirect(
    crawl: Crawl, site: Site, web: Web
) -> None:
    former = documents_of(crawl())[0].cluster_id
    name = str(former).removeprefix("repo:")
    row = site.repositories[name]
    site.renamed[name] = "new-owner/new-name"
    site.repositories["new-owner/new-name"] = dataclasses.replace(row, name="new-owner/new-name")
    again = {document.cluster_id for document in documents_of(crawl())}
    assert {former} <= again and f"/repositories/{row.id}/" in str(web.requests)


def test_a_sample_is_drawn_from_several_repositories(crawl: Crawl) -> None:
    first = crawl(limit=4, seed=1)
    assert len(documents_of(first)) == 4
    assert len({d.cluster_id for d in documents_of(first)}) == NUM_USEFUL
    everything = {item.native_id.partition(":")[0] for item in crawl()}
    assert {item.native_id.partition(":")[0] for item in first} == everything


def test_what_the_sample_does_not_want_is_never_fetched(crawl: Crawl, web: Web) -> None:
    items = crawl(max_bytes=1)
    assert len(documents_of(items)) == 1
    tarballs = [target for _, _, target in web.requests if "/legacy.tar.gz/" in target]
    assert len(tarballs) <= 3  # the repository of the text, and those without text
    assert count_drops(items)["sample_cap"] >= NUM_USEFUL - 1


def test_no_repository_gives_more_than_its_share(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_new, "MAX_FILES", 2)
    items = crawl()
    counts = Counter(document.cluster_id for document in documents_of(items))
    assert set(counts.values()) == {2}
    assert count_drops(items)["sample_cap"] >= (MODULES - 2) * NUM_USEFUL
    assert MAX_FILES == 10


def test_without_a_token_the_sample_is_small_and_says_so(
    crawl: Crawl, own: Settings, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_new, "MAX_REPOSITORIES_WITHOUT_TOKEN", 3)
    items = crawl(own=own.model_copy(update={"tokens": {}}))
    left = [i for i in items if isinstance(i, Drop) and "no token" in i.detail]
    assert len(left) == NUM_USEFUL + len(ODDITIES) - 3
    assert site.num_refused == 0


@pytest.mark.long
def test_no_request_is_sent_above_a_limit(whole: Whole, site: Site) -> None:
    """Each response states the remaining requests; at zero the host gets none."""
    site.limits = dict.fromkeys(site.limits, (7, 1.0))
    assert len(documents_of(whole.items)) == NUM_USEFUL * MODULES
    assert site.num_refused == 0


def test_a_limit_that_lasts_ends_the_source_and_keeps_what_came_before(
    own: Settings, site: Site
) -> None:
    site.limits = dict.fromkeys(site.limits, (5, 3600.0))
    fetcher = Fetcher(own, INFO.sites, 0)
    found = []
    with pytest.raises(SourceUnavailable, match="asks for a pause of"):
        found.extend(fetch_month(MONTH, CrawlContext(own, fetcher)))
    assert documents_of(found)
    assert site.num_refused == 0


@pytest.mark.parametrize(
    ("status", "headers"), [(403, {"Retry-After": "0"}), (429, {"Retry-After": "0"}), (403, {})]
)
def test_a_secondary_limit_is_waited_for_not_dropped_as_http_403(
    status: int, headers: dict[str, str], crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_api, "SECONDARY_PAUSE_S", 0.01)
    body = b'{"message": "You have exceeded a secondary rate limit."}'
    web.faults.append(Fault("status", "github_api", "/commits", 2, status, headers, body))
    items = crawl()
    assert len(documents_of(items)) == NUM_USEFUL * MODULES
    assert "http_403" not in count_drops(items)


def test_a_403_that_is_no_limit_is_a_drop(crawl: Crawl, web: Web) -> None:
    body = b'{"message": "Repository access blocked"}'
    web.faults.append(Fault("status", "github_api", "/commits", 1, 403, {}, body))
    assert count_drops(crawl())["http_403"] == 1


def test_the_token_is_sent_to_the_api_and_not_to_codeload(own: Settings) -> None:
    class Recording(Site):
        seen: list[tuple[str, str]]

        def respond(self, request):  # type: ignore[no-untyped-def]
            self.seen.append((request.path, request.headers.get("authorization", "")))
            return super().respond(request)

    api = Recording(WORLD)
    codeload = Recording(WORLD)
    api.seen = []
    codeload.seen = []
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


def test_hostile_archives_harm_nothing_but_themselves(crawl: Crawl, web: Web) -> None:
    expected = {
        "parent": "unsafe_path", "absolute": "unsafe_path", "links": "licence",
        "many": "too_large", "bomb": "too_large", "cut": "bad_archive",
    }  # fmt: skip
    assert expected.keys() == {*HOSTILE}
    names = sorted({d.native_id.partition(":")[0] for d in documents_of(crawl())})
    for kinds in (HOSTILE[:3], HOSTILE[3:]):
        hostile = dict(zip(names, kinds, strict=False))
        web.faults = [
            Fault(
                "status", "github_codeload", f"^/{name}/legacy", 1, 200, body=hostile_tarball(kind)
            )
            for name, kind in hostile.items()
        ]
        items = crawl()
        drops = {item.native_id: item.reason for item in items if isinstance(item, Drop)}
        for name, kind in hostile.items():
            assert drops[name] == expected[kind], kind
        assert len(documents_of(items)) == (NUM_USEFUL - 3) * MODULES


def test_a_tarball_beyond_the_cap_is_not_read(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_api, "MAX_TARBALL_BYTES", 1000)
    items = crawl()
    assert not documents_of(items)
    assert count_drops(items)["too_large"] >= NUM_USEFUL
