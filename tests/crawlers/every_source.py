"""What test_every_source.py knows of a source: a month of it in a simulated web, undisturbed."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard

from core.corpus import Partition, Seal, read_documents, read_seal
from core.errors import PartitionHeld, SourceError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers import crawl as crawl_module
from crawlers.contract import Document, SourceInfo, load_crawler
from crawlers.crawl import crawl_partition
from crawlers.request_kinds import kind_of
from simulator.server import Request, Response, Web, running, serve
from simulator.world import World

LIMIT = 3
LONGEST_S = 30.0  # for one crawl of LIMIT documents, whatever the site does


class Trap:
    """A site that no source knows; whoever asks it was led there."""

    keys = ("trap",)
    robots = None

    def __init__(self) -> None:
        self.quirks: dict[Any, int] = {}

    def respond(self, request: Request) -> Response:
        return Response(body=b"a secret")


class Webs:
    """The simulated webs of this run, one a month that some source needs."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._running: dict[Month, Web] = {}

    def of(self, month: Month) -> Web:
        if month not in self._running:
            web = self._stack.enter_context(serve(World(3, month - 1, month)))
            self._stack.enter_context(running(Trap(), web, "127.0.0.2"))  # another host
            self._running[month] = web
        return self._running[month]

    def close(self) -> None:
        self._stack.close()


def month_of(info: SourceInfo) -> Month:
    """Return a month that the source has; the same on every day, where it may be."""
    last = [] if info.last_month is None else [info.last_month]
    for month in [Month("2024-03"), *last, Month.last_complete()]:
        if info.lacks(month) is None:
            return month
    pytest.skip(f"today no whole month can be had: {info.lacks(Month.last_complete())}")


@dataclass
class Outcome:
    """What became of a crawl: a seal, or an error of ours."""

    seal: Seal | None
    error: SourceError | PartitionHeld | None
    texts: dict[str, str]
    others: list[dict[str, str]]

    @property
    def manifest(self) -> dict[str, Any]:
        return self.seal.manifest if self.seal else {}

    @property
    def accounted(self) -> set[str]:
        return {*self.texts, *(other["native_id"] for other in self.others)}


@dataclass
class Scene:
    """A source, its month, and what it gives where nothing goes wrong.

    Attributes:
        texts: by native id, of the whole month, before it is looked at as a whole: which lines are
            boilerplate, and which of two alike is kept, depends on all that a crawl has found.
        whole: the crawl of LIMIT documents.
        targets: what that crawl asked for, in order: (first key of the site, path and query).
        lists: what stands for the lists that are shipped with it, by name in its module: without
            most of what the simulated site does not have.
    """

    source: str
    info: SourceInfo
    month: Month
    web: Web
    texts: dict[str, str] = field(default_factory=dict)
    whole: Outcome = field(default_factory=lambda: Outcome(None, None, {}, []))
    targets: list[tuple[str, str]] = field(default_factory=list)
    lists: dict[str, Path] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """The first key of each of its sites."""
        return {self.web.sites[key].keys[0] for key in self.info.sites}

    @property
    def kinds(self) -> dict[str, tuple[str, str]]:
        """The first target of each kind of request, robots.txt left out."""
        firsts: dict[str, tuple[str, str]] = {}
        for key, target in self.targets:
            if target != "/robots.txt":
                firsts.setdefault(f"{key} {kind_of(target, self.source)}", (key, target))
        return firsts

    def settings(self, home: Path, **more: Any) -> Settings:
        given = {"request_interval_s": 0, "sites": self.web.urls, **more}
        return Settings(home=str(home), monthly_bytes={self.source: 0}, **given)

    def crawl(self, home: Path, limit: int | None = LIMIT, **more: Any) -> Outcome:
        """Crawl, again past the cache where the month is sealed; never for long."""
        settings = self.settings(home, **more)
        store, partition = Store(settings.home), Partition(self.source, self.month)
        is_sealed = read_seal(store, partition) is not None
        self.web.new_day()
        started = time.monotonic()
        try:
            seal = crawl_partition(
                self.source, self.month, store, settings, limit=limit, replace=is_sealed
            )
        except (SourceError, PartitionHeld) as error:
            return Outcome(None, error, {}, [])
        finally:
            assert time.monotonic() - started < LONGEST_S
        return _outcome(store, seal)


def _outcome(store: Store, seal: Seal) -> Outcome:
    rows = [row for batch in read_documents(store, seal) for row in batch.to_pylist()]
    data = zstandard.decompress(store.read_bytes(f"{seal.folder}/dropped.jsonl.zst"))
    others = [json.loads(line) for line in data.splitlines()]
    return Outcome(seal, None, {row["native_id"]: row["text"] for row in rows}, others)


def watch(source: str, webs: Webs, folder: Path) -> Scene:
    """Crawl a source undisturbed: its whole month, then a sample."""
    crawler = load_crawler(source)
    scene = Scene(source, crawler.INFO, month := month_of(crawler.INFO), web := webs.of(month))
    with noting(scene.texts):
        month_whole = scene.crawl(folder / "month", limit=None)
    gone = {other["native_id"] for other in month_whole.others if other["reason"] == "deleted"}
    scene.lists = _shorten_lists(crawler, gone, folder)
    begun = len(web.requests)
    with listing(scene):
        scene.whole = scene.crawl(folder / "sample")
    scene.targets = [(key, target) for key, _, target in web.requests[begun:]]
    return scene


@contextlib.contextmanager
def noting(texts: dict[str, str]) -> Iterator[None]:
    """Write down the clean text of every document that a crawl finds, by native id."""
    row_of = crawl_module._row

    def noted(document: Document, info: SourceInfo) -> dict[str, Any]:
        row = row_of(document, info)
        texts[row["native_id"]] = row["text"]
        return row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crawl_module, "_row", noted)
        yield


def is_made_of(text: str, whole: str) -> bool:
    """Whether a text is another one, from which lines may have been left out."""
    lines = iter(whole.splitlines())
    return all(line in lines for line in text.splitlines())


def _shorten_lists(crawler: object, gone: set[str], folder: Path) -> dict[str, Path]:
    """Write the lists that are shipped with a crawler anew, with two of the names that are gone."""
    lists = {}
    for name, path in vars(crawler).items():
        if isinstance(path, Path) and path.suffix == ".txt":
            left, lines = 2, []
            for line in path.read_text(encoding="utf-8").splitlines():
                is_gone = not gone.isdisjoint({line, line.partition(" ")[0]})
                left -= is_gone
                if not is_gone or left >= 0:
                    lines.append(line)
            lists[name] = folder / path.name
            lists[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lists


@contextlib.contextmanager
def listing(scene: Scene) -> Iterator[None]:
    """Give the crawler its shortened lists."""
    with pytest.MonkeyPatch.context() as patch:
        for name, path in scene.lists.items():
            patch.setattr(load_crawler(scene.source), name, path)
        yield


def exactly(target: str) -> str:
    """Return the pattern of one request."""
    return f"^{re.escape(target)}$"


@contextlib.contextmanager
def disturbed(web: Web) -> Iterator[None]:
    """Leave the web as it was, whatever is done to it."""
    for traffic in web.traffic.values():
        traffic.clear()
    try:
        yield
    finally:
        web.faults.clear()
        web.limits.clear()
        for site in web.sites.values():
            site.quirks.clear()
