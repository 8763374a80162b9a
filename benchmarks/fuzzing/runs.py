"""Runs of a source: crawls of mutated responses, with checks of what they yield."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import json
import random
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import pyarrow as pa
from pydantic import SecretStr

from benchmarks.fuzzing.mutations import Grafts, pairs_of
from benchmarks.fuzzing.network import Line, Sites, Unbounded
from core.corpus.partition import Partition, tables_of
from core.corpus.questions import Question
from core.errors import SourceError
from core.month import Month
from core.schemas.tables import DOCUMENTS, MEDIA, QUESTIONS
from core.schemas.validation import validate
from core.settings import Settings
from crawlers.contract import (
    DROP_REASONS,
    FAIL_REASONS,
    CrawlContext,
    Document,
    Drop,
    Failure,
    Medium,
    Repeat,
)
from crawlers.crawling import crawl
from crawlers.questions.contract import (
    QuestionContext,
    list_question_sources,
    load_question_crawler,
)
from crawlers.questions.crawl import tidy
from crawlers.registry import list_all_sources, load_crawler
from crawlers.web.fetcher import Fetcher

MONTH = Month("2024-03")
# For another month, or for a month that counts as recent, a source reads other lists.
OTHER_MONTHS = {"wikipedia_new": Month("2017-03")}
_LATEX = "extras.arxiv.latex.reader"  # imported for a crawler that uses it
_BROWSER = "extras.browser_questions.browser"  # imported where a page is read
RECENT = {"github_trending": {"RECENT_DAYS": 100_000}}
MAX_ID = 1_000  # characters of an item's id
MAX_SECONDS = 20  # of processor time of a run
MAX_BYTES = 2**30  # that a run may add to the memory of the process
_TOKENS = {"good_judgment_open": "user:password"}  # of a site without an attribute ``token``
# Folder of recordings, where it has not the name of the source.
_RECORDED = {"wikipedia_changes": "wikipedia", "wikipedia_new": "wikipedia", "github_new": "github"}


@dataclass(frozen=True)
class Outcome:
    """The items of a run by kind and reason, and the class of an error that ended it."""

    num_mutated: int
    found: Counter[str]
    gone: Set[str] = frozenset()  # ids of deleted items
    fault: str | None = None  # traceback of anything else, which is a fault of the crawler


def list_names() -> list[str]:
    """Return the names of all sources; those of questions with the prefix ``questions.``."""
    return [*list_all_sources(), *(f"questions.{name}" for name in list_question_sources())]


class Fuzz:
    """The runs of one source.

    ``recordings`` has folders of recorded responses of real sites; it may be absent. ``folder`` is
    for files of the runs. ``undisturbed`` are runs without mutations.
    """

    def __init__(self, name: str, recordings: Path, folder: Path, seed: int = 0) -> None:
        self.name, self._folder, self._seed = name, folder, seed
        self._source = name.removeprefix("questions.")
        self._is_of_questions = name != self._source
        load: Callable[[str], Any] = (
            load_question_crawler if self._is_of_questions else load_crawler
        )
        self._crawler = load(self._source)
        self._info = self._crawler.INFO
        months = [min(MONTH, self._info.last_month or MONTH), OTHER_MONTHS.get(self._source)]
        self._sites = {month: Sites(month) for month in months if month}
        self._grafts = _read_grafts(recordings / _RECORDED.get(self._source, self._source))
        tokens = {**_TOKENS, **self._sites[months[0]].tokens}
        self._settings = Settings(
            tokens={key: SecretStr(value) for key, value in tokens.items()}, request_interval_s=0
        )
        self._fetchers = {month: self._make_fetcher(sites) for month, sites in self._sites.items()}
        uses_latex = hasattr(self._crawler, "LatexReader")
        self._reader = importlib.import_module(_LATEX).LatexReader() if uses_latex else None
        self._sound: set[str] = set()  # documents and questions that were checked before
        self._kinds: Counter[str] = Counter()  # requests of an undisturbed run by kind
        self._lists: dict[str, Path] = {}
        gone = self._run(0, lambda _: {}).gone
        self._lists = {
            each: _shorten(path, gone, folder)
            for each, path in vars(self._crawler).items()
            if isinstance(path, Path) and path.suffix == ".txt"
        }
        self._kinds.clear()
        self.undisturbed = [self._run(n, lambda _: {}) for n in range(2 * len(self._sites))]

    def close(self) -> None:
        """End the process that reads LaTeX."""
        if self._reader is not None:
            self._reader.__exit__()

    @property
    def has_requests(self) -> bool:
        """False for a source that is read by git alone."""
        return bool(self._kinds)

    def run(self, number: int) -> Outcome:
        """Crawl once with mutated responses; the same number gives the same mutations."""
        return self._run(number, self._choose)

    def _run(self, number: int, choose: Callable[[random.Random], dict[str, float]]) -> Outcome:
        """Crawl once with mutated responses; any error but a ``SourceError`` is a fault."""
        rng = random.Random(f"{self._seed}/{self.name}/{number}")
        month = list(self._sites)[number // 2 % len(self._sites)]
        line = Line(self._sites[month], rng, self._grafts, choose(rng))
        found: Counter[str] = Counter()
        gone: set[str] = set()
        fault = None
        try:
            with self._prepared(number, line), _bounded():
                for item in self._crawl(number, month, line):
                    found[self._check(item, month)] += 1
                    if isinstance(item, Drop) and item.reason == "deleted":
                        gone.add(item.native_id)
        except SourceError as error:
            found[type(error).__name__] += 1
            str(error).encode()
        except (Exception, Unbounded):  # noqa: BLE001 - the faults that the runs search for
            fault = traceback.format_exc()
        if not line.shares:
            self._kinds |= line.asked
        return Outcome(line.num_mutated, found, gone, fault)

    def _choose(self, rng: random.Random) -> dict[str, float]:
        """Return the share to mutate of each kind: few or many, of all kinds or of one."""
        every = sorted(self._kinds)
        kinds = rng.choice([every, *([kind] for kind in every)])
        num_mutated = rng.choice((1, 2, 10)) / len(kinds)
        return {kind: num_mutated / self._kinds[kind] for kind in kinds}

    def _make_fetcher(self, sites: Sites) -> Fetcher:
        settings = self._settings.model_copy(update={"sites": sites.urls})
        return Fetcher(settings, self._info.all_sites(()), 0, use_cache=False)

    def _crawl(self, number: int, month: Month, line: Line) -> Iterator[Any]:
        """Yield the items of a month from the simulated sites, without a process pool."""
        settings = self._settings.model_copy(update={"home": str(self._folder / str(number))})
        fetcher = copy.copy(self._fetchers[month])
        vars(fetcher).update(_exchange=line, stats=line.stats, _rules={}, _answered=[])
        if self._is_of_questions:
            context = QuestionContext(settings, fetcher)
            return (item for _, item in self._crawler.fetch_questions([month], context))
        limit = line.rng.choice((None, 1, 3))
        return iter(self._crawler.fetch_month(month, CrawlContext(settings, fetcher, limit)))

    @contextlib.contextmanager
    def _prepared(self, number: int, line: Line) -> Iterator[None]:
        """Replace what a crawl needs besides its fetcher: lists, a browser, a reader of LaTeX."""
        changed: dict[str, Any] = dict(self._lists)
        if number % 2:
            changed |= RECENT.get(self._source, {})
        if self._reader is not None:
            changed["LatexReader"] = lambda: contextlib.nullcontext(self._reader)
        with contextlib.ExitStack() as patches:
            for name, value in changed.items():
                patches.enter_context(mock.patch.object(self._crawler, name, value))
            if getattr(self._info, "in_browser", False):
                page = contextlib.nullcontext(line)
                for name, value in (("fetching.Browser", page), ("session.Session", line)):
                    made = mock.Mock(return_value=value)
                    patches.enter_context(mock.patch(f"{_BROWSER}.{name}", made))
            yield

    def _check(self, item: Any, month: Month) -> str:
        """Return the kind of an item; raise an error if it cannot be sealed."""
        if isinstance(item, Question):
            item = tidy(item)
        if isinstance(item, Drop | Failure | Repeat):
            return _kind_of(item)
        if (key := repr(item)) not in self._sound:
            self._store(item, month)
            self._sound.add(key)
        return type(item).__name__

    def _store(self, item: Document | Medium | Question, month: Month) -> None:
        """Make the table in which an item would be sealed, or raise an error."""
        if isinstance(item, Question):
            table = pa.Table.from_pylist([dataclasses.asdict(item)], schema=QUESTIONS)
            json.dumps(validate(table, QUESTIONS, "a question").to_pylist(), default=str)
            return
        _require_id(item.native_id)
        Month.of(item.event_time)
        for table in tables_of([crawl._row(item, self._info)], Partition(self._source, month)):
            is_text = isinstance(item, Document)
            validate(table, DOCUMENTS if is_text else MEDIA, "a document")


def _kind_of(item: Drop | Failure | Repeat) -> str:
    """Return the kind and reason of an item without text; raise an error if it is none."""
    _require_id(item.native_id)
    f"{item.native_id}{item.detail}".encode()
    if isinstance(item, Repeat):
        return "Repeat"
    known = DROP_REASONS if isinstance(item, Drop) else FAIL_REASONS
    if item.reason not in known:
        raise ValueError(f"{item}: expected one of the reasons {known}")
    return f"{type(item).__name__} {item.reason}"


def _require_id(native_id: object) -> None:
    if not isinstance(native_id, str) or not 0 < len(native_id) <= MAX_ID:
        raise ValueError(f"{native_id!r:.100} is no id of 1 to {MAX_ID} characters")


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Limit processor time and additional memory of the ``with`` block."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Unbounded(f"{MAX_SECONDS} s of processor time")

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    former = signal.signal(signal.SIGVTALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MAX_BYTES, before[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGVTALRM, former)


def _shorten(path: Path, gone: Set[str], folder: Path) -> Path:
    """Write the first entries of a source's list that the simulated site has."""
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line.strip() and not line.startswith("#")]
    there = [line for line in entries if gone.isdisjoint({line, line.partition(" ")[0]})]
    short = folder / path.name
    short.write_text("\n".join(there[:4]) + "\n", encoding="utf-8")
    return short


def _read_grafts(folder: Path) -> Grafts:
    found: Grafts = []
    for path in sorted(folder.rglob("*.json")):
        with contextlib.suppress(ValueError):
            found += pairs_of(json.loads(path.read_bytes()))
    return found
