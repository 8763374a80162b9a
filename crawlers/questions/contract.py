"""The interface of crawlers of forecasting questions, with helpers to read lists and fields."""

from __future__ import annotations

import datetime as dt
import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

from core.corpus.questions import CrowdForecast, Question
from core.errors import UnknownName
from core.month import Month
from crawlers.contract import CrawlContext, Drop, Failure, Repeat, SourceInfo
from crawlers.registry import question_modules
from crawlers.web.fetcher import Fetched, Fetcher, get_list

# Reasons to skip a list entry that belongs to none of the requested months.
PassReason = Literal[
    "open",  # not resolved yet
    "other_month",
    "not_a_choice",  # the question has no fixed options: it asks for a number or date, or is a poll
    "no_date",  # resolved, but the date is unknown
]

Found = Question | Drop | Failure | Repeat


@dataclass(frozen=True)
class QuestionSourceInfo(SourceInfo):
    """Description of a source of questions."""

    needs_token: bool = False  # the setting ``TIDEMARK_TOKENS__<NAME>`` is required
    token_from: str = ""  # how users get a token; part of the error message
    in_browser: bool = False  # the pages need a browser, since scripts create their content
    sample: str = ""  # the rule by which months are sampled, for manifests; empty: all is read


@dataclass(frozen=True)
class QuestionContext(CrawlContext):
    """Settings, fetcher and a counter of skipped entries, which a crawler of questions receives."""

    passed_over: Counter[PassReason] = field(default_factory=Counter)  # skipped entries by reason


class QuestionCrawler(Protocol):
    """The public interface of a module that crawls questions."""

    INFO: QuestionSourceInfo

    def fetch_questions(
        self, months: Sequence[Month], context: QuestionContext
    ) -> Iterator[tuple[Month, Found]]:
        """Read the site's list once, and yield the questions resolved in one of the months.

        A question belongs to the month in which the site set its answer or declared it void. Drops
        and failures are yielded with their question's month. All months must be over. Cached
        responses from before the last month's end are not used (``know_all_from``).

        Raises:
            SourceUnavailable: a temporary failure. Months of earlier items are sealed as partial.
            SourceChanged: the parser does not know the form of a response.
            AccessRefused: robots.txt, or the site, forbids the list.
            TokenRefused: the site does not accept the credential.
        """


def know_all_from(months: Sequence[Month]) -> dt.datetime:
    """Return the end of the last month; pass it as ``not_before`` to ``Fetcher.get``."""
    # A list fetched after this time has all questions of the months; an older cached one may not.
    return max(months).end


def list_question_sources() -> list[str]:
    """Return the names of all question sources."""
    return sorted(question_modules())


def load_question_crawler(source: str) -> QuestionCrawler:
    """Import the crawler of a source of questions; raise UnknownName if there is no such source."""
    modules = question_modules()
    if source not in modules:
        raise UnknownName("source of questions", source, sorted(modules))
    return cast(QuestionCrawler, importlib.import_module(modules[source]))


def month_of(
    resolved_at: dt.datetime | None, months: Sequence[Month], context: QuestionContext
) -> Month | None:
    """Return the month of ``resolved_at`` if requested; else count the reason and return None."""
    if resolved_at is None:
        context.passed_over["no_date"] += 1
        return None
    month = Month.of(resolved_at)
    if month not in months:
        context.passed_over["other_month"] += 1
        return None
    return month


YES_NO = ("Yes", "No")


def forecasts(
    options: Sequence[str], shares: Sequence[float], at: dt.datetime | None
) -> tuple[CrowdForecast, ...]:
    """Return the crowd's forecasts at time ``at``; ``shares`` are the options' probabilities."""
    pairs = zip(options, shares, strict=True)
    return tuple(CrowdForecast(option, each, at) for option, each in pairs)


@dataclass(frozen=True)
class Listing:
    """A site's list of questions, fetched page by page."""

    fetcher: Fetcher
    key: str  # key of the site's base URL in ``fetcher``
    not_before: dt.datetime  # cached pages from before this time are not used
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # sent with each request

    def page(
        self, path: str, params: Mapping[str, str | int], is_busy: Callable[[Fetched], bool]
    ) -> Fetched:
        """Fetch a page of the list; retry if ``is_busy`` returns True for the response."""
        options = {"headers": self.headers, "not_before": self.not_before}
        return get_list(self.fetcher, self.key, path, params, is_busy, **options)
