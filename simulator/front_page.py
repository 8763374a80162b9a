"""The page from which a person visits the simulated sites and breaks them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import get_args
from urllib.parse import parse_qs

from simulator.faults import KNOBS, Fault, knob
from simulator.server import QuirkName, Request, Response, Web
from simulator.server import Site as SimulatedSite

RECENT = 20  # requests shown
MAX_TIMES = 10**6
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top }
td:last-child { overflow-wrap: anywhere }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto }
form { margin: 0 0 1rem }
input, select, button { font: inherit; margin-right: .5rem }
"""


class Site:
    """The front page: a site of its own: ``/`` names the others, ``/faults`` breaks them."""

    keys: tuple[str, ...] = ("simulator",)
    robots: str | None = None

    def __init__(self, web: Web, title: str) -> None:
        self.quirks: dict[QuirkName, int] = {}
        self._web, self._title = web, title

    def respond(self, request: Request) -> Response:
        """Answer a browser."""
        if request.path == "/":
            return _page(self._title, self._index())
        if request.path != "/faults":
            return _page("Not found", '<p><a href="/">All sites</a></p>', 404)
        if request.method != "POST":
            return _page("Faults", self._faults())
        try:
            self._change(parse_qs(request.body.decode()))
        except (KeyError, ValueError, re.error) as error:
            text = f"<p>{_safe(error)}</p><p><a href='/faults'>Back</a></p>"
            return _page("That cannot be meant", text, 400)
        return Response(303, {"Location": "/faults"})

    @property
    def _sites(self) -> dict[str, SimulatedSite]:
        """The other sites by their first key."""
        sites = {site.keys[0]: site for site in self._web.sites.values()}
        return {key: site for key, site in sorted(sites.items()) if key not in self.keys}

    def _index(self) -> str:
        rows = []
        for key, site in self._sites.items():
            traffic, url = self._web.traffic[key], self._web.urls[key]
            start = url + start_of(site)
            link = f'<a href="{_safe(start)}">{_safe(start)}</a>'
            rows.append((_safe(", ".join(site.keys)), link, str(len(traffic.arrivals))))
        lines = "\n".join(exports(self._web))
        recent = [
            (_safe(key), _safe(method), self._link(key, path) if method == "GET" else _safe(path))
            for key, method, path in self._web.requests[: -RECENT - 1 : -1]
            if key in self._sites
        ]
        return (
            "<p>Every site here is made up, and speaks the protocol of the true one. "
            '<a href="/faults">Break them</a>.</p>'
            + _table(("site", "begin with", "requests"), rows)
            + "<p>To point tidemark at them, in the shell that runs it:</p>"
            + f"<pre>{_safe(lines)}</pre>"
            + "<h2>Last requests</h2>"
            + _table(("site", "method", "path"), recent)
        )

    def _link(self, key: str, path: str) -> str:
        return f'<a href="{_safe(self._web.urls[key] + path)}">{_safe(path)}</a>'

    def _faults(self) -> str:
        keys, active = list(self._sites), [fault for fault in self._web.faults if fault.times > 0]
        rows = [
            (_safe(f"{f.key}"), _safe(_name(f)), _safe(f.pattern or "all"), str(f.times))
            for f in active
        ]
        quirks = [
            (_safe(key), _safe(name), str(left))
            for key, site in self._sites.items()
            for name, left in site.quirks.items()
            if left > 0
        ]
        limits = [(_safe(key), f"{limit:g} s") for key, limit in self._web.limits.items()]
        times = '<input name="times" type="number" value="1" min="1" max="1000000">times'
        return (
            '<p><a href="/">All sites</a></p><h2>Faults of any server</h2>'
            + _form("fault", _choice("site", keys), _choice("name", KNOBS),
                    '<input name="pattern" placeholder="path, as a regular expression">', times)
            + _table(("site", "fault", "path", "times left"), rows)
            + "<h2>Quirks of a site, where it has them</h2>"
            + _form("quirk", _choice("site", keys), _choice("name", get_args(QuirkName)), times)
            + _table(("site", "quirk", "times left"), quirks)
            + "<h2>Limits: 429 to a request that comes too soon</h2>"
            + _form("limit", _choice("site", keys),
                    '<input name="seconds" type="number" placeholder="as the true site" min="0" '
                    'step="any">seconds')
            + _table(("site", "between two requests"), limits)
            + _form("clear", label="Mend everything")
        )  # fmt: skip

    def _change(self, form: dict[str, list[str]]) -> None:
        """Do what a form says.

        Raises:
            KeyError, ValueError, re.error: it says something else than the page offers.
        """
        does = form["do"][-1]
        if does == "clear":
            self._web.faults.clear()
            self._web.limits.clear()
            self._web.new_day()
            for site in self._sites.values():
                site.quirks.clear()
            return
        key = form["site"][-1]
        site = self._sites[key]
        if does == "limit":
            declared = [str(getattr(site, "min_interval_s", 0.0))]
            self._web.limits[key] = float(form.get("seconds", declared)[-1])
            return
        name, times = form["name"][-1], int(form["times"][-1])
        if not 1 <= times <= MAX_TIMES:
            raise ValueError(f"{times} times; expected 1 to {MAX_TIMES}")
        if does == "quirk":
            [quirk] = [each for each in get_args(QuirkName) if each == name]
            site.quirks[quirk] = times
        else:
            pattern = re.compile(form.get("pattern", [""])[-1]).pattern
            self._web.faults.append(knob(name, key, pattern, times))


def start_of(site: SimulatedSite) -> str:
    """Return the path of the page that a person begins with."""
    if start := getattr(site, "start", None):
        return str(start)
    is_there = site.respond(Request("GET", "/", {}, {}, b"")).status in (200, 301, 302)
    return "/" if is_there else "/robots.txt"


def exports(web: Web) -> list[str]:
    """Return the lines of a shell that point tidemark at the simulated sites."""
    urls = {key: url for key, url in sorted(web.urls.items()) if key not in Site.keys}
    lines = [f"export TIDEMARK_SITES__{key.upper()}={url}" for key, url in urls.items()]
    return [*lines, "export TIDEMARK_REQUEST_INTERVAL_S=0"]


def _name(fault: Fault) -> str:
    return (
        f"{fault.kind} {fault.status}" if fault.kind == "status" else fault.kind.replace("_", " ")
    )


def _safe(text: object) -> str:
    return html.escape(str(text))


def _page(title: str, body: str, status: int = 200) -> Response:
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{_safe(title)}</title>'
        f"<style>{_STYLE}</style><h1>{_safe(title)}</h1>{body}</html>"
    )
    return Response(status, headers, page.encode())


def _table(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table; its cells are HTML."""
    head = "".join(f"<th>{name}</th>" for name in columns)
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _choice(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{_safe(value)}</option>" for value in values)
    return f'<select name="{name}">{options}</select>'


def _form(does: str, *fields: str, label: str = "Switch on") -> str:
    hidden = f'<input type="hidden" name="do" value="{does}">'
    button = f"<button>{label}</button>"
    return f'<form method="post" action="/faults">{hidden}{"".join(fields)}{button}</form>'
