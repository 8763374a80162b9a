"""Crawling questions: one walk over a site's list, sealed by the month of resolution."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from core.errors import EmptyPartition, SourceError, SourceUnavailable, TokenRefused, UsageError
from core.month import Month, require_complete
from core.permissions import Permission, require_permission
from core.questions import Question, QuestionSeal, read_question_seal, seal_questions
from core.settings import Settings
from core.storage import Store, path_part
from crawlers import manifest
from crawlers.contract import Repeat
from crawlers.http import Fetcher
from crawlers.pacing import Turnstile
from crawlers.questions.contract import (
    Found,
    QuestionContext,
    QuestionCrawler,
    QuestionSourceInfo,
    load_question_crawler,
)
from crawlers.questions.tidying import tidy

_log = logging.getLogger(__name__)


def crawl_questions(
    source: str,
    months: Sequence[Month],
    store: Store,
    settings: Settings,
    *,
    replace: bool = False,
    turnstile: Turnstile | None = None,
) -> list[QuestionSeal]:
    """Crawl and seal what a site resolved in some months, in one walk over its list.

    Months that are sealed and complete are left as they are; where all are, nothing is asked. If
    the site gives out, what came is sealed as partial months, which the next crawl completes; a
    month of which nothing came is not sealed. A walk that was stopped has sealed nothing, and the
    next one goes on from the raw cache.

    Args:
        source: name of a crawler of questions.
        months: of resolution; all over.
        store: the data root.
        settings: base URLs, tokens, pace, cache folder.
        replace: ask for everything anew, and seal what differs in place of what is there.
        turnstile: to share the pace of hosts with other machines.

    Returns:
        The seals of the months, in order: also those from before, without those that got none.

    Raises:
        FutureMonth: a month is not over.
        UnknownName: there is no such source.
        UsageError: the source does not have a month, or none was given.
        TokenRefused: the source needs a token, and settings have none; nothing was asked.
        AccessRefused: it needs a permission, and none is in force; nothing was asked.
        EmptyPartition: the walk brought nothing at all; nothing is sealed.
        SourceError: the site failed or has changed; nothing is sealed.
    """
    crawler, asked = load_question_crawler(source), sorted(set(months))
    formers = {month: read_question_seal(store, source, month) for month in asked}
    wanted = [month for month, seal in formers.items() if replace or not _is_whole(seal)]
    _require_months(crawler.INFO, asked, wanted)
    if not wanted:
        return [seal for seal in formers.values() if seal]
    info = crawler.INFO
    # First of all: nobody is to get an account for what may not be crawled.
    permission = require_permission(store, source, info.permission)
    require_token(info, settings)
    fetcher = Fetcher(
        settings,
        info.sites,
        info.request_interval_s,
        info.redirect_hosts,
        robots_exempt_paths=info.robots_exempt_paths,
        revalidates=replace,
        shares_pace=info.shares_pace,
        turnstile=turnstile,
    )
    walk = _Walk(crawler, wanted, QuestionContext(settings, fetcher), permission)
    try:
        walk.run()
    except SourceUnavailable as error:
        if replace or any(formers[month] is None for month in wanted):
            raise
        _log.info("%s: its partial months stay as they are: %s", source, error)
        return [seal for seal in formers.values() if seal]
    return _seal(walk, store, formers, replace)


def _is_whole(seal: QuestionSeal | None) -> bool:
    return seal is not None and not seal.is_partial


def _require_months(
    info: QuestionSourceInfo, asked: Sequence[Month], wanted: Sequence[Month]
) -> None:
    if not asked:
        raise UsageError(f"{info.name}: no month is given; expected at least one")
    for month in asked:
        require_complete(month)
    for month in wanted:
        if lack := info.lacks(month):
            raise UsageError(f"{info.name} {month}: {lack}")


def require_token(info: QuestionSourceInfo, settings: Settings) -> None:
    """Refuse a source that needs a token and has none, before anything is asked.

    Raises:
        TokenRefused: there is none in the settings.
    """
    if info.needs_token and info.name not in settings.tokens:
        raise TokenRefused(
            f"{info.title} gives nothing without a token, so nothing was asked; get one "
            f"{info.token_from}, and set TIDEMARK_TOKENS__{info.name.upper()}"
        )


class _Walk:
    """One walk: what it found by month, and what it says of itself."""

    def __init__(
        self,
        crawler: QuestionCrawler,
        months: Sequence[Month],
        context: QuestionContext,
        permission: Permission | None,
    ) -> None:
        self._crawler, self._context, self._permission = crawler, context, permission
        self.source = crawler.INFO.name
        self.ledgers = {
            month: manifest.Ledger(f"questions of {self.source} {month}") for month in months
        }
        self.questions: dict[Month, list[Question]] = {month: [] for month in months}
        self._seen: set[str] = set()
        self._describe: dict[str, object] = {}

    def run(self) -> None:
        """Walk; a site that gives out ends the walk, but loses nothing.

        Raises:
            EmptyPartition, SourceError: as ``crawl_questions``.
        """
        started_at, fetcher = manifest.now(), self._context.fetcher
        try:
            for month, found in self._crawler.fetch_questions(list(self.ledgers), self._context):
                self._note(month, found)
        except SourceError as error:
            # What a site said in error under status 200 must not be read again by the next run.
            fetcher.forget(last_only=True)
            if not isinstance(error, SourceUnavailable) or not any(self.questions.values()):
                raise
            for ledger in self.ledgers.values():
                ledger.ended_early = str(error)
        if not self._seen and not self._context.passed_over:
            fetcher.forget(last_only=False)
            raise EmptyPartition(f"{self.source}: its list has no question; nothing is sealed")
        self._describe = {
            "kind": "crawl",
            "code_version": manifest.code_version(),
            "started_at": started_at,
            "ended_at": manifest.now(),
            "walk": [str(month) for month in self.ledgers],
            "passed_over": dict(self._context.passed_over.most_common()),
            "base_urls": {key: fetcher.base_url(key) for key in self._crawler.INFO.sites},
            "user_agent": fetcher.user_agent,
            "requests": dict(fetcher.stats),
        }
        if self._permission is not None:
            self._describe["permission"] = self._permission.describe()

    def _note(self, month: Month, found: Found) -> None:
        ledger = self.ledgers[month]
        key = found.question_id if isinstance(found, Question) else found.native_id
        if isinstance(found, Repeat):  # may come before the item itself
            ledger.pass_over(found)
            return
        if key in self._seen:
            ledger.pass_over(Repeat(key, "came before"))
            return
        self._seen.add(key)
        tidied = tidy(found) if isinstance(found, Question) else found
        if isinstance(tidied, Question):
            ledger.keep()
            self.questions[month].append(tidied)
        else:
            ledger.pass_over(tidied)

    def describe(self, month: Month) -> dict[str, object]:
        """Return the manifest of a month, counts included."""
        window = {"start": month.start.isoformat(), "end": month.end.isoformat()}
        return {**self._describe, "window": window, **self.ledgers[month].describe()}


def _seal(
    walk: _Walk, store: Store, formers: Mapping[Month, QuestionSeal | None], replace: bool
) -> list[QuestionSeal]:
    seals = dict(formers)
    for month, ledger in walk.ledgers.items():
        describe = walk.describe(month)
        if reason := _reason_to_keep(formers[month], describe, replace):
            _log.warning("questions of %s %s: %s (%s)", walk.source, month, reason, ledger.counts())
            continue
        folder = f"questions/source={path_part(walk.source)}/month={month}"
        store.write_bytes(f"{folder}/{manifest.DROPPED_FILE}", ledger.dropped_items())
        seals[month] = seal_questions(store, walk.source, month, walk.questions[month], describe)
    found = [seal for seal in seals.values() if seal]
    if not found:
        counts = "; ".join(f"{month}: {led.counts()}" for month, led in walk.ledgers.items())
        raise SourceUnavailable(f"{walk.source}: no question could be had ({counts})")
    return found


def _reason_to_keep(
    former: QuestionSeal | None, describe: Mapping[str, object], replace: bool
) -> str | None:
    """Say why a month is not sealed with what came; None where it is."""
    is_partial, kept = describe["status"] == "partial", int(str(describe["kept"]))
    if former is None:
        return "nothing of it came, so it is not sealed" if is_partial and not kept else None
    if is_partial and (not former.is_partial or kept <= former.num_questions):
        return f"partial, and no more than the {former.num_questions} questions that are sealed"
    if former.is_partial and kept < former.num_questions and not replace:
        return (
            f"the partial month has {former.num_questions} questions, and is kept; "
            "crawl it with --replace if the site took the others back"
        )
    return None
