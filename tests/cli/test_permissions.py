import dataclasses
import datetime as dt
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Partition, read_seal
from core.errors import AccessRefused
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers import hackernews
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import list_sources
from instruments.planning import check_request
from simulator.server import Web

BEGAN = dt.datetime.now(dt.UTC).replace(microsecond=0)
LATER = str(BEGAN.date() + dt.timedelta(days=9))
MONTH = Month("2024-02")
WHY = "its editors want to be asked: editors@example.org"


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> str:
    gated = dataclasses.replace(hackernews.INFO, permission=WHY)
    monkeypatch.setattr(hackernews, "INFO", gated)
    return "hackernews"


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("TIDEMARK_SITES__HACKERNEWS", url)
        yield
        with pytest.raises(BlockingIOError):  # no connection waits to be accepted
            server.accept()


@pytest.mark.usefixtures("unasked")
def test_without_a_permission_no_connection_is_made(
    tidemark: Callable[..., Any], gated: str
) -> None:
    commands = [
        ("crawl", "--source", gated, "--month", str(MONTH)),
        ("crawl", "--source", gated, "--month", str(MONTH), "--replace"),
        ("run", "--source", gated, "--month", str(MONTH), "--model", "control:gzip"),
        ("backfill", "--source", gated, "--from", "2024-01", "--to", "2024-02"),
        ("backfill", "--source", gated, "--from", "2024-01", "--to", "2024-02", "--dry-run"),
    ]
    for command in commands:
        ran = tidemark(*command)
        assert ran.code == 1, command
        assert WHY in ran.err
        assert f"tidemark sources permit {gated}" in ran.err


@pytest.mark.usefixtures("unasked")
def test_the_library_refuses_as_well_and_one_that_is_over_is_none(
    gated: str, settings: Settings, store: Store
) -> None:
    with pytest.raises(AccessRefused, match="none is recorded"):
        crawl_partition(gated, MONTH, store, settings)
    text = '{"source": "hackernews", "note": "n", "until": "2020-01-01", "recorded_at": "%sZ"}'
    store.write_bytes("permissions/hackernews.json", (text % "2019-01-01T00:00:00").encode())
    with pytest.raises(AccessRefused, match="ended on 2020-01-01"):
        crawl_partition(gated, MONTH, store, settings)
    assert read_seal(store, Partition(gated, MONTH)) is None


def test_the_permission_is_in_the_manifest(
    tidemark: Callable[..., Any], gated: str, sites: Web, home: Path
) -> None:
    asked = len(sites.requests)
    ran = tidemark("sources", "permit", gated, "--note", "A. Smith, 3 May", "--until", LATER)
    assert (ran.code, ran.out) == (0, f"{gated}: permitted until {LATER}: A. Smith, 3 May\n")
    tidemark("crawl", "--source", gated, "--month", str(MONTH)).expect(0)
    assert len(sites.requests) > asked
    seal = read_seal(Store(str(home)), Partition(gated, MONTH))
    assert seal is not None
    kept: Any = seal.manifest["permission"]
    assert (kept["note"], kept["until"]) == ("A. Smith, 3 May", LATER)
    recorded_at = dt.datetime.fromisoformat(kept["recorded_at"])
    assert BEGAN <= recorded_at <= dt.datetime.now(dt.UTC)
    assert "A. Smith" in tidemark("corpus", "show", gated, str(MONTH)).out

    (home / "permissions" / f"{gated}.json").unlink()
    asked = len(sites.requests)
    assert tidemark("crawl", "--source", gated, "--month", str(MONTH)).code == 1
    assert tidemark("crawl", "--source", gated, "--month", str(MONTH + 1)).code == 1
    assert crawl_partition(gated, MONTH, Store(str(home)), Settings(home=str(home))) == seal
    assert len(sites.requests) == asked


def test_all_sources_are_all_that_may_be_crawled(
    tidemark: Callable[..., Any], gated: str, settings: Settings
) -> None:
    request = check_request([MONTH], None, None, settings)
    assert set(request.sources) == {*list_sources()} - {gated, *_without(MONTH)}
    assert gated not in {source for source, _ in request.partitions()}
    [why] = [each for each in request.left_out if gated in each]
    assert WHY in why
    with pytest.raises(AccessRefused, match="none is recorded"):
        check_request([MONTH], [gated, "wikipedia_new"], None, settings)
    permit = ("sources", "permit", gated, "--note", "yes", "--until", LATER)
    assert tidemark(*permit, at=Path(settings.home)).code == 0
    request = check_request([MONTH], None, None, settings)
    assert gated in request.sources
    assert not any(gated in each for each in request.left_out)


def _without(month: Month) -> set[str]:
    from crawlers.registry import load_crawler

    return {name for name in list_sources() if load_crawler(name).INFO.lacks(month)}


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("hackernews", ["--note", " ", "--until", LATER], "is empty"),
        ("hackernews", ["--note", "yes", "--until", "2020-01-01"], "is over already"),
        ("hackernews", ["--note", "yes", "--until", "tomorrow"], "expected YYYY-MM-DD"),
        ("nope", ["--note", "yes", "--until", LATER], "unknown source 'nope'"),
        ("wikipedia_new", ["--note", "yes", "--until", LATER], "needs no permission"),
        ("hackernews", ["--until", LATER], "--note"),
        ("hackernews", ["--note", "yes"], "--until"),
    ],
)
@pytest.mark.usefixtures("gated")
def test_what_is_no_permission_is_refused(
    tidemark: Callable[..., Any], source: str, options: list[str], says: str
) -> None:
    tidemark("sources", "permit", source, *options).expect(2, says)


def test_they_are_listed_with_their_ends(tidemark: Callable[..., Any], gated: str) -> None:
    shown = tidemark("sources", "permits").out
    assert "none recorded" in shown
    assert "editors@example.org" in shown
    assert "wikipedia_new" not in shown
    tidemark("sources", "permit", gated, "--note", "A. Smith\x1b[31m", "--until", LATER)
    shown = tidemark("sources", "permits").out
    assert "in force" in shown
    assert LATER in shown
    assert "A. Smith\\x1b[31m" in shown
