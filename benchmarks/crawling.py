"""Benchmark of crawling the simulated web over loopback, and of cleaning texts.

A crawl is the whole job: requests, extraction, cleaning, and a sealed partition on disk. The crawl
of a source that uses only HTTP GET is compared with a bare HTTP session. The bare session sends the
same requests and discards the responses, so it measures the simulator's own time. The crawlers do
not pause between requests here; real crawls do.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import requests

from benchmarks.measure import Contender, Report, measure
from core.corpus.partition import Seal
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import list_sources
from crawlers.text.cleaning import clean
from simulator.server import Web, serve
from simulator.sites import github_api
from simulator.world import World

MONTH = Month("2024-02")
_TIMEOUT_S = 60
_CLEANED_COPIES = 10  # number of copies of the stories to clean; fewer would make rounds too short
_DIGEST = "SHA-256 of the prose"


def run(rounds: int, stories: int) -> Sequence[Report]:
    """Crawl one month of every source of a world with ``stories`` stories per month."""
    world = World(0, MONTH - 1, MONTH, stories_per_month=stories)
    # Raise the simulated GitHub's hourly limit: some rounds send more requests.
    limits = mock.patch.dict(github_api.LIMITS, dict.fromkeys(github_api.LIMITS, (10**9, 3600.0)))
    with limits, serve(world) as web:
        crawls = [each for source in list_sources() for each in _crawl_contenders(source, web)]
        timings = measure([*crawls, *_cleaning_contenders(world)], rounds)
    conditions = (
        f"Month {MONTH} of a simulated web with {stories} stories a source and month, over "
        "loopback, request interval 0, from an empty cache; client and server share one process. "
        "MB are of text kept (crawling) or given (cleaning)."
    )
    return [Report("crawling", conditions, timings)]


def _crawl_contenders(source: str, web: Web) -> list[Contender]:
    """Return the crawl of a source, and a bare session if all its requests are GET."""
    num_before = len(web.requests)
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        seal = crawl(source, Path(folder), web)
    asked = web.requests[num_before:]
    amounts = {"documents": seal.num_documents, "MB": seal.num_bytes / 1e6}

    def run_crawl(home: Path) -> object:
        return crawl(source, home, web)

    if any(method != "GET" for _, method, _ in asked):
        return [Contender(f"crawl {source}", run_crawl, amounts)]
    urls = [web.urls[key] + target for key, _, target in asked]
    bare = Contender(f"bare {source}", lambda _: fetch_bare(urls), {"requests": len(urls)})
    return [Contender(f"crawl {source}", run_crawl, amounts, bare.name), bare]


def crawl(source: str, home: Path, web: Web) -> Seal:
    """Crawl the month of one source into an empty folder."""
    settings = Settings(home=str(home), request_interval_s=0, sites=web.urls)
    return crawl_partition(source, MONTH, Store(settings.home), settings)


def fetch_bare(urls: Sequence[str]) -> int:
    """Send GET requests one after the other; return the number of decompressed bytes."""
    with requests.Session() as session:
        return sum(
            len(session.get(url, allow_redirects=False, timeout=_TIMEOUT_S).content) for url in urls
        )


def _cleaning_contenders(world: World) -> list[Contender]:
    """Return contenders: SHA-256 of prose (the baseline), cleaning of prose, HTML and code."""
    numbers = range(world.stories_per_month)
    stories = world.stories(MONTH, "wikipedia_new")
    prose = ["\n\n".join(story.paragraphs) for story in stories]
    marked_up = ["".join(map(_as_html, story.paragraphs)) for story in stories]
    code = [world.module(MONTH, "github_projects", number) for number in numbers]
    return [
        _text_contender(_DIGEST, lambda text: hashlib.sha256(text.encode()).digest(), prose),
        _text_contender("clean prose", clean, prose),
        _text_contender("clean prose in HTML", clean, marked_up),
        _text_contender("clean code", lambda text: clean(text, is_code=True), code),
    ]


def _as_html(paragraph: str) -> str:
    """Return a paragraph as HTML with tags, entities and non-ASCII characters."""
    sentences = html.escape(f"“{paragraph}”").split(". ")
    return f"<p>{'.&nbsp;'.join(f'<i>{text}</i>' for text in sentences)}<!-- end --></p>\n"


def _text_contender(name: str, work: Callable[[str], object], texts: Sequence[str]) -> Contender:
    """Return a job that runs ``work`` on each text, several times over."""
    texts = list(texts) * _CLEANED_COPIES
    num_bytes = sum(len(text.encode()) for text in texts)

    def run_work(_: Path) -> None:
        for text in texts:
            work(text)

    return Contender(name, run_work, {"documents": len(texts), "MB": num_bytes / 1e6})
