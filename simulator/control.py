"""The control site: lists the simulated sites, and switches their faults on and off.

``GET /`` lists the sites and the settings that point tidemark to them. ``POST /faults`` adds a
fault, a quirk (a protocol-specific fault) or a rate limit. ``POST /faults/clear`` removes all::

    curl -X POST 'http://127.0.0.1:8600/faults?site=arxiv&fault=403&pattern=^/src&times=3'
    curl -X POST 'http://127.0.0.1:8600/faults?site=arxiv&quirk=empty_page'
    curl -X POST 'http://127.0.0.1:8600/faults?site=arxiv&limit_s=3'
    curl -X POST 'http://127.0.0.1:8600/faults?site=wikipedia&limits=real'  # all of Wikimedia
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

from core.errors import UsageError
from simulator.faults import KNOBS, knob
from simulator.limits import LimitedSite, Limits, limit_wikimedia
from simulator.server import QuirkName, Request, Response, Web
from simulator.server import Site as SimulatedSite

MAX_TIMES = 10**6


class Site:
    """The control site; see the module docstring."""

    keys: tuple[str, ...] = ("simulator",)
    robots: str | None = None

    def __init__(self, web: Web, title: str) -> None:
        self.quirks: dict[QuirkName, int] = {}
        self._web = web
        self._title = title

    def respond(self, request: Request) -> Response:
        """Respond with the list of sites, or add or remove faults."""
        if request.path == "/":
            return _text(200, self._title, *exports(self._web))
        if request.path not in ("/faults", "/faults/clear") or request.method != "POST":
            return _text(404, "expected GET /, POST /faults or POST /faults/clear")
        if request.path == "/faults/clear":
            self._clear()
            return _text(200, "no faults")
        try:
            self._add(request)
        except (UsageError, ValueError, re.error) as error:
            return _text(400, str(error))
        return _text(200, "added")

    @property
    def _sites(self) -> dict[str, SimulatedSite]:
        return {key: site for key, site in self._web.sites.items() if key not in self.keys}

    def _clear(self) -> None:
        self._web.faults.clear()
        self._web.limits.clear()
        limit_wikimedia(self._web, None)
        self._web.new_day()
        for site in self._sites.values():
            site.quirks.clear()

    def _add(self, request: Request) -> None:
        """Add a fault, a quirk or a limit of requests to a site, as the request says."""
        key = _choose("site", request.arg("site"), self._sites)
        site = self._sites[key]
        times = int(request.arg("times", "1"))
        if not 1 <= times <= MAX_TIMES:
            raise UsageError(f"times is {times}; expected 1 to {MAX_TIMES}")
        limit_s = request.arg("limit_s")
        quirk = request.arg("quirk")
        if limit_s:
            self._web.limits[site.keys[0]] = float(limit_s)
        elif request.arg("limits") == "real" and isinstance(site, LimitedSite):
            limit_wikimedia(self._web, Limits())
        elif quirk:
            names = {name: name for name in get_args(QuirkName)}
            site.quirks[names[_choose("quirk", quirk, names)]] = times
        else:
            name = _choose("fault", request.arg("fault"), KNOBS)
            pattern = re.compile(request.arg("pattern")).pattern
            self._web.faults.append(knob(name, key, pattern, times))


def exports(web: Web) -> list[str]:
    """Return shell lines (``export …``) that point tidemark to the simulated sites."""
    urls = {key: url for key, url in sorted(web.urls.items()) if key not in Site.keys}
    lines = [f"export TIDEMARK_SITES__{key.upper()}={url}" for key, url in urls.items()]
    return [*lines, "export TIDEMARK_REQUEST_INTERVAL_S=0"]


def _choose(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    if name not in names:
        raise UsageError(f"{what} is {name!r}; expected one of {', '.join(names)}")
    return name


def _text(status: int, *lines: str) -> Response:
    body = "".join(f"{line}\n" for line in lines)
    return Response(status, {"Content-Type": "text/plain; charset=utf-8"}, body.encode())
