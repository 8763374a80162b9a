"""Traps of monitored projects, and faults of other crawlers; the test commits to the repository."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Document, Drop, Item
from crawlers.crawling.crawl import crawl_partition
from crawlers.web.fetcher import Fetcher
from extras.github import github_projects
from extras.github.github_projects import INFO, MAX_FILES, fetch_month
from simulator.repositories import LICENCES
from tests.crawlers.conftest import rows_of
from tests.crawlers.git.test_mirror import NAME, Upstream, lines

MARCH = Month("2024-03")
MIT = (b"LICENSE", LICENCES["MIT"].encode())
GPL = (b"LICENSE", LICENCES["GPL-3.0-only"].encode())
Crawl = Callable[..., list[Item]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    monkeypatch.setattr(github_projects, "read_projects", lambda: [NAME])
    return Upstream(tmp_path / "upstream")


@pytest.fixture
def crawl(own: Settings) -> Crawl:
    def run(month: Month = MARCH, **options: int) -> list[Item]:
        return list(fetch_month(month, CrawlContext(own, Fetcher(own, INFO.sites, 0), **options)))

    return run


def documents_of(items: list[Item]) -> dict[str, Document]:
    return {item.title: item for item in items if isinstance(item, Document)}


def drops_of(items: list[Item]) -> dict[str, str]:
    return {i.native_id.partition(":")[2]: i.reason for i in items if isinstance(i, Drop)}


def test_the_change_of_the_months_first_commit_is_not_lost(site: Upstream, crawl: Crawl) -> None:
    """A diff that starts at the month's first commit lacks that commit's change."""
    site.commit("2024-02-10T12:00:00Z", MIT)
    site.commit("2024-03-04T12:00:00Z", (b"first.py", lines(9)))
    site.commit("2024-03-20T12:00:00Z", (b"second.py", lines(9, "other")))
    assert documents_of(crawl()).keys() == {"first.py", "second.py"}


def test_the_window_begins_at_midnight_not_at_the_time_of_day_of_the_crawl(
    site: Upstream, crawl: Crawl
) -> None:
    """``git log --since=2024-03-01`` takes the present time of day and misses a commit of 00:30."""
    site.commit("2024-02-29T23:59:59Z", MIT, (b"february.py", lines(9)))
    site.commit("2024-03-01T00:00:00Z", (b"midnight.py", lines(9, "midnight")))
    site.commit("2024-03-01T00:30:00Z", (b"half_past.py", lines(9, "half past")))
    site.commit("2024-03-31T23:59:59Z", (b"late.py", lines(9)))
    site.commit("2024-04-01T00:00:00Z", (b"april.py", lines(9, "april")))
    assert documents_of(crawl()).keys() == {"midnight.py", "half_past.py", "late.py"}
    assert documents_of(crawl(MARCH + 1)).keys() == {"april.py"}


def test_old_months_are_there_where_shallow_since_would_have_cut_them_off(
    site: Upstream, crawl: Crawl
) -> None:
    site.commit("2017-01-10T12:00:00Z", MIT, (b"old.py", lines(9)))
    site.commit("2024-03-10T12:00:00Z", (b"new.py", lines(9, "new")))
    assert documents_of(crawl()).keys() == {"new.py"}
    assert documents_of(crawl(Month("2017-01"))).keys() == {"old.py"}


def test_the_ratio_is_of_both_lengths_not_of_added_lines_against_the_old_length(
    site: Upstream, crawl: Crawl
) -> None:
    """10 lines and 6 more: 60 % "added" by the peer's count; in truth 1 - 2 * 10 / 26 = 23 %."""
    old = lines(10)
    site.commit("2024-02-10T12:00:00Z", MIT, (b"grown.py", old), (b"cut.py", lines(10, "c")))
    cut = b"".join(lines(10, "c").splitlines(keepends=True)[:2])  # 1 - 2 * 2 / 12 = 67 %, no "+"
    site.commit("2024-03-10T12:00:00Z", (b"grown.py", old + lines(6, "x")), (b"cut.py", cut))
    items = crawl()
    assert drops_of(items) == {"grown.py": "outside_month"}
    assert documents_of(items)["cut.py"].extra["changed_ratio"] == pytest.approx(0.666667)


def test_half_of_a_file_changed_is_not_more_than_half(site: Upstream, crawl: Crawl) -> None:
    site.commit("2024-02-10T12:00:00Z", MIT, (b"a.py", b"a\nb\nc\nd\n"))
    site.commit("2024-03-10T12:00:00Z", (b"a.py", b"a\nb\nx\ny\n"))
    assert drops_of(crawl()) == {"a.py": "outside_month"}


def test_a_sample_is_drawn_by_the_seed_not_largest_first(site: Upstream, crawl: Crawl) -> None:
    files = [(b"f%02d.py" % n, lines(5 + n, f"of {n}")) for n in range(MAX_FILES + 30)]
    site.commit("2024-03-10T12:00:00Z", MIT, *files)
    first, again, other = (documents_of(crawl(seed=seed)).keys() for seed in (1, 1, 2))
    assert len(first) == len(other) == MAX_FILES
    assert first == again != other
    assert first != {f"f{n:02}.py" for n in range(30, MAX_FILES + 30)}
    whole = crawl(seed=1)
    assert len(whole) == MAX_FILES + 30  # what the cap leaves out is counted


def test_a_renamed_file_is_not_new(site: Upstream, crawl: Crawl) -> None:
    site.commit("2024-02-10T12:00:00Z", MIT, (b"a.py", lines(20)), (b"b.py", lines(20, "b")))
    site.commit("2024-03-10T12:00:00Z", (b"a.py", None), (b"src/a.py", lines(20)))
    site.commit("2024-03-11T12:00:00Z", (b"b.py", None), (b"lib.js", lines(22, "b")))
    assert crawl() == []


def test_a_rebased_commit_counts_by_its_committer_and_its_author_is_recorded(
    site: Upstream, crawl: Crawl
) -> None:
    site.commit("2024-02-10T12:00:00Z", MIT)
    stream = (
        b"commit refs/heads/main\n"
        b"author A <a@example.org> 1700000000 +0000\n"  # 2023-11-14
        b"committer A <a@example.org> 1710000000 +0000\ndata 0\nfrom refs/heads/main^0\n"
        b"M 100644 inline rebased.py\ndata 6\nx = 1\n\n"
    )
    site.git("fast-import", "--quiet", stdin=stream)
    document = documents_of(crawl())["rebased.py"]
    assert document.event_time == dt.datetime.fromtimestamp(1_710_000_000, dt.UTC)
    assert document.extra["authored_at"] == "2023-11-14T22:13:20+00:00"
    assert crawl(Month("2023-11"))[0].native_id == NAME  # not created yet, by its committers


def test_a_forged_future_date_hides_no_commit_of_the_month(site: Upstream, crawl: Crawl) -> None:
    site.commit("2024-02-10T12:00:00Z", MIT)
    site.commit("2099-01-01T00:00:00Z", (b"forged.py", lines(9)))
    site.commit("2024-03-10T12:00:00Z", (b"honest.py", lines(9, "honest")))
    found = documents_of(crawl())
    assert found.keys() == {"forged.py", "honest.py"}
    assert all(document.event_time in MARCH for document in found.values())


def test_a_repository_younger_than_the_month_is_an_initial_import(
    site: Upstream, crawl: Crawl
) -> None:
    site.commit("2024-03-10T12:00:00Z", MIT, (b"a.py", lines(9)))
    site.commit("2024-04-10T12:00:00Z", (b"b.py", lines(9, "b")))
    assert documents_of(crawl())["a.py"].extra["initial_import"] is True
    assert documents_of(crawl(MARCH + 1))["b.py"].extra["initial_import"] is False


def test_the_licence_is_that_of_the_months_end_not_todays(site: Upstream, crawl: Crawl) -> None:
    site.commit("2024-02-10T12:00:00Z", GPL, (b"a.py", lines(9)))
    site.commit("2024-03-10T12:00:00Z", (b"b.py", lines(9, "b")))
    site.commit("2024-04-10T12:00:00Z", MIT, (b"c.py", lines(9, "c")))
    site.commit("2024-05-10T12:00:00Z", GPL, (b"d.py", lines(9, "d")))
    kept = {month: documents_of(crawl(month)).keys() for month in (MARCH, MARCH + 1, MARCH + 2)}
    assert kept == {MARCH: set(), MARCH + 1: {"c.py"}, MARCH + 2: set()}
    [drop] = crawl()
    assert isinstance(drop, Drop)
    assert (drop.native_id, drop.reason) == (NAME, "licence")


def test_a_month_of_more_than_300_files_is_whole(site: Upstream, crawl: Crawl) -> None:
    """GitHub's compare API lists 300 files at most."""
    files = [(b"f%03d.py" % n, lines(9, f"of {n}")) for n in range(310)]
    site.commit("2024-03-10T12:00:00Z", MIT, *files)
    assert len(crawl()) == 310


def test_each_file_has_the_language_of_its_name(site: Upstream, crawl: Crawl) -> None:
    names = {b"a.py": "python", b"b.rs": "rust", b"c.TS": "typescript", b"d.go": "go"}
    others = [b"data.json", b"poetry.lock", b"notebook.ipynb", b"README.md", b"image.png"]
    files = [(name, lines(9, name.decode())) for name in [*names, *others]]
    site.commit("2024-03-10T12:00:00Z", MIT, *files)
    languages = {d.title.encode(): d.language for d in documents_of(crawl()).values()}
    assert languages == {
        name: f"code:{language}" for name, language in names.items() if name != b"c.TS"
    }


def test_sealed_code_differs_from_the_file_in_line_ends_and_unicode_form_alone(
    site: Upstream, crawl: Crawl, store: Store, own: Settings
) -> None:
    code = 'x = "<b>&lt;</b>"\t \r\n' + "# cafe\u0301  \r\n" * 20 + "    pass\n\n\n"
    site.commit("2024-03-10T12:00:00Z", MIT, (b"a.py", code.encode()))
    seal = crawl_partition("github_projects", MARCH, store, own)
    [row] = rows_of(store, seal)
    expected = 'x = "<b>&lt;</b>"\t \n' + "# caf\u00e9  \n" * 20 + "    pass\n\n\n"
    assert row["text"].encode() == expected.encode()
    assert row["language"] == "code:python"
