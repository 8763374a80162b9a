"""Crawl questions: read a site's list once, clean the questions, seal them by month."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence

from core.corpus import simulated
from core.corpus.permissions import Permission, require_permission
from core.corpus.questions import Question, QuestionSeal, read_question_seal, seal_questions
from core.errors import EmptyPartition, SourceError, SourceUnavailable, TokenRefused, UsageError
from core.month import Month, require_complete
from core.settings import Settings
from core.storage.store import Store, path_part
from crawlers.contract import Drop, DropReason, Repeat
from crawlers.crawling import manifest
from crawlers.questions.contract import (
    Found,
    QuestionContext,
    QuestionCrawler,
    QuestionSourceInfo,
    load_question_crawler,
)
from crawlers.text.cleaning import clean, normalise
from crawlers.web.pacing import Turnstile

MAX_OPTIONS = 200
MAX_TITLE_CHARS = 2_000  # maximum of the title, and of each option
MAX_TEXT_CHARS = 100_000  # maximum of the background, and of the resolution criteria


def tidy(question: Question) -> Question | Drop:
    """Return a question with cleaned texts, or a drop if the question cannot be used."""
    tidied = dataclasses.replace(
        question,
        url=normalise(question.url) if question.url else None,
        title=one_line(question.title),
        background=_text(question.background),
        resolution_criteria=_text(question.resolution_criteria),
        options=tuple(map(one_line, question.options)),
        tags=tuple(tag for tag in map(one_line, question.tags) if tag),
        crowd_forecast=tuple(
            dataclasses.replace(forecast, option=one_line(forecast.option))
            for forecast in question.crowd_forecast
        ),
    )
    refusal = _refuse(tidied)
    if refusal:
        return Drop(question.question_id, *refusal)
    return tidied


def one_line(text: str) -> str:
    """Clean a title or an option: remove markup and line breaks."""
    return " ".join(clean(text).split())


# Words that are added to a question when its outcome is known. Before that, "resolves to YES if".
_IS = (
    r"[\"'“‘]?(?:yes|true|false|n/?a|ambiguous|positively|negatively|annulled|no"
    r"(?=[\"'”’.,;!)\]]|$| \(| (?:after|at|because|by|due|given|in|on|per|see|since|with)\b)"
    r")\b(?!\.? ?\d)"
)
_OUTCOME = re.compile(
    r"[(\[]\s*(?:closed,? )?resolved\b(?! (?:by|in|through|via|or|with)\b)[^)\]\n]{0,60}[)\]]"
    r"|(?:^|[|.?!–—-] ?)resolved\s?[:–-]"
    r"|\bquestion(?: (?:has|is|was|now|already|been|got|closed|and)){0,3}"
    r" (?:resolved (?:as|to)|closed (?:as|with)) (?!expected)"
    r"|(?:\b(?:was|has been|has|already) |^|[|.?!] )resolved (?:as|to) "
    r"[\"'“]?(?!No\. ?\d|\S*['’]s)(?-i:[A-Z0-9])"
    r"|\b(?:resolved|resolving|going to resolve|settled|determined|paid out)(?: by \w+)?"
    r"(?: (?:this|it|the)(?: (?:market|question|contract))?)?(?: (?:as|to|at|in favou?r of))?"
    rf"[\s:–-]+{_IS}"
    rf"|[(\[–—-] ?resolves (?:as |to )?{_IS}|\bclosed (?:as |(?=[\"“])){_IS}"
    rf"|\b(?:correct answer|answer to this question|closed[:,] (?:the )?answer) (?:was|is) {_IS}"
    r"|(?:^|[.;!?)\]|–—-] )(?:(?:final|official|correct) )?(?:update|edit|outcome|result|resolution"
    rf"|answer|settlement|winner|expiration value)(?: proposed)?\s?[:–-]\s?(?:resolved )?{_IS}"
    r"(?=[\"'”’]?(?:[.,;!)\]]|$| \(| (?:on|at|per|by|since|because|due)\b))",
    re.IGNORECASE | re.MULTILINE,
)
# Words before or after a match that make it a condition, instead of a statement of the outcome.
_SUPPOSED = re.compile(
    r"(?i)\b(?:be(?: \w+)?"
    r"|(?:if|when|whether|unless|once|until|not|never|questions|markets)\b[^.!?;\n]*) \Z"
)
_CONDITION = re.compile(r"(?i)[^.!?\n]{0,80}\b(?:if|unless|provided|in case|otherwise|or no)\b")


def _find_outcome(text: str) -> str | None:
    """Return the words of a text that state a question's outcome, or None if no words do."""
    text = re.sub(r"[*_]", "", text)
    for match in _OUTCOME.finditer(text):
        start = match.start()  # a sentence before it is at most 80 characters long
        if not _SUPPOSED.search(text, max(0, start - 80), start) and not _CONDITION.match(
            text, match.end()
        ):
            return match[0]
    return None


def _text(text: str | None) -> str | None:
    return (clean(normalise(text)) or None) if text else None


def _refuse(question: Question) -> tuple[DropReason, str] | None:
    """Return the reason and detail why a question cannot be used, or None."""
    options = question.options
    texts = (question.background, question.resolution_criteria)
    if not question.title or not all(options):
        return "empty", "the title or an option is empty"
    if not 2 <= len(options) <= MAX_OPTIONS or len(set(options)) < len(options):
        return "unknown_format", f"{len(options)} options; expected 2 to {MAX_OPTIONS}, all unlike"
    if max(map(len, (question.title, *options))) > MAX_TITLE_CHARS:
        return "too_long", f"title or option of more than {MAX_TITLE_CHARS} characters"
    if max(len(text or "") for text in texts) > MAX_TEXT_CHARS:
        return "too_long", f"a text of more than {MAX_TEXT_CHARS} characters"
    for field in ("title", "background", "resolution_criteria"):
        outcome = _find_outcome(getattr(question, field) or "")
        if outcome:
            return "tells_outcome", f"the {field} says {outcome!r}"
    if question.resolved_at is not None and question.opened_at > question.resolved_at:
        return "parse_error", f"opened {question.opened_at}, after it was resolved"
    return None


_log = logging.getLogger(__name__)


def crawl_questions(
    source: str,
    months: Sequence[Month],
    store: Store,
    settings: Settings,
    *,
    replace: bool = False,  # request all pages again; seal different questions as a new version
    turnstile: Turnstile | None = None,  # shares rate limits of hosts with other machines
) -> list[QuestionSeal]:
    """Crawl and seal the questions that a site resolved in some months, reading its list once.

    Sealed, complete months are left unchanged. If the site fails, the questions read so far are
    sealed as partial months, and the next crawl completes these months. A partial month without
    questions is not sealed. An interrupted crawl seals nothing; the next crawl continues from the
    HTTP cache. Return the months' seals in order of month, including seals of earlier crawls.

    Raises:
        FutureMonth: a month is not over.
        UnknownName: there is no such source.
        UsageError: the source cannot provide a month, or no month was given.
        TokenRefused: the source needs a token that the settings lack; nothing was requested.
        AccessRefused: the source needs a permission that is not in force; nothing was requested.
        EmptyPartition: the site's list has no questions; nothing is sealed.
        SourceError: the site failed before any question, or has changed; nothing is sealed.
    """
    crawler = load_question_crawler(source)
    asked = sorted(set(months))
    info = crawler.INFO
    old_seals = {month: read_question_seal(store, source, month) for month in asked}
    wanted = [
        month for month, seal in old_seals.items() if replace or seal is None or seal.is_partial
    ]
    _require_months(info, asked, wanted)
    if not wanted:
        return [seal for seal in old_seals.values() if seal]
    # Check the permission before the token: nobody should register for a forbidden source.
    permission = require_permission(store, source, info.permission)
    require_token(info, settings)
    fetcher = info.open_fetcher(settings, replace=replace, turnstile=turnstile)
    walk = _Walk(crawler, wanted, QuestionContext(settings, fetcher), permission)
    try:
        walk.run()
    except SourceUnavailable as error:
        if replace or any(old_seals[month] is None for month in wanted):
            raise
        _log.info("%s: its partial months stay as they are: %s", source, error)
        return [seal for seal in old_seals.values() if seal]
    return _seal(walk, store, old_seals, replace)


def _require_months(
    info: QuestionSourceInfo, asked: Sequence[Month], wanted: Sequence[Month]
) -> None:
    """Raise an error if no month is given, or the source cannot provide a month."""
    if not asked:
        raise UsageError(f"{info.name}: no month is given; expected at least one")
    for month in asked:
        require_complete(month)
    for month in wanted:
        lack = info.lacks(month)
        if lack:
            raise UsageError(f"{info.name} {month}: {lack}")


def require_token(info: QuestionSourceInfo, settings: Settings) -> None:
    """Raise TokenRefused if the source needs a token that the settings lack."""
    if info.needs_token and info.name not in settings.tokens:
        raise TokenRefused(
            f"{info.title} gives nothing without a token, so nothing was asked; get one "
            f"{info.token_from}, and set TIDEMARK_TOKENS__{info.name.upper()}"
        )


class _Walk:
    """One pass over a site's list, which collects questions and item counts of each month."""

    def __init__(
        self,
        crawler: QuestionCrawler,
        months: Sequence[Month],
        context: QuestionContext,
        permission: Permission | None,
    ) -> None:
        self._crawler = crawler
        self._context = context
        self._permission = permission
        self.source = crawler.INFO.name
        self.ledgers = {
            month: manifest.Ledger(f"questions of {self.source} {month}") for month in months
        }
        self.questions: dict[Month, list[Question]] = {month: [] for month in months}
        self._seen: set[str] = set()
        self._describe: dict[str, object] = {}  # facts of the manifest about the whole pass

    def run(self) -> None:
        """Read the list; if the site fails, stop and keep the items read so far."""
        started_at = manifest.now()
        fetcher = self._context.fetcher
        try:
            for month, found in self._crawler.fetch_questions(list(self.ledgers), self._context):
                self._note(month, found)
        except SourceError as error:
            # The last response may be an error with status 200; it must not stay in the cache.
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
        rule = self._crawler.INFO.sample
        if rule:
            self._describe["sample"] = {"rule": rule, "seed": self._context.seed}

    def _note(self, month: Month, found: Found) -> None:
        """Count an item of the list; keep a question that can be used."""
        ledger = self.ledgers[month]
        key = found.question_id if isinstance(found, Question) else found.native_id
        if isinstance(found, Repeat):  # not added to ``_seen``, since the item itself may follow
            ledger.pass_over(found)
            return
        if key in self._seen:
            ledger.pass_over(Repeat(key, "came before"))
            return
        self._seen.add(key)
        tidied = tidy(found) if isinstance(found, Question) else found
        if isinstance(tidied, Question):
            if self._context.fetcher.is_simulated():
                tidied = dataclasses.replace(tidied, licence=simulated.LICENCE)
            ledger.keep()
            self.questions[month].append(tidied)
        else:
            ledger.pass_over(tidied)

    def describe(self, month: Month) -> dict[str, object]:
        """Return the manifest of one month."""
        window = {"start": month.start.isoformat(), "end": month.end.isoformat()}
        return {**self._describe, "window": window, **self.ledgers[month].describe()}


def _seal(
    walk: _Walk, store: Store, formers: Mapping[Month, QuestionSeal | None], replace: bool
) -> list[QuestionSeal]:
    """Seal the months of a walk; return all seals, including former ones that are kept."""
    seals = dict(formers)
    for month, ledger in walk.ledgers.items():
        describe = walk.describe(month)
        reason = _reason_to_keep(formers[month], describe, replace)
        if reason:
            _log.warning("questions of %s %s: %s (%s)", walk.source, month, reason, ledger.counts())
            continue
        folder = f"questions/source={path_part(walk.source)}/month={month}"
        store.write_bytes(f"{folder}/{manifest.DROPPED_FILE}", ledger.dropped_items())
        seals[month] = seal_questions(store, walk.source, month, walk.questions[month], describe)
    sealed = [seal for seal in seals.values() if seal]
    if not sealed:
        counts = "; ".join(f"{month}: {led.counts()}" for month, led in walk.ledgers.items())
        raise SourceUnavailable(f"{walk.source}: no question was found ({counts})")
    return sealed


def _reason_to_keep(
    former: QuestionSeal | None, describe: Mapping[str, object], replace: bool
) -> str | None:
    """Return why this crawl does not seal a month (and keeps a former seal); None to seal it."""
    is_partial = describe["status"] == "partial"
    kept = int(str(describe["kept"]))
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
