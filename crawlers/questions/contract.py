"""What a crawler of forecasting questions is, and where these crawlers are."""

from __future__ import annotations

import datetime as dt
import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, cast, get_args

import crawlers.questions
from core.errors import UnknownName
from core.month import Month
from core.questions import Question
from crawlers.contract import CrawlContext, Drop, Failure, Repeat, SourceInfo

# Why something of a list belongs to none of the months asked for.
PassReason = Literal[
    "open",  # not resolved yet
    "other_month",
    "not_a_choice",  # a number, a date, a poll: it has no options
    "no_date",  # resolved, but nobody knows when
]
PASS_REASONS: tuple[str, ...] = get_args(PassReason)

Found = Question | Drop | Failure | Repeat


@dataclass(frozen=True)
class QuestionSourceInfo(SourceInfo):
    """What a source of questions is.

    Attributes:
        needs_token: nothing is asked of the site without one (``TIDEMARK_TOKENS__<NAME>``).
        token_from: where a user gets one; for the message.
        in_browser: its pages are filled in by scripts, and read in a browser.
    """

    needs_token: bool = False
    token_from: str = ""
    in_browser: bool = False


@dataclass(frozen=True)
class QuestionContext(CrawlContext):
    """What a crawler of questions is given.

    Attributes:
        passed_over: the crawler counts here what it meets and does not yield, by PassReason.
    """

    passed_over: Counter[PassReason] = field(default_factory=Counter)


class QuestionCrawler(Protocol):
    """The public face of a module that crawls questions."""

    INFO: QuestionSourceInfo

    def fetch_questions(
        self, months: Sequence[Month], context: QuestionContext
    ) -> Iterator[tuple[Month, Found]]:
        """Walk over the site's list once, and yield what was resolved in one of the months.

        A question belongs to the month in which the site set its answer, or declared it void. What
        cannot be had or kept is yielded with the month that it would have belonged to.

        Args:
            months: at least one; all are over. No answer from the cache is believed that is older
                than the end of the last (``know_all_from``).
            context: with the fetcher, and the counts of what is not yielded.

        Raises:
            SourceUnavailable: the site fails in a way that may pass. What came before is kept, and
                the months are partial.
            SourceChanged: the site answers with something the parser does not know.
        """


def know_all_from(months: Sequence[Month]) -> dt.datetime:
    """Return since when a list of a site can be complete: for ``Fetcher.get(not_before=…)``.

    The addresses of such lists do not name a month, so the cache may hold them from before its end.
    """
    return max(months).end


def list_question_sources() -> list[str]:
    """Return the names of all sources of questions: the modules of this package with ``INFO``."""
    files = [path for folder in crawlers.questions.__path__ for path in Path(folder).glob("*.py")]
    return sorted(path.stem for path in files if _declares_source(path))


def _declares_source(path: Path) -> bool:
    """Look into the file rather than import it: listing must stay cheap."""
    return "\nINFO = QuestionSourceInfo(" in path.read_text(encoding="utf-8")


def load_question_crawler(source: str) -> QuestionCrawler:
    """Import the crawler of a source of questions.

    Raises:
        UnknownName: there is none of that name.
    """
    if source not in (known := list_question_sources()):
        raise UnknownName("source of questions", source, known)
    return cast(QuestionCrawler, importlib.import_module(f"crawlers.questions.{source}"))
