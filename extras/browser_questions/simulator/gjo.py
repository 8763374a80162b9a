"""Simulated Good Judgment Open: a public list, and one that JavaScript fills for logged-in users.

The public list of resolved questions (``/questions?status=resolved``) redirects to the login after
``public_pages`` pages. The login form requires a form token and a session cookie. A script fills
the members' empty list page from ``/leaderboards/questions.json``. The pages for members have
elements that crawlers must not use: a pop-up, an automatic download, a tracker on another host, and
scripts that send data. The pages under ``/traps/`` have scripts that never end, send requests
forever, or fill the memory.
"""

from __future__ import annotations

import functools
import html
import json
from collections import Counter
from urllib.parse import parse_qs

from simulator.forecasts import SimulatedQuestion, questions
from simulator.server import Request, Response, WorldSite, take_quirk
from simulator.world import World

USER = "forecaster@example.org"
PASSWORD = "correct-horse-9"  # noqa: S105 - of the simulated site
SESSION = "session-4f1d8e21"
CSRF = "csrf-93ab07c2"
ON_A_PAGE = 8
# This loopback address is not the site's, so crawlers see the tracker as another host.
TRACKER = "http://127.0.0.3:9/t.js"
_SESSION_COOKIE = "_gjo_session"
_LIST = """
const page = new URL(location).searchParams.get("page") || "1";
const token = document.querySelector("meta[name=csrf-token]").content;
fetch("/leaderboards/questions.json?page=" + page, {headers: {"X-CSRF-Token": token}})
  .then(answer => answer.json())
  .then(list => {
    const box = document.querySelector("#questions");
    for (const each of list.rows) {
      const row = document.createElement("div");
      row.className = "row row-table-row";
      row.innerHTML = '<div class="col-md-8"></div>';
      const link = document.createElement("a");
      link.href = each.href;
      link.textContent = each.name;
      row.firstChild.append(link);
      box.append(row);
    }
    if (list.next) {
      const next = document.createElement("a");
      next.rel = "next";
      next.href = list.next;
      document.querySelector(".pagination").append(next);
    }
    box.dataset.loaded = list.rows.length;
  });
"""
_NUISANCES = f"""
<img src="/pixel.png"><script src="{TRACKER}" async></script>
<iframe src="/frame"></iframe><a id="export" href="/export.csv" download>Export</a>
<script>
  window.open("/popup");
  document.querySelector("#export").click();
  navigator.sendBeacon("/beacon", "seen");
  fetch("/seen", {{method: "POST", body: "1"}}).catch(() => 0);
  try {{ navigator.serviceWorker.register("/worker.js").catch(() => 0); }} catch (error) {{}}
</script>
"""
_TRAPS = {
    "/traps/endless": "for (;;) {}",
    "/traps/asking": "setInterval(() => fetch('/ask?' + Math.random()), 10)",
    "/traps/memory": "const kept = []; setInterval(() => { for (let i = 0; i < 4; i++) "
    "kept.push(new Uint8Array(16 * 2 ** 20).fill(1)); }, 20)",
}


class Site(WorldSite):
    """The simulated Good Judgment Open; see the module docstring."""

    keys: tuple[str, ...] = ("good_judgment_open",)
    robots: str | None = "User-agent: *\nDisallow: /questions/secret\n"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.users = {USER: PASSWORD}  # accounts
        self.on_a_page = ON_A_PAGE
        self.public_pages = 1_000
        self.seen: Counter[str] = Counter()  # number of unwanted requests, by path

    @classmethod
    def without_browser(cls, world: World) -> Site:
        """Return the site as a browser shows it, for crawls without a browser."""
        return RenderedPages(world)

    @functools.cached_property
    def questions(self) -> list[SimulatedQuestion]:
        """The resolved questions, sorted by closing time, the latest first."""
        asked = [each for each in questions(self.world, "gjo") if each.resolved is not None]
        return sorted(asked, key=lambda each: (each.closed, each.id), reverse=True)

    def respond(self, request: Request) -> Response:
        """Respond to a request for a page, the login or the list."""
        path = request.path
        is_in = f"{_SESSION_COOKIE}={SESSION}" in request.headers.get("cookie", "")
        if path == "/users/sign_in":
            return self._sign_in(request)
        if path == "/leaderboards/questions":
            return _page(_LIST_PAGE) if is_in else Response(302, {"Location": "/users/sign_in"})
        if path == "/leaderboards/questions.json":
            is_asked_right = is_in and request.headers.get("x-csrf-token") == CSRF
            return self._list(request) if is_asked_right else Response(401)
        if path == "/assets/list.js":
            return Response(200, {"Content-Type": "text/javascript"}, _LIST.encode())
        if path == "/questions" and request.arg("status") == "resolved":
            return self._public_list(request)
        if path.startswith(("/leaderboards/questions/", "/questions/")):
            return self._question(path)
        if path in _TRAPS:
            return _page(f"<p>A trap</p><script>{_TRAPS[path]}</script>")
        self.seen[path] += 1
        return _page('<a href="/users/sign_out">Sign Out</a>' if is_in else "<p>Welcome</p>")

    def _sign_in(self, request: Request) -> Response:
        """Answer the log-in form and what is sent with it; check cookie, token and password."""
        if request.method != "POST":
            return _page(_FORM, cookies=f"{_SESSION_COOKIE}=anonymous; Path=/; HttpOnly")
        form = {name: values[-1] for name, values in parse_qs(request.body.decode()).items()}
        cookie = request.headers.get("cookie", "")
        if form.get("authenticity_token") != CSRF or f"{_SESSION_COOKIE}=" not in cookie:
            return _page("<p>The change you wanted was rejected.</p>", 422)
        if self.users.get(form.get("user[email]", "")) != form.get("user[password]"):
            return _page('<div class="alert alert-danger">Invalid login</div>' + _FORM, 422)
        given = f"{_SESSION_COOKIE}={SESSION}; Path=/; HttpOnly"
        return Response(302, {"Location": "/", "Set-Cookie": given})

    def _list(self, request: Request) -> Response:
        """Return a page of the members' list in JSON, from which scripts make the HTML."""
        number = max(1, int(request.arg("page", "1") or 1))
        begin = (number - 1) * self.on_a_page
        end = begin + self.on_a_page
        shown = self.questions[begin:end]
        if begin and take_quirk(self, "moving_items"):
            shown = [self.questions[begin - 1], *shown]
        if take_quirk(self, "empty_page"):
            return Response(200, {"Content-Type": "application/json"}, b'{"rows": []}')
        rows = [{"href": _path_of(each), "name": each.title} for each in shown]
        if number == 1:
            rows.append({"href": "/leaderboards/questions?page=1", "name": "page:1"})  # junk row
        more = f"/leaderboards/questions?page={number + 1}" if end < len(self.questions) else None
        body = json.dumps({"rows": rows, "next": more}).encode()
        return Response(200, {"Content-Type": "application/json"}, body)

    def _public_list(self, request: Request) -> Response:
        """Return a page of the list for all; later pages need a log-in."""
        number = max(1, int(request.arg("page", "1") or 1))
        if number > self.public_pages:
            return Response(302, {"Location": "/users/sign_in"})
        begin = (number - 1) * self.on_a_page
        shown = self.questions[begin : begin + self.on_a_page]
        if take_quirk(self, "empty_page"):
            shown = []
        is_last = begin + self.on_a_page >= len(self.questions)
        more = "" if is_last else f'<a rel="next" href="/questions?page={number + 1}">Next</a>'
        return _page("".join(map(_public_row, shown)) + more)

    def _question(self, path: str) -> Response:
        for each in self.questions:
            if _path_of(each) == f"/leaderboards{path.removeprefix('/leaderboards')}":
                return _page(_question_page(each, take_quirk(self, "missing_fields")))
        return Response(404)


def _path_of(question: SimulatedQuestion) -> str:
    return f"/leaderboards/questions/{question.id}-who-will-be-chosen"


def _public_row(question: SimulatedQuestion) -> str:
    """Return a question's HTML in the list for all."""
    path = _path_of(question).removeprefix("/leaderboards")
    return f"""
<div id="row-table-question-{question.id}" class="question-row-component">
  <h5><a href="https://www.gjopen.com{path}"><span>{html.escape(question.title)}</span></a></h5>
  <span class="info-heading">Closed</span>
  <span data-localizable-timestamp="{question.resolved:%Y-%m-%dT%H:%M:%SZ}">lately</span>
  <a data-sort="predictors_count" href="#"> 19 Forecasters</a></div>
"""


def _page(body: str, status: int = 200, cookies: str | None = None) -> Response:
    """Return a page with this body."""
    text = (
        f'<!doctype html><html><head><meta charset="utf-8"><meta name="csrf-token" '
        f'content="{CSRF}"><title>Good Judgment Open</title></head><body>{body}</body></html>'
    )
    headers = {"Content-Type": "text/html; charset=utf-8"}
    if cookies is not None:
        headers["Set-Cookie"] = cookies
    return Response(status, headers, text.encode())


_FORM = f"""
<form id="new_user" action="/users/sign_in" method="post">
  <input type="hidden" name="authenticity_token" value="{CSRF}">
  <input id="user_email" name="user[email]" type="email">
  <input id="user_password" name="user[password]" type="password">
  <input type="submit" name="commit" value="Sign In">
</form>
"""
_LIST_PAGE = f"""
<a href="/users/sign_out">Sign Out</a><div id="questions"></div><div class="pagination"></div>
<script src="/assets/list.js"></script>{_NUISANCES}
"""


def _question_page(question: SimulatedQuestion, lacks_description: bool) -> str:
    """Return the HTML of a closed question, as the site shows it to members."""
    paragraphs = "".join(f"<p>{html.escape(p)}</p>\n" for p in question.background.split("\n\n"))
    description = (
        "" if lacks_description
        else f'<div class="smb">\n{paragraphs}<p>{html.escape(question.criteria)}</p></div>'
    )  # fmt: skip
    tags = ", ".join(
        f'<a href="/tags/{n}">{html.escape(tag)}</a>' for n, tag in enumerate(question.tags, 1)
    )
    check = '<i class="fa fa-check-circle"></i>'
    rows = "".join(
        f"<tr><td>{html.escape(option)}</td>"
        f"<td>{check if index == question.answer_index else ''}</td>"
        f"<td>{round(100 * share)}%</td></tr>"
        for index, (option, share) in enumerate(zip(question.options, question.crowd, strict=True))
    )
    void = '<div class="alert">This question has been voided.</div>' if question.is_void else ""
    return f"""
<h3 id="question-name-header">{html.escape(question.title)}</h3>{void}
<div><span class="info-heading">Started</span>
  <span data-localizable-timestamp="{question.opened:%Y-%m-%dT%H:%M:%SZ}">some time ago</span>
  <span class="info-heading">Closed</span>
  <span data-localizable-timestamp="{question.resolved:%Y-%m-%dT%H:%M:%SZ}">lately</span></div>
<div class="smb"><span class="info-heading">Challenges</span>
  <a href="/challenges/1">World</a></div>
<div class="smb"><span class="info-heading">Tags</span> {tags}</div>
{description}
<table><thead><tr><th>Possible Answer</th><th>Correct?</th>
  <th>Final Crowd Forecast</th></tr></thead>
<tbody>{rows}</tbody></table>
"""


class RenderedPages(Site):
    """Good Judgment Open as a browser shows it: the list's rows are in the page."""

    def respond(self, request: Request) -> Response:
        """Respond with the list as its script would have filled it."""
        if request.path != "/leaderboards/questions":
            return super().respond(request)
        listed = json.loads(self._list(request).body)
        rows = [
            f'<div class="row row-table-row"><div><a href="{row["href"]}">{row["name"]}</a></div>'
            "</div>"
            for row in listed["rows"]
        ]
        more = f'<a rel="next" href="{listed["next"]}">next</a>' if listed["next"] else ""
        page = f"<!doctype html><html><body>{''.join(rows)}{more}</body></html>"
        return Response(200, {"Content-Type": "text/html"}, page.encode())
