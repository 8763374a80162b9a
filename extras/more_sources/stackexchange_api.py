"""A client of the Stack Exchange API 2.3, with its paged lists and rate limits.

Rate limits (https://api.stackexchange.com/docs/throttle): 300 requests a day per IP address; with
an API key (TIDEMARK_TOKENS), 10,000. ``backoff`` in a response is the number of seconds to wait
before the same method is called again. The API blocks clients that call earlier
(``throttle_violation``). So the client pauses all requests to the host for that time. Errors are
JSON objects with an ``error_id``, often with HTTP status 400. Times are in seconds since 1970.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence

from core.errors import (
    AccessRefused,
    ItemUnavailable,
    SourceChanged,
    SourceError,
    SourceUnavailable,
)
from crawlers.apis.fields import MAX_INTEGER, Fields
from crawlers.web.fetcher import Fetched, Fetcher, decode
from crawlers.web.pacing import ApiRules

SITE = "stackexchange"
BASE_URL = "https://api.stackexchange.com"
PAGE_SIZE = 100  # items per page, the maximum that the API allows
MAX_PAGES = 25  # maximum pages of a list; later pages require a login
MAX_QUESTIONS = 1_000_000  # of a site and month; the largest had some 220,000
_PASSING = {500, 503}  # values of error_id: internal_error, temporarily_unavailable
_REFUSING = {401, 402, 403, 405, 406}  # values of error_id: an API key is required or rejected
_THROTTLED = 502

Params = Mapping[str, str | int]
Found = tuple[Fields, dt.datetime]  # an item and the time of the response


class StackExchange:
    """The API client of one crawl.

    Every method raises:
        SourceUnavailable: the daily quota is used up, the API throttles the client, or the API does
            not answer.
        SourceChanged: a response is not as documented.
        AccessRefused: the API key is rejected, or robots.txt forbids the API.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        token = fetcher.token(SITE)
        self._secrets = {"key": token} if token else None
        self._used_up_on: dt.date | None = None  # UTC day on which the daily quota ran out
        fetcher.heed(SITE, ApiRules(_read_rules))

    def count_questions(self, site: str, start: int, end: int) -> int:
        """Return how many questions a site got between two times (seconds since 1970)."""
        window: Params = {"fromdate": start, "todate": end, "filter": "total"}
        response, _ = self._ask("/2.3/questions", {"site": site, **window})
        total = response.integer("total", 0, MAX_QUESTIONS)
        return response.need("total", total, f"a number up to {MAX_QUESTIONS}")

    def list_questions(self, site: str, start: int, end: int) -> Iterator[Found]:
        """Yield the questions from ``start`` to ``end`` (inclusive) with HTML text, by time."""
        window: Params = {"fromdate": start, "todate": end, "sort": "creation", "order": "asc"}
        return self._list("/2.3/questions", {"site": site, **window})

    def list_answers(self, site: str, questions: Sequence[int]) -> Iterator[Found]:
        """Yield all answers to up to 100 questions with their HTML texts, oldest first."""
        path = f"/2.3/questions/{';'.join(map(str, questions))}/answers"
        return self._list(path, {"site": site, "sort": "creation", "order": "asc"})

    def _list(self, path: str, params: Params) -> Iterator[Found]:
        """Yield the rows of a list, page by page."""
        for page in range(1, MAX_PAGES + 1):
            more: Params = {"filter": "withbody", "pagesize": PAGE_SIZE, "page": page}
            response, given_at = self._ask(path, {**params, **more})
            items = response.need("items", response.rows("items"), "a list")
            yield from ((item, given_at) for item in items)
            if not response.need("has_more", response.boolean("has_more"), "true or false"):
                return
        raise SourceChanged(f"{SITE}: {path} goes on after {MAX_PAGES} pages; expected fewer")

    def _ask(self, path: str, params: Params) -> Found:
        """Send a request, and note the quota left; raise an error if the day's is used up."""
        if self._used_up_on == dt.datetime.now(dt.UTC).date():
            raise SourceUnavailable(
                f"{SITE}: the day's requests are used up; run the same command again tomorrow "
                "(UTC), or set a key (TIDEMARK_TOKENS__STACKEXCHANGE), with which there are more"
            )
        try:
            fetched = self._fetcher.get(
                SITE, path, params, secret_params=self._secrets, is_busy=_is_busy
            )
        except ItemUnavailable as error:  # without this list, the month cannot be crawled
            kind = AccessRefused if error.reason == "robots" else SourceUnavailable
            raise kind(f"{SITE}: a list of the month is unavailable: {error}") from error
        response = Fields.of(f"{SITE}: {path} of {params['site']}", fetched.json())
        self._note_quota(response, fetched.retrieved_at)
        return response, fetched.retrieved_at

    def _note_quota(self, response: Fields, given_at: dt.datetime) -> None:
        """If the daily quota is used up, store the UTC day of the response, which may be cached."""
        if response.integer("quota_remaining", -MAX_INTEGER, 0) is not None:
            self._used_up_on = given_at.date()


def _read_rules(status: int, fetched: Fetched) -> float | None:
    """Return the pause in s that a response asks for, or None; raise an error if it refuses us."""
    response = Fields.of(SITE, decode(fetched))  # without fields for a proxy's error page
    refusal = _refusal(response)
    if refusal:
        raise refusal
    backoff = response.integer("backoff", 1)
    return None if backoff is None else float(min(backoff, 10**6))


def _is_busy(fetched: Fetched) -> bool:
    response = Fields.of(SITE, decode(fetched))
    is_anomalous = response.rows("items") == [] and response.boolean("has_more")
    return bool(is_anomalous) or response.integer("error_id") in _PASSING


def _refusal(response: Fields) -> SourceError | None:
    """Return the error that a response of the API means; None if the request may pass later."""
    number = response.integer("error_id")
    if number is None or number in _PASSING:
        return None
    told = f"{number} {response.text('error_name')}: {response.text('error_message')}"
    message = f"{SITE}: the API refuses: {told!r:.300}"
    if number == _THROTTLED:
        return SourceUnavailable(f"{message}; run the same command again tomorrow")
    if number in _REFUSING:
        return AccessRefused(message)
    return SourceChanged(message)
