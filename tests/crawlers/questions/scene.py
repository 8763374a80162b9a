"""Helpers of question sources: two months in a simulated web, settings, outcomes."""

import contextlib
import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from core.corpus.permissions import record_permission
from core.corpus.questions import Question, QuestionSeal, list_questions, read_questions
from core.errors import SourceError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.crawl import crawl_questions
from simulator.server import Web, serve
from simulator.world import World

FEBRUARY, MARCH = Month("2024-02"), Month("2024-03")
WORLD = World(3, FEBRUARY, MARCH)
ON_A_PAGE = 12  # so that the simulated lists have several pages


@contextlib.contextmanager
def small_web() -> Iterator[Web]:
    with serve(WORLD) as web:
        shorten_pages(web)
        yield web


def shorten_pages(web: Web) -> None:
    for site in web.sites.values():
        if hasattr(site, "max_limit"):
            site.max_limit = ON_A_PAGE


def tokens_of(web: Web) -> dict[str, str]:
    """Return the valid tokens of the sites that have one, by key."""
    return {key: site.token for key, site in web.sites.items() if hasattr(site, "token")}


def settings_of(web: Web, home: Path, **more: Any) -> Settings:
    given = {"request_interval_s": 0, "sites": web.urls, "tokens": tokens_of(web), **more}
    return Settings(home=str(home), **given)


@dataclass
class Outcome:
    seal: QuestionSeal | None
    error: SourceError | None = None
    questions: dict[str, Question] = field(default_factory=dict)
    others: list[dict[str, str]] = field(default_factory=list)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.seal.manifest if self.seal else {}

    @property
    def items(self) -> dict[str, Question]:
        return self.questions


def outcome_of(store: Store, seal: QuestionSeal) -> Outcome:
    data = store.read_bytes(f"{seal.path.rpartition('/')[0]}/dropped.jsonl.zst")
    others = [json.loads(line) for line in zstandard.decompress(data).splitlines()]
    return Outcome(seal, None, {q.question_id: q for q in read_questions(store, seal)}, others)


def permit(store: Store, source: str) -> None:
    day = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=9)
    record_permission(store, source, "A. Smith, by mail", str(day))


def crawl_source(source: str, web: Web, home: Path, *months: Month, **more: Any) -> list[Outcome]:
    store, settings = Store(str(home)), settings_of(web, home, **more)
    permit(store, source)
    crawl_questions(source, months or [FEBRUARY, MARCH], store, settings)
    return [outcome_of(store, seal) for seal in list_questions(store, source)]
