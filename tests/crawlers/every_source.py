"""Sources for test_every_source.py: a month of each in a simulated web, without faults."""

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard

from core.corpus.partition import Partition, Seal, list_sealed, read_documents, read_seal
from core.corpus.permissions import record_permission
from core.corpus.questions import list_questions, read_question_seal
from core.errors import PartitionHeld, SourceError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Document, Medium, SourceInfo
from crawlers.crawling import crawl as crawl_module
from crawlers.crawling.crawl import crawl_partition
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.questions.crawl import crawl_questions
from crawlers.registry import (
    list_gated_sources,
    list_on_demand_sources,
    list_sources,
    load_crawler,
)
from simulator.server import Request, Response, Web, running, serve, site_kinds
from simulator.world import World
from tests.crawlers.questions import scene as questions
from tests.crawlers.questions.scene import MARCH, tokens_of
from tests.crawlers.request_kinds import kind_of

LIMIT = 3
GATED = ("ao3", "bbc", "yahoo_finance")  # that have a simulated site; crawled with a permission


def list_kinds() -> list[str]:
    """Return the open sources, of parts of one source the last alone: they share all code."""
    names = [*list_sources(), *list_on_demand_sources()]
    return list({name.partition(":")[0]: name for name in names}.values())


def list_scenes() -> list[str]:
    """Return sources of documents, then of questions.

    Sources in a browser, and those of which only recordings are served, have other tests.
    """
    world = World(3, MARCH - 1, MARCH)
    simulated = {key for kind in site_kinds() for key in kind(world).keys}
    texts = [name for name in list_kinds() if simulated >= {*load_crawler(name).INFO.sites}]
    asked = (
        source
        for source in list_question_sources()
        if not load_question_crawler(source).INFO.in_browser
    )
    permitted = [source for source in GATED if source in list_gated_sources()]
    return [*texts, *(f"questions.{source}" for source in asked), *permitted]


class Trap:
    keys = ("trap",)
    robots = None

    def __init__(self) -> None:
        self.quirks: dict[Any, int] = {}

    def respond(self, request: Request) -> Response:
        return Response(body=b"a secret")


class Webs:
    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._running: dict[Month, Web] = {}

    def of(self, month: Month) -> Web:
        if month not in self._running:
            web = self._stack.enter_context(serve(World(3, month - 1, month)))
            self._stack.enter_context(running(Trap(), web, "127.0.0.2"))  # another host
            questions.shorten_pages(web)
            self._running[month] = web
        return self._running[month]

    def close(self) -> None:
        self._stack.close()


@dataclass
class Outcome:
    seal: Seal | None
    error: SourceError | PartitionHeld | None
    items: dict[str, Any] = field(default_factory=dict)
    others: list[dict[str, str]] = field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.seal.manifest if self.seal else {}


def accounted(outcome: Outcome | questions.Outcome) -> set[str]:
    return {*outcome.items, *(other["native_id"] for other in outcome.others)}


class Scene(ABC):
    """A source, its month, and the undisturbed crawl (``whole``).

    ``targets``: its requests in order, as (first key of the site, path and query).
    ``kill_code``: Python that does the same crawl; ``sys.argv[1:]`` are ``kill_arguments``.
    """

    name: str
    web: Web
    whole: Any
    targets: list[tuple[str, str]]
    kill_code: str

    def crawl(self, home: Path, **more: Any) -> Any:
        self.web.new_day()
        return self._crawl(home, **more)

    def watch(self, home: Path) -> None:
        begun = len(self.web.requests)
        with self.prepared():
            self.whole = self.crawl(home)
        self.targets = [(key, target) for key, _, target in self.web.requests[begun:]]

    @property
    def digest(self) -> str:
        return str(self.whole.seal.digest)

    @property
    def keys(self) -> set[str]:
        return {self.web.sites[key].keys[0] for key in self.info.sites}

    @property
    def robots_keys(self) -> set[str]:
        """Return the sites whose robots.txt is read.

        Git reads none: a site that the settings name is only asked whether it is simulated.
        """
        pages = {target for _, target in self.targets if "git-upload-pack" not in target}
        if pages == {"/robots.txt"}:
            return set()
        return {key for key, target in self.targets if target == "/robots.txt"}

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Return the first target of each kind of request, without robots.txt."""
        firsts: dict[str, tuple[str, str]] = {}
        for key, target in self.targets:
            if target != "/robots.txt":
                firsts.setdefault(f"{key} {kind_of(target, self.name)}", (key, target))
        return list(firsts.values())

    def check(self, outcome: Any) -> None:
        for name, item in outcome.items.items():
            self.check_item(name, item)
        if outcome.seal is None:
            return
        counts = outcome.manifest
        lost = sum(counts["dropped"].values()) + sum(counts["failed"].values()) + counts["repeated"]
        assert counts["requested"] == counts["kept"] + lost
        assert counts["kept"] == len(outcome.items)
        assert lost == len(outcome.others)
        assert (counts["status"] == "partial") == bool(counts["failed"] or counts["ended_early"])
        if not counts["ended_early"] and not accounted(self.whole) <= accounted(outcome):
            # A list within the month that fails, such as a repository, counts as one item.
            assert accounted(outcome) - accounted(self.whole)

    @property
    @abstractmethod
    def info(self) -> Any:
        """Return the source's INFO."""

    @abstractmethod
    def prepared(self) -> contextlib.AbstractContextManager[None]:
        """Patch for the block whatever a crawl needs patched."""

    @abstractmethod
    def check_item(self, name: str, item: Any) -> None:
        """Check that the site has a kept item."""

    @abstractmethod
    def sealed(self, home: Path) -> list[Any]:
        """Return the sealed content of a data root."""

    @abstractmethod
    def kill_arguments(self, home: Path) -> list[str]:
        """Return the arguments of ``kill_code``."""

    @abstractmethod
    def _crawl(self, home: Path, **more: Any) -> Any: ...


_CRAWL = """
import json, sys
from pathlib import Path
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.registry import load_crawler
from crawlers.crawling.crawl import crawl_partition

settings = Settings.model_validate_json(sys.argv[1])
for name, path in json.loads(sys.argv[4]).items():
    setattr(load_crawler(sys.argv[2]), name, Path(path))
crawl_partition(sys.argv[2], Month(sys.argv[3]), Store(settings.home), settings, limit=3)
"""


class DocumentScene(Scene):
    """A source of documents; ``rows`` by native id, of the whole month, before hygiene.

    Boilerplate lines and the choice among duplicates depend on all documents of a crawl.
    ``lists`` replace the lists shipped with the crawler, by name in its module: without most names
    that the simulated site lacks.
    """

    kill_code = _CRAWL

    def __init__(self, name: str, webs: Webs, folder: Path) -> None:
        self.name, crawler = name, load_crawler(name)
        self.month = _month_of(crawler.INFO)
        self.web = webs.of(self.month)
        self.rows: dict[str, dict[str, Any]] = {}
        self.lists: dict[str, Path] = {}
        with _noting(self.rows):
            month_whole = self.crawl(folder / "month", limit=None)
        gone = {other["native_id"] for other in month_whole.others if other["reason"] == "deleted"}
        self.lists = _shorten_lists(crawler, gone, folder)
        self.watch(folder / "sample")

    @property
    def info(self) -> SourceInfo:
        return load_crawler(self.name).INFO

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, path in self.lists.items():
                patch.setattr(load_crawler(self.name), name, path)
            yield

    def check_item(self, name: str, item: str | bytes) -> None:
        if isinstance(item, bytes):
            assert item == self.rows[name]["media"]
            return
        lines = iter(self.rows[name]["text"].splitlines())  # hygiene may leave lines out
        assert all(line in lines for line in item.splitlines())

    def sealed(self, home: Path) -> list[Seal]:
        return list_sealed(Store(str(home)))

    def kill_arguments(self, home: Path) -> list[str]:
        lists = json.dumps({name: str(path) for name, path in self.lists.items()})
        self._permit(home)
        return [self._settings(home).model_dump_json(), self.name, str(self.month), lists]

    def _permit(self, home: Path) -> None:
        if self.info.permission:
            record_permission(Store(str(home)), self.name, "a test's", "2999-12-31")

    def _settings(self, home: Path, max_bytes: int = 0, **more: Any) -> Settings:
        given = {"request_interval_s": 0, "sites": self.web.urls, **more}
        return Settings(home=str(home), monthly_bytes={self.name: max_bytes}, **given)

    def _crawl(self, home: Path, limit: int | None = LIMIT, seed: int = 0, **more: Any) -> Outcome:
        settings = self._settings(home, **more)
        self._permit(home)
        store, partition = Store(settings.home), Partition(self.name, self.month)
        is_sealed = read_seal(store, partition) is not None
        try:
            seal = crawl_partition(
                self.name, self.month, store, settings, limit=limit, seed=seed, replace=is_sealed
            )
        except (SourceError, PartitionHeld) as error:
            return Outcome(None, error)
        rows = [row for batch in read_documents(store, seal) for row in batch.to_pylist()]
        data = zstandard.decompress(store.read_bytes(f"{seal.folder}/dropped.jsonl.zst"))
        others = [json.loads(line) for line in data.splitlines()]
        content = "text" if seal.is_text else "media"
        return Outcome(seal, None, {row["native_id"]: row[content] for row in rows}, others)


def _month_of(info: SourceInfo) -> Month:
    last = [] if info.last_month is None else [info.last_month]
    for month in [Month("2024-03"), *last, Month.last_complete()]:
        if info.lacks(month) is None:
            return month
    pytest.skip(f"today no whole month can be crawled: {info.lacks(Month.last_complete())}")


@contextlib.contextmanager
def _noting(rows: dict[str, dict[str, Any]]) -> Iterator[None]:
    row_of = crawl_module._row

    def noted(document: Document | Medium, info: SourceInfo) -> dict[str, Any]:
        row = row_of(document, info)
        rows[row["native_id"]] = row
        return row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crawl_module, "_row", noted)
        yield


def _shorten_lists(crawler: object, gone: set[str], folder: Path) -> dict[str, Path]:
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


_CRAWL_QUESTIONS = """
import json, sys
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.crawl import crawl_questions

settings = Settings(**json.loads(sys.argv[1]), tokens=json.loads(sys.argv[2]))
crawl_questions(sys.argv[3], [Month(sys.argv[4])], Store(settings.home), settings)
"""


class QuestionScene(Scene):
    kill_code = _CRAWL_QUESTIONS

    def __init__(self, name: str, webs: Webs, folder: Path) -> None:
        self.name, self.source = name, name.removeprefix("questions.")
        self.web = webs.of(MARCH)
        self.watch(folder / "whole")

    @property
    def info(self) -> Any:
        return load_question_crawler(self.source).INFO

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        yield

    def check_item(self, name: str, item: Any) -> None:
        for column in ("title", "options", "answer_index", "status", "resolved_at", "opened_at"):
            assert getattr(item, column) == getattr(self.whole.items[name], column)

    def sealed(self, home: Path) -> list[Any]:
        return list(list_questions(Store(str(home))))

    def kill_arguments(self, home: Path) -> list[str]:
        questions.permit(Store(str(home)), self.source)
        settings = {"home": str(home), "request_interval_s": 0, "sites": self.web.urls}
        return [json.dumps(settings), json.dumps(tokens_of(self.web)), self.source, str(MARCH)]

    def _crawl(self, home: Path, **more: Any) -> questions.Outcome:
        settings = questions.settings_of(self.web, home, **more)
        store = Store(settings.home)
        questions.permit(store, self.source)
        former = read_question_seal(store, self.source, MARCH)
        is_whole = former is not None and not former.is_partial
        try:
            [seal] = crawl_questions(self.source, [MARCH], store, settings, replace=is_whole)
        except SourceError as error:
            return questions.Outcome(None, error)
        return questions.outcome_of(store, seal)


def watch(name: str, webs: Webs, folder: Path) -> Scene:
    kind = QuestionScene if name.startswith("questions.") else DocumentScene
    return kind(name, webs, folder)


def exactly(target: str) -> str:
    return f"^{re.escape(target)}$"


@contextlib.contextmanager
def disturbed(web: Web) -> Iterator[None]:
    for traffic in web.traffic.values():
        traffic.clear()
    try:
        yield
    finally:
        web.faults.clear()
        web.limits.clear()
        for site in web.sites.values():
            site.quirks.clear()
