"""Wikimedia's request limits of 2026, which hold for all its sites together; off by default.

Terms: https://www.mediawiki.org/wiki/Wikimedia_APIs/Rate_limits. A user agent must have the contact
of who runs the program; the page of a project does not count.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from core.settings import PROJECT_PAGE
from simulator.server import Request, Response, Web, WorldSite

PER_MINUTE = 200
PER_MINUTE_WITHOUT_CONTACT = 10
AT_ONCE = 3
_CONTACT = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+|https://[\w.-]+\.\w+")
_WINDOW_S = 60.0


class Limits:
    """Counts of the requests to all sites of Wikimedia; ``now`` returns the time in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.num_refused = self.most_at_once = self._num_open = 0
        self._now = now
        self._lock = threading.Lock()
        self._admitted: deque[float] = deque()  # times of the last minute

    @contextlib.contextmanager
    def admit(self, request: Request) -> Iterator[Response | None]:
        """Yield None if a request is within the limits, else the response that refuses it."""
        agent = request.headers.get("user-agent", "").replace(PROJECT_PAGE, "")
        allowed = PER_MINUTE if _CONTACT.search(agent) else PER_MINUTE_WITHOUT_CONTACT
        with self._lock:
            self._num_open += 1
            self.most_at_once = max(self.most_at_once, self._num_open)
            wait_s = 1.0 if self._num_open > AT_ONCE else self._wait_s(allowed)
            if wait_s > 0:
                self.num_refused += 1
            else:
                self._admitted.append(self._now())
        try:
            again = {"Retry-After": str(math.ceil(wait_s))}
            yield Response(429, again, b"Too many requests") if wait_s > 0 else None
        finally:
            with self._lock:
                self._num_open -= 1

    def _wait_s(self, allowed: int) -> float:
        """Return the seconds until a further request is allowed."""
        while self._admitted and self._now() - self._admitted[0] >= _WINDOW_S:
            self._admitted.popleft()
        if len(self._admitted) < allowed:
            return 0.0
        return self._admitted[-allowed] + _WINDOW_S - self._now()


class LimitedSite(WorldSite):
    """Base class of Wikimedia's sites; a subclass implements ``respond_unlimited``."""

    limits: Limits | None = None

    def respond(self, request: Request) -> Response:
        """Respond to a request, or refuse it if there are ``limits`` and they are exceeded."""
        if self.limits is None:
            return self.respond_unlimited(request)
        with self.limits.admit(request) as refusal:
            return refusal or self.respond_unlimited(request)

    def respond_unlimited(self, request: Request) -> Response:
        """Respond to a request that is within the limits."""
        raise NotImplementedError


def limit_wikimedia(web: Web, limits: Limits | None) -> None:
    """Apply limits to all sites of Wikimedia, or remove them."""
    for site in web.sites.values():
        if isinstance(site, LimitedSite):
            site.limits = limits
