"""What the tests of all sources of questions know: a month in a simulated web, undisturbed."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from core.errors import SourceError
from core.month import Month
from core.questions import Question, QuestionSeal, read_questions
from core.settings import Settings
from core.storage import Store
from crawlers.questions.contract import load_question_crawler
from crawlers.questions.crawl import crawl_questions
from crawlers.request_kinds import kind_of
from simulator.server import Request, Response, Web, running, serve
from simulator.sites.metaculus import TOKEN
from simulator.world import World

FEBRUARY, MARCH = Month("2024-02"), Month("2024-03")
TOKENS = {"metaculus": TOKEN}
LONGEST_S = 30.0  # for one crawl, whatever the site does
ON_A_PAGE = 12  # so that the simulated lists have several pages


class Trap:
    """A site that no source knows; whoever asks it was led there."""

    keys = ("trap",)
    robots = None

    def __init__(self) -> None:
        self.quirks: dict[Any, int] = {}

    def respond(self, request: Request) -> Response:
        return Response(body=b"a secret")


@contextlib.contextmanager
def small_web() -> Iterator[Web]:
    """Serve two months; the lists of questions in several pages."""
    with serve(World(3, FEBRUARY, MARCH)) as web, running(Trap(), web, "127.0.0.2"):
        for site in web.sites.values():
            if hasattr(site, "max_limit"):
                site.max_limit = ON_A_PAGE
        yield web


def settings_of(web: Web, home: Path, **more: Any) -> Settings:
    given = {"request_interval_s": 0, "sites": web.urls, "tokens": TOKENS, **more}
    return Settings(home=str(home), **given)


@dataclass
class Outcome:
    """What became of a crawl of March: a seal, or an error of ours."""

    seal: QuestionSeal | None
    error: SourceError | None = None
    questions: dict[str, Question] = field(default_factory=dict)
    others: list[dict[str, str]] = field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.seal.manifest if self.seal else {}


@dataclass
class Scene:
    """A source, and what it gives of March where nothing goes wrong.

    Attributes:
        targets: what the undisturbed crawl asked for, in order.
    """

    source: str
    web: Web
    whole: Outcome = field(default_factory=lambda: Outcome(None))
    targets: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> dict[str, str]:
        """The first target of each kind of request, robots.txt left out; and a later page."""
        firsts: dict[str, str] = {}
        for target in self.targets:
            if target != "/robots.txt":
                firsts.setdefault(kind_of(target, f"questions.{self.source}"), target)
        return firsts

    def crawl(self, home: Path, replace: bool = False, **more: Any) -> Outcome:
        settings = settings_of(self.web, home, **more)
        store, started = Store(settings.home), time.monotonic()
        try:
            seals = crawl_questions(self.source, [MARCH], store, settings, replace=replace)
        except SourceError as error:
            return Outcome(None, error)
        finally:
            assert time.monotonic() - started < LONGEST_S
        return outcome_of(store, seals[0])


def outcome_of(store: Store, seal: QuestionSeal) -> Outcome:
    data = store.read_bytes(f"{seal.path.rpartition('/')[0]}/dropped.jsonl.zst")
    others = [json.loads(line) for line in zstandard.decompress(data).splitlines()]
    return Outcome(seal, None, {q.question_id: q for q in read_questions(store, seal)}, others)


def watch(source: str, web: Web, folder: Path) -> Scene:
    scene = Scene(source, web)
    begun = len(web.requests)
    scene.whole = scene.crawl(folder)
    scene.targets = [target for _, _, target in web.requests[begun:]]
    return scene


def reads_pages(source: str) -> bool:
    """Whether a crawler works in a browser; how that fares is tested beside it."""
    return load_question_crawler(source).INFO.in_browser


def exactly(target: str) -> str:
    return f"^{re.escape(target)}$"
