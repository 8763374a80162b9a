"""Months of a repository that are crawled again after its history was rewritten."""

import datetime as dt
from pathlib import Path

import pytest

from core.corpus.partition import Partition, read_seal
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.git import mirror
from crawlers.git.entries import Entry
from simulator import posts
from simulator.server import Web
from simulator.world import World
from tests.crawlers.git.test_mirror import NAME, Upstream

SOURCE = "git_posts:rust_blog"
MONTH = Month("2025-02")
WORLD = World(0, MONTH, MONTH + 1)
ENTRY = Entry(
    title="Posts", repository=NAME, folders=["*.md"], match=r"(?P<id>\w+)\.md",
    date=["field:date"], category="blog", licence="CC0-1.0", attribution="someone",
    licence_file="LICENSE", licence_says="CC0", example="{name}.md",
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    monkeypatch.setattr("crawlers.git_posts.read_entries", lambda: {"rust_blog": ENTRY})
    return Upstream(tmp_path / "upstream")


@pytest.fixture
def crawl_settings(settings: Settings, web: Web) -> Settings:
    return settings.model_copy(update={"sites": web.urls, "request_interval_s": 0.0})


def push(site: Upstream, number: int) -> None:
    """Make a history of one commit, in the place of the one that is there."""
    text = posts.text_of(WORLD, "rust_blog", MONTH, number)
    files = (b"LICENSE", b"CC0"), (b"one.md", f"---\ndate: 2025-02-03\n---\n{text}".encode())
    site.commit("2025-02-03T12:00:00Z", *files, force=True)


def test_a_sealed_month_stays_until_it_is_replaced(
    site: Upstream,
    web: Web,
    store: Store,
    crawl_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mirror, "AGAIN_AFTER", dt.timedelta())
    push(site, 0)
    first = crawl_partition(SOURCE, MONTH, store, crawl_settings)
    push(site, 1)
    num_requests = len(web.requests)
    assert crawl_partition(SOURCE, MONTH, store, crawl_settings) == first
    assert len(web.requests) == num_requests
    second = crawl_partition(SOURCE, MONTH, store, crawl_settings, replace=True)
    assert (first.version, second.version) == (1, 2)
    assert second.digest != first.digest
    third = crawl_partition(SOURCE, MONTH, store, crawl_settings, replace=True)
    assert third.digest == second.digest
    assert read_seal(store, Partition(SOURCE, MONTH)) == third


def test_a_repository_that_was_just_fetched_is_not_fetched_again(
    site: Upstream,
    web: Web,
    store: Store,
    crawl_settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A range of months that is replaced fetches the repository once."""
    monkeypatch.setattr(mirror, "AGAIN_AFTER", dt.timedelta(days=1))
    push(site, 0)
    crawl_partition(SOURCE, MONTH, store, crawl_settings)
    num_requests = len(web.requests)
    crawl_partition(SOURCE, MONTH, store, crawl_settings, replace=True)
    assert not [path for _, _, path in web.requests[num_requests:] if path.startswith(f"/{NAME}")]
