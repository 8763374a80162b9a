"""Benchmark of cleaning and de-duplicating a month of prose, at three sizes.

The job is a crawl without network requests, in a separate process. Generated documents pass all
stages of a crawl and are sealed as a partition on disk. An earlier month, with a tenth of the
bytes, is sealed first, since a crawl searches earlier months for duplicates. Times exclude document
generation.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.measure import Report, largest_resident_size, report_alone, run_alone, say
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers import registry
from crawlers.contract import CrawlContext, Document
from crawlers.crawling.crawl import crawl_partition

MONTH = Month("2024-02")
_ROOT = Path(__file__).resolve().parents[1]
_SHARES = (0.1, 0.3, 1.0)
_MEAN_WORDS = 900  # mean number of words per document (5 kB, as in a news article)
_NOTICE = "Sign up for our newsletter, and never miss a story of this kind again."
_COMMON = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "was", "on", "as", "with",
    "be", "by", "at", "from", "this", "are", "or", "an", "have", "not", "which", "had",
    "were", "their", "but", "they", "one", "all", "has", "been", "his", "its", "when", "who",
    "will", "more", "can", "if", "there", "so", "about",
)  # fmt: skip

# Python code of a crawler module that yields the generated documents.
_CRAWLER = """from benchmarks.hygiene import fetch_month
from crawlers.contract import SourceInfo

INFO = SourceInfo(
    name="bench_prose", title="Generated prose", licence="CC0-1.0", language="en",
    category="news", sites={},
)
"""


def run(rounds: int, megabytes: int) -> Sequence[Report]:
    """Clean months of 10 %, 30 % and 100 % of ``megabytes`` MB, each once per round."""
    sizes = [max(1, round(share * megabytes)) for share in _SHARES]
    runs: dict[int, list[Any]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            runs[size].append(run_alone("benchmarks.hygiene", size))
            say(f"{size} MB: {runs[size][-1]}")
    conditions = (
        f"Documents of {_MEAN_WORDS} words on average (log-normal), with markup in one of 3, a "
        "notice in 4 of 10, 2 % near and 1 % exact duplicates, 1 % of numbers; compared with a "
        "sealed month of a tenth of the size."
    )
    told = {
        f"hygiene, {size:,} MB": (results[0]["amounts"], [each["run"] for each in results])
        for size, results in runs.items()
    }
    return [report_alone("hygiene", conditions, told)]


def clean_month(home: Path, megabytes: int) -> dict[str, object]:
    """Seal a small earlier month, then seal and measure a month of ``megabytes`` MB."""
    folder = home / "crawlers"
    folder.mkdir()
    (folder / "bench_prose.py").write_text(_CRAWLER)
    sys.path.append(str(folder))
    registry.OPEN += ("bench_prose",)
    settings = Settings(home=str(home), monthly_bytes={"bench_prose": megabytes * 100_000})
    store = Store(settings.home)
    crawl_partition("bench_prose", MONTH - 1, store, settings)
    _SPENT.update(seconds=0.0, cpu_seconds=0.0, megabytes=0.0)
    sizes = {"monthly_bytes": {"bench_prose": megabytes * 1_000_000}}
    began, cpu_began = time.perf_counter(), time.process_time()
    seal = crawl_partition("bench_prose", MONTH, store, settings.model_copy(update=sizes))
    seconds = time.perf_counter() - began - _SPENT["seconds"]
    cpu_seconds = time.process_time() - cpu_began - _SPENT["cpu_seconds"]
    documents = int(str(seal.manifest["requested"]))
    return {
        "run": [seconds, cpu_seconds, largest_resident_size()],
        "amounts": {"MB": _SPENT["megabytes"], "documents": documents},
    }


# Totals of document generation.
_SPENT = {"seconds": 0.0, "cpu_seconds": 0.0, "megabytes": 0.0}


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Document]:
    """Generate a month's documents until the byte quota of the context is full."""
    quota, prose = context.quota(), Prose(str(month))
    number = 0
    while not quota.is_full:
        began, cpu_began = time.perf_counter(), time.process_time()
        document = _document(month, number, prose.text())
        quota.take(document)
        number += 1
        _SPENT["seconds"] += time.perf_counter() - began
        _SPENT["cpu_seconds"] += time.process_time() - cpu_began
        _SPENT["megabytes"] += len(document.text.encode()) / 1e6
        yield document


def _document(month: Month, number: int, text: str) -> Document:
    instant = month.start + dt.timedelta(seconds=number % 2_400_000)
    return Document(
        native_id=f"item-{number}", version_id=None, text=text, title=f"Story {number}",
        url=f"https://example.org/{number}", event_time=instant, date_kind="published",
        text_as_of=instant, retrieved_at=instant, licence="CC0-1.0", attribution="nobody",
    )  # fmt: skip


class Prose:
    """Generator of random prose, with some duplicates, lists of numbers and newsletter notices."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)
        self._numbers = np.random.default_rng(self._rng.getrandbits(32))
        docs = sorted((_ROOT / "docs").glob("*.md"))
        found = {
            word
            for path in docs
            for word in re.findall(r"\b[a-z]{4,12}\b", path.read_text("utf-8"))
        }
        endings = ("", "s", "ed", "ing", "er", "ly", "ness")
        rare = [f"{word}{ending}" for ending in endings for word in sorted(found)]
        self._words = np.array([*_COMMON, *rare], dtype=object)
        weights = list(accumulate(1 / (rank + 3) for rank in range(len(self._words))))
        self._weights = np.array(weights) / weights[-1]
        self._last = ""

    def text(self) -> str:
        """Return a new text, or sometimes a copy of the previous text."""
        draw = self._rng.random()
        if self._last and draw < 0.01:
            return self._last
        if self._last and draw < 0.03:
            return self._last.replace(" the ", " some ", 2)
        if draw < 0.04:
            return " ".join(map(str, self._numbers.integers(0, 10**6, size=_MEAN_WORDS)))
        self._last = "\n\n".join(self._paragraphs())
        return self._last

    def _paragraphs(self) -> Iterator[str]:
        """Yield paragraphs of random words, some in HTML, some with a notice that repeats."""
        is_html, has_notice = self._rng.random() < 0.33, self._rng.random() < 0.4
        num_words = max(30, int(self._rng.lognormvariate(np.log(_MEAN_WORDS) - 0.32, 0.8)))
        places = np.searchsorted(self._weights, self._numbers.random(num_words))
        words: list[str] = self._words[places].tolist()
        for begin in range(0, num_words, 80):
            pieces = (words[at : at + 16] for at in range(begin, min(begin + 80, num_words), 16))
            text = " ".join(" ".join(piece).capitalize() + "." for piece in pieces)
            yield f"<p>{text.replace(' and ', ' &amp; ')}</p>" if is_html else text
        if has_notice:
            yield _NOTICE


if __name__ == "__main__":
    from benchmarks import hygiene  # not __main__: the crawler updates ``hygiene._SPENT``

    with TemporaryDirectory(prefix="tidemark-bench-") as scratch:
        print(json.dumps(hygiene.clean_month(Path(scratch), int(sys.argv[1]))))
