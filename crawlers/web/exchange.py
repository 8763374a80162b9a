"""Sending of requests to a source's hosts, which ``fetcher.py`` uses after a cache miss."""

from __future__ import annotations

import contextlib
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

from core.corpus import simulated
from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    SourceError,
    UsageError,
)
from core.retry_after import read_retry_after
from core.settings import Settings
from core.version import own_version
from crawlers.web import pacing, urls
from crawlers.web.connections import Cookies, Sender, in_time, read_body, read_headers
from crawlers.web.credentials import Tokens
from crawlers.web.download import Download
from crawlers.web.ranges import ByteRange
from crawlers.web.raw_cache import Fetched, RawCache
from crawlers.web.robots import ROBOTS_AGENT, ROBOTS_MAX_BYTES, Robots

DEFAULT_MAX_BYTES = 32 * 2**20
MAX_TRIES = 5
MAX_REDIRECTS = 5

_WORTH_ANOTHER_TRY = {429, 500, 502, 503, 504}
_COUNTED = ("requests", "cached", "retries", "2xx", "3xx", "304", "4xx", "5xx", "bytes", "wait_ms")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ask:
    """The parameters of one call of ``Fetcher.get``, or of one robots.txt request."""

    url: str  # URL without secret parameters, for messages, files and robots.txt
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_params: Mapping[str, str] = field(default_factory=dict)
    known: Fetched | None = None  # cached response to revalidate
    max_bytes: int = DEFAULT_MAX_BYTES
    is_busy: Callable[[Fetched], bool] | None = None
    rules: pacing.ApiRules | None = None
    not_before: dt.datetime | None = None
    is_robots: bool = False
    cookies: Cookies | None = None
    form: bytes | None = None  # body of a POST request; None: GET
    download: Download | None = None  # receives the body, which is then not part of the response
    span: ByteRange | None = None  # part of the file that is asked for; None: the whole file


class _Hop(NamedTuple):
    """One request of a chain of redirects."""

    url: str  # URL without secret parameters
    sent_url: str
    headers: Mapping[str, str]


class HttpResponse(NamedTuple):
    """A response with any status, including redirects and refusals."""

    status: int
    fetched: Fetched  # body is empty, except for status 200 (or 400 and above if Ask.rules is set)
    redirect: str | None


@dataclass(frozen=True)
class Conduct:
    """Request interval, allowed hosts and robots.txt exemptions of a source; see ``Fetcher``."""

    request_interval_s: float
    redirect_hosts: Sequence[str]
    robots_exempt_paths: Sequence[str]
    shares_pace: bool | str
    turnstile: pacing.Turnstile | None


class Exchange:
    """Sender of requests to a source's sites. Several threads may use it.

    Only sites from the settings may have private addresses. Responses and messages contain no
    tokens. The cache stores robots.txt files. Raise UsageError for an invalid base URL or contact.
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
        self._site_hosts = frozenset(hosts)
        self._exempt_paths = tuple(conduct.robots_exempt_paths)
        self._shared_pace = hosts[0] if conduct.shares_pace and hosts else None
        if isinstance(conduct.shares_pace, str):
            self._shared_pace = conduct.shares_pace
        self._declared_s = conduct.request_interval_s
        self._given_s = settings.request_interval_s
        self._pace = pacing.Pace(settings.scratch / "pace", conduct.turnstile)
        self._robots = Robots(self._read_robots, cache, self._is_exempt)
        self._tokens = tokens
        self._circuit = pacing.Circuit(", ".join(sites.values()))
        self._own = {place for url in settings.sites.values() if (place := urls.place_of_url(url))}
        self._sender = Sender(self._own)
        library = requests.utils.default_user_agent()
        # A plus sign before an e-mail address would be part of it.
        contact = f"+{settings.contact}" if "://" in settings.contact else settings.contact
        self.user_agent = f"{ROBOTS_AGENT}/{_version()} ({contact}) {library}"
        require_sendable({"User-Agent (its contact is TIDEMARK_CONTACT)": self.user_agent})
        self._lock = threading.Lock()
        self.stats: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self.record: Callable[[HttpResponse, bool], None] | None = None  # see ``Fetcher.record``
        self.is_simulated = False  # True once a response of a simulated site was read

    def knows(self, url: str) -> bool:
        """Return True if a URL is on one of the source's hosts."""
        return urls.host_of_url(url) in self._hosts

    def count(self, **more: int) -> None:
        """Add numbers to the counts in ``stats``."""
        with self._lock:
            for name, number in more.items():
                self.stats[name] = self.stats.get(name, 0) + number

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Note if a response, with lower-case names of headers, is of a simulated site."""
        if simulated.HEADER.lower() in headers:
            self.is_simulated = True

    def ask_whether_simulated(self, site: str) -> None:
        """Read a site's robots.txt once for ``is_simulated``, if the settings name the site."""
        url = f"{site}/robots.txt"
        if urls.place_of_url(url) in self._own:
            with contextlib.suppress(SourceError, pacing.TryAgain):
                self._exchange(_Hop(url, url, {}), Ask(url, is_robots=True), 0.0)

    def fetch(self, ask: Ask) -> Fetched:
        """Return the response to a request, after retries; raise the errors of ``Fetcher.get``."""
        try:
            response = self._persist(ask)
            found = response.fetched
            known = ask.known
            if response.status == 304 and known and known.validators and known.url == found.url:
                self.count(**{"304": 1})
                found = known.renewed(found)
            else:
                pacing.require_ok(response.status, response.fetched.url, ask.rules)
        except (ItemFailed, ItemUnavailable) as error:
            self._circuit.note_address(has_failed=isinstance(error, ItemFailed))
            raise
        self._circuit.note_address(has_failed=False)
        return found

    def send_once(self, ask: Ask) -> HttpResponse:
        """Send a request once, follow no redirect, and return the response of any status.

        Raise ItemFailed if the transfer failed, or the site returned 429 or 5xx.
        """
        self._require_known_host(ask.url, ask.url)
        delay_s = self._robots.obey(ask.url)
        hop = _Hop(ask.url, ask.url, ask.headers)
        try:
            return self._exchange(hop, ask, self._interval_s(ask.url, delay_s))
        except pacing.TryAgain as failure:
            raise ItemFailed(failure.reason, str(failure)) from failure

    def _persist(self, ask: Ask) -> HttpResponse:
        """Send a request up to MAX_TRIES times; a cut in a long download restores all tries."""
        attempt = 1
        while True:
            try:
                return self._follow(ask)
            except pacing.TryAgain as failure:
                if ask.download and ask.download.was_long():
                    attempt = 0
                if attempt == MAX_TRIES:
                    raise ItemFailed(
                        failure.reason,
                        f"{ask.url} failed {MAX_TRIES} times, at last: {failure}; "
                        "run the same command again later",
                    ) from failure
                _log.info("trying again: %s", self._tokens.hide(str(failure)))
                self.count(retries=1)
                attempt += 1

    def _follow(self, ask: Ask) -> HttpResponse:
        """Follow redirects one by one, so that each URL passes the same checks as the first."""
        sent_url = urls.normalise(ask.url, ask.secret_params) if ask.secret_params else ask.url
        hop = _Hop(ask.url, sent_url, ask.headers)
        for _ in range(MAX_REDIRECTS + 1):
            self._require_known_host(hop.url, ask.url)
            delay_s = 0.0 if ask.is_robots else self._robots.obey(hop.url)
            response = self._exchange(hop, ask, self._interval_s(hop.url, delay_s))
            if response.redirect is None:
                return response
            target = urls.follow(hop.url, response.redirect)
            url = self._tokens.hide(target)
            if urls.origin_of(target) == urls.origin_of(hop.url):
                hop = _Hop(url, target, hop.headers)
            else:
                hop = _Hop(url, url, {})  # other hosts get no tokens or headers
        raise SourceChanged(
            f"{ask.url} redirects more than {MAX_REDIRECTS} times, last to {hop.url}"
        )

    def _interval_s(self, url: str, delay_s: float) -> float:
        """Return the seconds between requests to a host; ``delay_s`` is its crawl delay."""
        # The settings cannot reduce what the source declares, except for sites that they name.
        is_own = urls.place_of_url(url) in self._own
        declared_s = self._declared_s if self._given_s is None or not is_own else 0.0
        return max(delay_s, declared_s, self._given_s or 0.0)

    def _require_known_host(self, url: str, asked_url: str) -> None:
        """Raise AccessRefused for an unlisted host, a private address, or HTTPS leading to HTTP."""
        host = urls.host_of_url(url)
        if host is None or host not in self._hosts:
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is on none of this source's hosts "
                f"({', '.join(sorted(self._hosts))}); nothing was fetched from there"
            )
        if urlsplit(asked_url).scheme == "https" and urlsplit(url).scheme == "http":
            raise AccessRefused(f"{asked_url} leads to {url}, which anyone on the way can alter")
        address = urlsplit(url).hostname or ""
        if urls.place_of_url(url) not in self._own and urls.is_private_address(address):
            raise AccessRefused(
                f"{asked_url} leads to {url}, which is not on the public internet; if it is meant, "
                "name it in a setting: TIDEMARK_SITES__<KEY>"
            )

    def _exchange(self, hop: _Hop, ask: Ask, interval_s: float) -> HttpResponse:
        """Wait for the host's turn and send one request; raise TryAgain for a temporary failure."""
        self._circuit.require_closed()
        url = hop.url
        # Downloads do not share the pace of the source's sites.
        host = (None if ask.download else self._shared_pace) or urls.host_of_url(url) or url
        with self._pace.turn(host, interval_s) as waited_s:
            self.count(requests=1, wait_ms=round(waited_s * 1000))
            with in_time(url), self._send(hop, ask) as received:
                self.count(**{f"{received.status_code // 100}xx": 1})
                self._circuit.note_status(received.status_code)
                response = self._read(received, url, ask)
            if self.record:
                self.record(response, ask.download is not None)
            pause_s = read_retry_after(response.fetched.headers.get("retry-after"))
            rule_pause_s = (
                ask.rules.pause_s(response.status, response.fetched) if ask.rules else None
            )
            pause_s = pause_s if rule_pause_s is None else rule_pause_s
            if response.status in _WORTH_ANOTHER_TRY or (
                response.status == 403 and rule_pause_s is not None
            ):
                reason = "http_5xx" if response.status >= 500 else "http_429"
                raise pacing.TryAgain(f"{url} answered {response.status}", pause_s, reason)
            if response.status == 200 and ask.is_busy and ask.is_busy(response.fetched):
                raise pacing.TryAgain(f"{url} answered that it is busy", pause_s, "http_5xx")
        if rule_pause_s is not None:
            self._pace.rest(host, rule_pause_s)
        return response

    def _send(self, hop: _Hop, ask: Ask) -> requests.Response:
        """Send a request with all its headers, and with cookies if it is for a browser page."""
        merged = CaseInsensitiveDict({"Accept": "*/*", **hop.headers})
        if ask.known and ask.known.url == hop.url:
            merged.update(ask.known.validators)
        merged.update({"User-Agent": self.user_agent, "Accept-Encoding": "gzip"})
        merged.update(ask.download.headers if ask.download else {})
        merged.update(ask.span.headers if ask.span else {})
        if ask.cookies is None:
            return self._sender.send(hop.sent_url, merged)
        cookie = ask.cookies.header_for(hop.sent_url)
        if cookie:
            merged["Cookie"] = cookie
        received = self._sender.send(hop.sent_url, merged, ask.form)
        ask.cookies.learn(received)
        return received

    def _read(self, received: requests.Response, url: str, ask: Ask) -> HttpResponse:
        """Return a response without tokens; a status without content has an empty body."""
        redirect = self._sender.redirect_of(received)
        status = received.status_code
        body = b""
        try:
            headers = read_headers(received, url)
            if ask.download:
                status = 200 if ask.download.receive(received, url) else status
            elif ask.span and status in {200, 206}:
                body = ask.span.receive(received, url)
                status = 200
            elif status == 200 or (ask.rules and status >= 400):
                body = read_body(received, url, ask.max_bytes, ask.is_robots)
        finally:
            self.count(bytes=received.raw.tell())
        headers = {name: self._tokens.hide(value) for name, value in headers.items()}
        self.note_headers(headers)
        fetched = Fetched(url, headers, self._tokens.hide_in(body), dt.datetime.now(dt.UTC))
        return HttpResponse(status, fetched, redirect)

    def _is_exempt(self, url: str) -> bool:
        """Return True for an exempt path on one of the source's sites, not on a redirect's host."""
        is_on_site = urls.host_of_url(url) in self._site_hosts
        return is_on_site and any(urls.is_covered(url, each) for each in self._exempt_paths)

    def _read_robots(self, url: str) -> Fetched:
        """Return a site's robots.txt; raise the errors of ``fetch`` for statuses but 4xx."""
        response = self._persist(Ask(url, max_bytes=ROBOTS_MAX_BYTES, is_robots=True))
        if not 400 <= response.status < 500:  # status 4xx allows all URLs (RFC 9309, 2.3.1.3)
            pacing.require_ok(response.status, response.fetched.url)
        return response.fetched


def _version() -> str:
    try:
        return own_version()
    except importlib.metadata.PackageNotFoundError:  # tidemark is not installed
        return "checkout"


def require_sendable(headers: Mapping[str, str]) -> None:
    """Raise UsageError if a header value has a line break; do not show the value (a secret)."""
    for name, value in headers.items():
        if not urls.is_sendable(value):
            raise UsageError(
                f"the header {name} holds a line break or another character that HTTP does not "
                "allow; see the setting it is made of"
            )


def _host_of_site(key: str, url: str) -> str:
    """Return the host of a site's address; raise UsageError if it is no usable address."""
    host = urls.host_of_url(url)
    if host is None:
        raise UsageError(
            f"the address of site {key!r} is {url!r}; expected http://… or https://… "
            f"without a password (TIDEMARK_SITES__{key.upper()})"
        )
    return host
