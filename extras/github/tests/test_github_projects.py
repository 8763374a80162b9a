import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator
from typing import cast

import pytest

from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import DROP_REASONS, CrawlContext, Drop, Failure, Repeat
from crawlers.web.fetcher import Fetcher
from extras.github import github_projects
from extras.github.github_projects import INFO, fetch_month, read_projects
from simulator.server import Fault, Web, serve_sites
from simulator.sites.github import REPOSITORIES, YOUNG, Site
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of

WORLD = World(0, Month("2024-01"), Month("2024-04"))
MONTH = Month("2024-03")
GIVING = [name for name, licence in REPOSITORIES.items() if not licence.startswith("GPL")]


@pytest.fixture(scope="module")
def shared_web() -> Iterator[Web]:
    with serve_sites([Site(WORLD)]) as running:
        yield running


@pytest.fixture
def web(shared_web: Web) -> Iterator[Web]:
    yield shared_web
    shared_web.faults.clear()
    shared_web.requests.clear()


@pytest.fixture
def few_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crawl only the simulator's projects; others would cost a failed request each."""
    monkeypatch.setattr(github_projects, "read_projects", lambda: list(REPOSITORIES))


def test_the_list_of_projects_is_sound() -> None:
    projects = read_projects()
    assert len(projects) == len({project.lower() for project in projects}) == 75
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", project) for project in projects)
    assert set(REPOSITORIES) <= set(projects)  # else the simulated source is empty


@pytest.mark.long
def test_a_month_holds_what_was_added_or_rewritten_in_it(crawl: Crawl) -> None:
    items = crawl()
    documents = documents_of(items)
    assert Counter(d.cluster_id for d in documents) == {f"repo:{name}": 6 for name in GIVING}
    numbers = {300 * list(REPOSITORIES).index(name) + n for name in GIVING for n in range(6)}
    assert {d.text for d in documents} == {WORLD.module(MONTH, "github", n) for n in numbers}
    assert all(document.event_time in MONTH for document in documents)
    assert count_drops(items) == {
        "deleted": len(read_projects()) - len(REPOSITORIES),
        "licence": 1,
        "outside_month": len(GIVING),
        "generated_code": 3 * len(GIVING),
        "unsafe_path": 2 * len(GIVING),
    }
    assert set(count_drops(items)) <= set(DROP_REASONS)


def test_every_field_of_a_document(crawl: Crawl, few_projects: None) -> None:
    started = dt.datetime.now(dt.UTC)
    documents = documents_of(crawl(Month("2024-02")))
    by_name = {document.native_id: document for document in documents}
    added = by_name["pallets/flask:src/records_2024-02_0.py"]
    assert added.event_time == added.text_as_of == Month("2024-02").start
    assert (added.date_kind, added.language) == ("committed", "code:python")
    assert (added.licence, added.attribution) == ("BSD-3-Clause", "pallets/flask contributors")
    assert (added.cluster_id, added.title) == ("repo:pallets/flask", "src/records_2024-02_0.py")
    assert re.fullmatch("[0-9a-f]{40}", added.version_id or "")
    assert re.fullmatch(
        "https://github.com/pallets/flask/blob/[0-9a-f]{40}/src/records_2024-02_0.py", added.url
    )
    assert started <= added.retrieved_at <= dt.datetime.now(dt.UTC)
    assert added.extra["changed_ratio"] is None
    assert added.extra["initial_import"] is False

    rewritten = by_name["pallets/flask:src/records_2024-01_1.py"]
    assert rewritten.event_time == dt.datetime(2024, 2, 15, tzinfo=dt.UTC)
    assert 0.5 < float(str(rewritten.extra["changed_ratio"])) <= 1
    assert re.fullmatch("[0-9a-f]{40}", str(rewritten.extra["old_blob"]))

    merged = by_name["pallets/flask:src/records_2024-02_2.py"]
    assert merged.event_time == dt.datetime(2024, 2, 20, tzinfo=dt.UTC)  # not the branch's January
    last = by_name["pallets/flask:src/records_2024-02_5.py"]
    assert last.event_time == Month("2024-02").end - dt.timedelta(seconds=1)
    assert {d.licence for d in documents} == {"MIT", "BSD-2-Clause", "BSD-3-Clause"}


@pytest.mark.long
def test_a_file_belongs_to_one_month_and_the_first_of_a_young_repository_is_flagged(
    crawl: Crawl, few_projects: None
) -> None:
    versions = []
    for month in WORLD.months:
        documents = documents_of(crawl(month))
        versions += [(document.native_id, document.version_id) for document in documents]
        flagged = {d.cluster_id for d in documents if d.extra["initial_import"]}
        assert flagged == ({f"repo:{YOUNG}"} if month == WORLD.first else set()), month
    assert len(versions) == len(set(versions)) == 24 * len(WORLD.months)


def test_before_the_first_commit_there_is_nothing(crawl: Crawl, few_projects: None) -> None:
    items = crawl(Month("2023-11"))
    assert count_drops(items) == {"not_yet_created": len(REPOSITORIES)}
    assert len(items) == len(REPOSITORIES)


def test_a_limit_is_spread_and_drawn_with_the_seed(crawl: Crawl, few_projects: None) -> None:
    drawn = []
    for seed in (0, 0, 1):
        items = crawl(limit=10, seed=seed)
        documents = documents_of(items)
        counts = Counter(d.cluster_id for d in documents)
        assert sorted(counts.values()) == [2, 2, 3, 3]
        assert count_drops(items)["sample_cap"] > 0
        drawn.append([document.native_id for document in documents])
    assert drawn[0] == drawn[1] != drawn[2]


def test_no_project_gives_more_than_its_share(
    crawl: Crawl, few_projects: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_projects, "MAX_FILES", 4)
    items = crawl()
    counts = Counter(document.cluster_id for document in documents_of(items))
    assert counts == {f"repo:{name}": 4 for name in GIVING}
    assert count_drops(items)["sample_cap"] >= 2 * len(GIVING)


def test_what_was_read_before_the_site_gave_out_is_kept(
    own: Settings, web: Web, few_projects: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github_projects, "FAILURES_TO_STOP", 1)
    web.faults.append(Fault("status", "github", "pytest-dev.*upload-pack$", times=3))
    context = CrawlContext(own, Fetcher(own, INFO.sites, 0))
    found = []
    with pytest.raises(SourceUnavailable, match="pytest"):
        found.extend(fetch_month(MONTH, context))  # extend keeps what came before
    assert {d.cluster_id for d in documents_of(found)} == {"repo:pallets/flask", "repo:psf/black"}


def test_a_damaged_mirror_does_not_end_the_month(
    crawl: Crawl, settings: Settings, few_projects: None
) -> None:
    crawl()
    [mirror] = (settings.scratch / "git").glob("*/psf/black.git")
    (mirror / "HEAD").write_text("ref: refs/heads/gone")
    for pack in mirror.glob("objects/pack/*"):
        pack.unlink()
    items = crawl()
    [failure] = [item for item in items if isinstance(item, Failure)]
    assert (failure.native_id, failure.reason) == ("psf/black", "damaged_answer")
    assert len(documents_of(items)) == 18


def test_a_volume_is_not_eaten_by_the_first_projects_of_the_list(
    crawl: Crawl, few_projects: None
) -> None:
    items = crawl(max_bytes=6000)
    documents = documents_of(items)
    counts = Counter(document.cluster_id for document in documents)
    assert set(counts) == {f"repo:{name}" for name in GIVING}
    assert max(counts.values()) - min(counts.values()) <= 1
    num_bytes = sum(len(document.text.encode()) for document in documents)
    assert 6000 <= num_bytes <= 6000 + max(len(d.text.encode()) for d in documents)


def test_a_renamed_project_is_cloned_through_its_redirect_and_counted_once(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = cast(Site, web.sites["github"])
    monkeypatch.setattr(site, "renamed", {"encode/starlette": "psf/black"})
    monkeypatch.setattr(github_projects, "read_projects", lambda: ["encode/starlette", "psf/black"])
    items = crawl()
    assert {document.cluster_id for document in documents_of(items)} == {"repo:encode/starlette"}
    [repeat] = [item for item in items if isinstance(item, Repeat)]
    assert (repeat.native_id, repeat.detail) == ("psf/black", "another name of encode/starlette")
    names = [document.native_id for document in documents_of(items)]
    again = crawl()  # from the mirror
    assert [document.native_id for document in documents_of(again)] == names
    later = documents_of(crawl(Month("2024-04")))
    assert {document.cluster_id for document in later} == {"repo:encode/starlette"}


def test_a_repository_that_is_gone_is_counted(crawl: Crawl, web: Web, few_projects: None) -> None:
    web.faults.append(Fault("status", "github", "^/psf/black/", status=404))
    web.faults.append(Fault("status", "github", "^/scrapy/scrapy/", status=403))
    items = crawl()
    gone = {item.native_id: item.reason for item in items if isinstance(item, Drop)}
    assert (gone["psf/black"], gone["scrapy/scrapy"]) == ("deleted", "http_403")
    assert len(documents_of(items)) == 12
