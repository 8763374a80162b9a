"""Requests to a source's hosts, sent politely, and their answers, read with distrust.

What ``crawlers/http.py`` has not in its cache goes through here: robots.txt, the pace of hosts,
tries, redirects by hand, caps, tokens that nobody is to see.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
from requests.structures import CaseInsensitiveDict

from core.errors import AccessRefused, ItemFailed, ItemUnavailable, SourceChanged, UsageError
from core.settings import Settings
from crawlers import robots
from crawlers.addresses import is_private_address
from crawlers.api_rules import ApiRules, require_ok
from crawlers.circuit import Circuit
from crawlers.connections import Cookies, Sender
from crawlers.pacing import Pace, TryAgain, Turnstile, read_retry_after
from crawlers.raw_cache import Fetched, RawCache
from crawlers.tokens import Tokens
from crawlers.transfer import in_time, read_body, read_headers
from crawlers.urls import (
    follow,
    host_of_url,
    is_sendable,
    normalise,
    origin_of,
    place_of_url,
)

DEFAULT_MAX_BYTES = 32 * 2**20
MAX_TRIES = 5
MAX_REDIRECTS = 5

_WORTH_ANOTHER_TRY = {429, 500, 502, 503, 504}
_COUNTED = ("requests", "cached", "retries", "2xx", "3xx", "304", "4xx", "5xx", "bytes", "wait_ms")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ask:
    """What one call of ``get`` wants, or the reading of one robots.txt."""

    url: str  # without what is secret: for messages, files and robots.txt
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_params: Mapping[str, str] = field(default_factory=dict)
    known: Fetched | None = None  # still good, if the site says so
    max_bytes: int = DEFAULT_MAX_BYTES
    is_busy: Callable[[Fetched], bool] | None = None
    rules: ApiRules | None = None
    not_before: dt.datetime | None = None
    is_robots: bool = False
    cookies: Cookies | None = None
    form: bytes | None = None  # to be sent by POST


class _Hop(NamedTuple):
    """One request on the way to an answer."""

    url: str  # as in Ask
    sent_url: str
    headers: Mapping[str, str]


class Answer(NamedTuple):
    """An answer, which may be a refusal or lead on."""

    status: int
    fetched: Fetched  # with a body where the status is 200, or an error and rules are to read it
    redirect: str | None


@dataclass(frozen=True)
class Conduct:
    """How the hosts of a source are asked; the attributes are those of ``Fetcher``."""

    request_interval_s: float
    redirect_hosts: Sequence[str]
    robots_exempt_paths: Sequence[str]
    shares_pace: bool
    turnstile: Turnstile | None


class Exchange:
    """Sends requests. May be used by several threads.

    Args:
        settings: its ``sites`` may be on a private address; ``contact`` and the scratch folder are
            used, and ``request_interval_s`` in place of the source's.
        sites: base URL by key.
        conduct: what the source declares.
        tokens: to be hidden in what is read, and in what is said.
        cache: keeps robots.txt files, where there is one.

    Attributes:
        user_agent: how we name ourselves to the sites.
        stats: see ``Fetcher``.

    Raises:
        UsageError: a base URL or the contact cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        sites: Mapping[str, str],
        conduct: Conduct,
        tokens: Tokens,
        cache: RawCache | None,
    ) -> None:
        hosts = [_host_of_site(key, url) for key, url in sites.items()]
        self._hosts = {*hosts, *(host.lower() for host in conduct.redirect_hosts)}
        self._shared_pace = hosts[0] if conduct.shares_pace and hosts else None
        given = settings.request_interval_s
        self._interval_s = conduct.request_interval_s if given is None else given
        self._pace = Pace(settings.scratch / "pace", conduct.turnstile)
        self._robots = robots.Robots(self._read_robots, cache, conduct.robots_exempt_paths)
        self._tokens = tokens
        self._circuit = Circuit(", ".join(sites.values()))
        self._own = {place for url in settings.sites.values() if (place := place_of_url(url))}
        self._sender = Sender(self._own)
        library = requests.utils.default_user_agent()
        self.user_agent = f"{robots.AGENT}/{_version()} (+{settings.contact}) {library}"
        require_sendable({"User-Agent (its contact is TIDEMARK_CONTACT)": self.user_agent})
        self._lock = threading.Lock()
        self.stats: dict[str, int] = dict.fromkeys(_COUNTED, 0)

    def knows(self, url: str) -> bool:
        """Whether a URL is on one of the source's hosts."""
        return host_of_url(url) in self._hosts

    def count(self, **more: int) -> None:
        """Add to ``stats``."""
        with self._lock:
            for name, number in more.items():
                self.stats[name] = self.stats.get(name, 0) + number

    def fetch(self, ask: Ask) -> Fetched:
        """Return the answer to a request, and count the address if it fails.

        Raises:
            SourceError: as ``Fetcher.get``.
        """
        try:
            answer = self._persist(ask)
            status, found, known = answer.status, answer.fetched, ask.known
            if status == 304 and known and known.validators and known.url == found.url:
                self.count(**{"304": 1})
                found = known.renewed(found)
            else:
                require_ok(answer.status, answer.fetched.url, ask.rules)
        except (ItemFailed, ItemUnavailable) as error:
            self._circuit.note_address(has_failed=isinstance(error, ItemFailed))
            raise
        self._circuit.note_address(has_failed=False)
        return found

    def send_once(self, ask: Ask) -> Answer:
        """Send a request once, and follow nothing; return the answer, whatever its status is.

        Raises:
            ItemFailed: the transfer failed, or the site did (429, 5xx).
            SourceError: as ``Fetcher.get``.
        """
        self._require_known_host(ask.url, ask.url)
        delay_s = self._robots.obey(ask.url)
        hop = _Hop(ask.url, ask.url, ask.headers)
        try:
            return self._exchange(hop, ask, max(delay_s, self._interval_s))
        except TryAgain as failure:
            raise ItemFailed(failure.reason, str(failure)) from failure

    def _persist(self, ask: Ask) -> Answer:
        """Follow a URL to its answer, again where the failure may pass."""
        attempt = 1
        while True:
            try:
                return self._follow(ask)
            except TryAgain as failure:
                if attempt == MAX_TRIES:
                    raise ItemFailed(
                        failure.reason,
                        f"{ask.url} failed {MAX_TRIES} times, at last: {failure}; "
                        "run the same command again later",
                    ) from failure
                _log.info("trying again: %s", self._tokens.hide(str(failure)))
                self.count(retries=1)
                attempt += 1

    def _follow(self, ask: Ask) -> Answer:
        """Follow redirects by hand, so that each hop meets the same checks as the first URL."""
        sent_url = normalise(ask.url, ask.secret_params) if ask.secret_params else ask.url
        hop = _Hop(ask.url, sent_url, ask.headers)
        for _ in range(MAX_REDIRECTS + 1):
            self._require_known_host(hop.url, ask.url)
            delay_s = 0.0 if ask.is_robots else self._robots.obey(hop.url)
            answer = self._exchange(hop, ask, max(delay_s, self._interval_s))
            if answer.redirect is None:
                return answer
            target = follow(hop.url, answer.redirect)
            url = self._tokens.hide(target)
            if origin_of(target) == origin_of(hop.url):
                hop = _Hop(url, target, hop.headers)
            else:
                hop = _Hop(url, url, {})  # tokens are for the site alone
        raise SourceChanged(
            f"{ask.url} redirects more than {MAX_REDIRECTS} times, last to {hop.url}"
        )

    def _require_known_host(self, url: str, asked_url: str) -> None:
        """Refuse what is not a page of a known host: a consent wall, or a machine of our own."""
        host = host_of_url(url)
        if host is None or host not in self._hosts:
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is on none of this source's hosts "
                f"({', '.join(sorted(self._hosts))}); nothing was fetched from there"
            )
        if urlsplit(asked_url).scheme == "https" and urlsplit(url).scheme == "http":
            raise AccessRefused(f"{asked_url} leads to {url}, which anyone on the way can alter")
        if place_of_url(url) not in self._own and is_private_address(urlsplit(url).hostname or ""):
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is not on the public internet; if it is meant, "
                "name it in a setting: TIDEMARK_SITES__<KEY>"
            )

    def _exchange(self, hop: _Hop, ask: Ask, interval_s: float) -> Answer:
        """Send one request, when it is its turn, and read the answer."""
        self._circuit.require_closed()
        url = hop.url
        host = self._shared_pace or host_of_url(url) or url
        with self._pace.turn(host, interval_s) as waited_s:
            self.count(requests=1, wait_ms=round(waited_s * 1000))
            with in_time(url), self._send(hop, ask) as response:
                self.count(**{f"{response.status_code // 100}xx": 1})
                self._circuit.note_status(response.status_code)
                answer = self._read(response, url, ask)
            pause_s = read_retry_after(answer.fetched.headers.get("retry-after"))
            rest_s = ask.rules.pause_s(answer.status, answer.fetched) if ask.rules else None
            pause_s = pause_s if rest_s is None else rest_s
            if answer.status in _WORTH_ANOTHER_TRY or (answer.status == 403 and rest_s is not None):
                reason = "http_5xx" if answer.status >= 500 else "http_429"
                raise TryAgain(f"{url} answered {answer.status}", pause_s, reason)
            if answer.status == 200 and ask.is_busy and ask.is_busy(answer.fetched):
                raise TryAgain(f"{url} answered that it is busy", pause_s, "http_5xx")
        if rest_s is not None:
            self._pace.rest(host, rest_s)
        return answer

    def _send(self, hop: _Hop, ask: Ask) -> requests.Response:
        merged = CaseInsensitiveDict({"Accept": "*/*", **hop.headers})
        if ask.known and ask.known.url == hop.url:
            merged.update(ask.known.validators)
        merged.update({"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        if ask.cookies is None:
            return self._sender.send(hop.sent_url, merged)
        if cookie := ask.cookies.header_for(hop.sent_url):
            merged["Cookie"] = cookie
        response = self._sender.send(hop.sent_url, merged, ask.form)
        ask.cookies.learn(response)
        return response

    def _read(self, response: requests.Response, url: str, ask: Ask) -> Answer:
        redirect = self._sender.redirect_of(response)
        try:
            headers = read_headers(response, url)
            is_wanted = response.status_code == 200 or (ask.rules and response.status_code >= 400)
            body = read_body(response, url, ask.max_bytes, ask.is_robots) if is_wanted else b""
        finally:
            self.count(bytes=response.raw.tell())
        headers = {name: self._tokens.hide(value) for name, value in headers.items()}
        fetched = Fetched(url, headers, self._tokens.hide_in(body), dt.datetime.now(dt.UTC))
        return Answer(response.status_code, fetched, redirect)

    def _read_robots(self, url: str) -> Fetched:
        answer = self._persist(Ask(url, max_bytes=robots.MAX_BYTES, is_robots=True))
        if not 400 <= answer.status < 500:  # else there is none: all is allowed, RFC 9309 2.3.1.3
            require_ok(answer.status, answer.fetched.url)
        return answer.fetched


def _version() -> str:
    try:
        return importlib.metadata.version(robots.AGENT)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "checkout"


def require_sendable(headers: Mapping[str, str]) -> None:
    """Refuse what would break a header apart; the value may be a secret and is not shown."""
    for name, value in headers.items():
        if not is_sendable(value):
            raise UsageError(
                f"the header {name} holds a line break or another character that HTTP does not "
                "allow; see the setting it is made of"
            )


def _host_of_site(key: str, url: str) -> str:
    host = host_of_url(url)
    if host is None:
        raise UsageError(
            f"the address of site {key!r} is {url!r}; expected http://… or https://… "
            f"without a password (TIDEMARK_SITES__{key.upper()})"
        )
    return host
