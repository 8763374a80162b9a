"""A network within the process: simulated sites, and a line to them that mutates responses."""

from __future__ import annotations

import datetime as dt
import gzip
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urljoin, urlsplit

from benchmarks.fuzzing.mutations import Grafts, mutate, odd_header
from core.errors import ItemFailed
from core.month import Month
from core.retry_after import read_retry_after
from crawlers.web import pacing
from crawlers.web.connections import too_large
from crawlers.web.exchange import Ask
from crawlers.web.fetcher import Fetched
from simulator.server import Request, Response, Site, site_kinds
from simulator.world import World

AGENT = "tidemark/0.1 (+https://example.org; crawler@example.org)"
NOW = dt.datetime.now(dt.UTC)  # time of all responses
MAX_REQUESTS = 2_000  # of a run; an undisturbed one needs some dozens
STORIES = 4  # a month and site
_BUSY = {429, 500, 502, 503, 504}


class Unbounded(BaseException):
    """A run takes too much time, or too many requests; no crawler may catch it."""


class Sites:
    """All simulated sites of a month. Responses are kept, since these sites do not change.

    ``urls`` has the base URL of each site. Nothing listens there, so that git is refused at once.
    """

    def __init__(self, month: Month) -> None:
        world = World(3, month - 1, month, STORIES)
        self.urls: dict[str, str] = {}
        self.tokens: dict[str, str] = {}  # the valid ones, of the sites that have one
        self._by_host: dict[str, Site] = {}
        self._known: dict[tuple[str, str, str], Response] = {}
        for kind in site_kinds():
            # A site whose pages need scripts has a form that shows them without a browser.
            site = getattr(kind, "without_browser", kind)(world)
            for key in site.keys:
                host = f"127.0.0.1:{len(self.urls) + 1}"
                self.urls[key], self._by_host[host] = f"http://{host}", site
                if hasattr(site, "token"):
                    self.tokens[key] = site.token

    def kind_of(self, url: str) -> str:
        """Return the kind of a request: site, words of the path, and names of parameters."""
        parts = urlsplit(url)
        site = self._by_host.get(parts.netloc)
        segments = parts.path.split("/")[1:]
        known = segments[:1] + segments[3:]  # of ``/repos/OWNER/NAME/git/trees/ID``, for example
        words = [word for word in known if re.fullmatch(r"[a-z_.]{1,20}", word)]
        names = sorted(parse_qs(parts.query, keep_blank_values=True))
        return f"{site.keys[0] if site else ''} {len(segments)} {words} {names}"

    def respond(self, url: str, headers: Mapping[str, str]) -> Response:
        """Return a site's response to a GET request, decompressed."""
        key = (url, headers.get("accept", ""), headers.get("range", ""))
        if key not in self._known:
            parts = urlsplit(url)
            site, query = self._by_host.get(parts.netloc), parse_qs(parts.query, True)
            sent = {"host": parts.netloc, "user-agent": AGENT, "accept-encoding": "gzip", **headers}
            asked = Request("GET", parts.path, query, sent, b"", parts.query)
            try:
                response = site.respond(asked) if site else Response(404)
            except Exception:  # noqa: BLE001 - a simulated site need not bear mutated ids
                response = Response(400)
            if response.headers.get("Content-Encoding") == "gzip":
                response = Response(response.status, {}, gzip.decompress(response.body))
            self._known[key] = response
        return self._known[key]


@dataclass
class Line:
    """Replacement of a fetcher's ``Exchange``: it mutates responses, and does not try again."""

    sites: Sites
    rng: random.Random
    grafts: Grafts
    shares: Mapping[str, float]  # of responses to mutate, by kind of request
    user_agent: str = AGENT
    stats: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)  # requests by kind
    num_mutated: int = 0

    def knows(self, url: str) -> bool:
        """Return True: every host counts as one of the source's hosts."""
        return True

    def count(self, **more: int) -> None:
        """Add numbers to the counts in ``stats``."""
        self.stats.update(more)

    def read(self, url: str, *_: object, **__: object) -> Fetched:
        """Return a page like a ``Session`` in a browser."""
        return self.fetch(Ask(url))

    def fetch(self, ask: Ask) -> Fetched:
        """Return a response as ``Exchange.fetch`` does; raise the same errors, but at once."""
        url, response = self._follow(ask)
        fetched = self._answer(url, response)
        if len(fetched.body) > ask.max_bytes:
            raise too_large(ask.url, ask.max_bytes)
        read_retry_after(fetched.headers.get("retry-after"))
        rest_s = ask.rules.pause_s(response.status, fetched) if ask.rules else None
        is_limited = response.status == 403 and rest_s is not None
        is_busy = response.status == 200 and ask.is_busy and ask.is_busy(fetched)
        if is_busy or is_limited or response.status in _BUSY:
            raise ItemFailed("http_5xx", f"{ask.url} is busy")
        if not (ask.span and response.status == 206):
            pacing.require_ok(response.status, url, ask.rules)
        if download := getattr(ask, "download", None):  # a file that is passed on as it comes
            download._sink(fetched.body)
        return fetched

    def _follow(self, ask: Ask) -> tuple[str, Response]:
        """Send a request to the simulated sites and follow redirects; limit a run's requests."""
        url, sent = ask.url, {**ask.headers, **(ask.span.headers if ask.span else {})}
        headers = {name.lower(): value for name, value in sent.items()}
        while True:
            self.asked[self.sites.kind_of(url)] += 1
            if self.asked.total() > MAX_REQUESTS:
                raise Unbounded(f"{MAX_REQUESTS} requests, the last one {url:.200}")
            response = self.sites.respond(url, headers)
            if not (location := response.headers.get("Location")):
                return url, response
            url = urljoin(url, location)

    def _answer(self, url: str, response: Response) -> Fetched:
        """Return a response, mutated with the probability that its kind has."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = response.body
        if self.rng.random() < self.shares.get(self.sites.kind_of(url), 0.0):
            self.num_mutated += 1
            body = mutate(body, self.rng, self.grafts)
            if self.rng.random() < 0.1:
                name = self.rng.choice([*headers, "retry-after"])
                headers[name] = odd_header(headers.get(name, ""), self.rng)
        return Fetched(url, headers, body, NOW)
