"""Simulated Stack Exchange: version 2.3 of the API of its sites.

The month's stories become questions, distributed over the sites. The first question is asked in the
first second of the month, and the last question in the last second. One more question is edited
after the month. Some answers were written or edited after the month.
"""

from __future__ import annotations

import datetime as dt
import functools
import gzip
import html
import json
import re
import time
from dataclasses import dataclass

from core.json import JsonObject
from core.month import Month
from simulator.server import Request, Response, WorldSite, take_quirk
from simulator.world import Story, World

SITES = {  # site name in the API: host
    "stackoverflow": "stackoverflow.com",
    "math": "math.stackexchange.com",
    "medicalsciences": "medicalsciences.stackexchange.com",
    "movies": "movies.stackexchange.com",
    "superuser": "superuser.com",
    "fitness": "fitness.stackexchange.com",
    "scifi": "scifi.stackexchange.com",
}
KEY = "simulated-key(("  # like this key, real keys end in "(("
QUOTAS = {True: 10_000, False: 300}  # requests per day with an API key (True) or without
MATHS = r"Let $a<b$ and $c>d$; then $$\sum_{i=1}^{n} x_i \le n \max_i x_i.$$"
MAX_PAGE_SIZE = 100
MAX_PAGE = 25  # highest page number without an API key
_FILTERS = {"default", "withbody", "total", "none"}
_LICENCE_4_SINCE = dt.datetime(2018, 5, 2, tzinfo=dt.UTC)
_USERS = ("Ada Example", "boris_sample", "user1234567")
_ANSWERS = re.compile(r"/2\.3/questions/(\d+(?:;\d+)*)/answers")


@dataclass(frozen=True)
class Post:
    """A question, or an answer (with ``question_id``); ``text`` is the visible text."""

    id: int
    site: str
    title: str
    body: str
    text: str
    created_at: dt.datetime
    edited_at: dt.datetime | None = None
    question_id: int | None = None


class Site(WorldSite):
    """The API; see the module docstring."""

    keys: tuple[str, ...] = ("stackexchange",)
    robots: str | None = "User-agent: *\nDisallow: /users\n"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # Requests left today with an API key (True) or without (False); None means unlimited.
        self.quota: dict[bool, int | None] = {True: None, False: None}
        self.backoff_s = 0  # seconds to wait after each response; earlier requests are refused
        self._closed_until: dict[str, float] = {}  # API method: end of wait (s, monotonic clock)

    @functools.cached_property
    def questions(self) -> dict[int, Post]:
        """All questions by id, oldest first."""
        asked = [post for month in self.world.months for post in self._questions(month)]
        return {post.id: post for post in sorted(asked, key=lambda p: (p.created_at, p.id))}

    @functools.cached_property
    def answers(self) -> dict[int, list[Post]]:
        """All answers by question, oldest first."""
        return {number: self._answers(question) for number, question in self.questions.items()}

    def respond(self, request: Request) -> Response:
        """Respond to a request of the API."""
        return self._api(request) if request.path.startswith("/2.3/") else Response(404)

    def _api(self, request: Request) -> Response:
        """Answer a request, with the quota, the pause and the errors of the API."""
        has_key = request.arg("key") == KEY
        if request.arg("key", KEY) != KEY:
            return _error(400, "bad_parameter", "`key` doesn't match a known application")
        method = "answers" if request.path.endswith("/answers") else "questions"
        if take_quirk(self, "error_as_200"):
            return _error(503, "temporarily_unavailable", "try again", status=200)
        left = self.quota[has_key]
        if left is not None and left <= 0:
            return _error(502, "throttle_violation", "too many requests from this IP")
        if self._closed_until.get(method, 0.0) > time.monotonic():
            return _error(502, "throttle_violation", "Violation of backoff parameter")
        if left is not None:
            self.quota[has_key] = left = left - 1
        error = _bad_parameter(request, has_key)
        if error:
            return error
        found = self._find(request)
        if found is None:
            return _error(404, "no_method", "this method cannot be called")
        if request.arg("filter") == "total":
            return _json({"total": len(found)})
        quota_max = QUOTAS[has_key]
        wrapper: JsonObject = {"quota_max": quota_max}
        wrapper["quota_remaining"] = quota_max if left is None else left
        if self.backoff_s:
            wrapper["backoff"] = self.backoff_s
            self._closed_until[method] = time.monotonic() + self.backoff_s
        return _json({**self._cut(found, request), **wrapper})

    def _find(self, request: Request) -> list[Post] | None:
        """Return the questions or answers asked for, sorted; None for an unknown path."""
        site = request.arg("site")
        match = _ANSWERS.fullmatch(request.path)
        if match:
            wanted = {int(number) for number in match[1].split(";")}
            found = []
            for number in wanted:
                question = self.questions.get(number)
                if question is not None and question.site == site:
                    found += self.answers[number]
        elif request.path == "/2.3/questions":
            first = int(request.arg("fromdate", "0"))
            last = int(request.arg("todate", "9999999999"))
            found = [
                post
                for post in self.questions.values()
                if post.site == site and first <= post.created_at.timestamp() <= last
            ]
        else:
            return None
        is_descending = request.arg("order", "desc") == "desc"
        return sorted(found, key=lambda post: (post.created_at, post.id), reverse=is_descending)

    def _cut(self, found: list[Post], request: Request) -> JsonObject:
        """Return one page of posts; quirks shift it, empty it, or change its fields."""
        size = int(request.arg("pagesize", "30"))
        page = int(request.arg("page", "1"))
        start = (page - 1) * size
        has_more = page * size < len(found)
        if has_more and take_quirk(self, "empty_page"):
            return {"items": [], "has_more": True}
        if page > 1 and take_quirk(self, "moving_items"):
            start -= 1
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        with_body = request.arg("filter") == "withbody"
        items = [self._row(post, with_body, is_bare) for post in found[start : page * size]]
        if is_odd:
            odd = {"collectives": [{"slug": "<b>x</b>"}], "undocumented": None}
            items = [{**item, **odd} for item in items]
        return {"items": items, "has_more": has_more}

    def _row(self, post: Post, with_body: bool, is_bare: bool) -> JsonObject:
        """Return a post in JSON; ``is_bare`` leaves out optional fields."""
        question_id = post.question_id or post.id
        row: JsonObject = {
            "creation_date": int(post.created_at.timestamp()),
            "last_activity_date": int((post.edited_at or post.created_at).timestamp()),
            "question_id": question_id,
        }
        if with_body:
            row["body"] = post.body
        if post.edited_at:
            row["last_edit_date"] = int(post.edited_at.timestamp())
        if post.question_id:
            row |= {"answer_id": post.id, "is_accepted": False}
        else:
            row["title"] = html.escape(post.title)
        if is_bare:
            return row
        user = post.id % 1000
        version = "4.0" if post.created_at >= _LICENCE_4_SINCE else "3.0"
        row |= {"score": post.id % 7, "content_license": f"CC BY-SA {version}", "owner": {
            "user_id": user, "user_type": "registered", "display_name": _USERS[post.id % 3],
            "link": f"https://{SITES[post.site]}/users/{user}",
        }}  # fmt: skip
        if not post.question_id:
            answers = len(self.answers[post.id])
            row |= {"tags": ["example", f"topic-{post.id % 5}"], "answer_count": answers}
            row["link"] = f"https://{SITES[post.site]}/questions/{post.id}/simulated"
        return row

    def _questions(self, month: Month) -> list[Post]:
        """Return a month's questions, one of the last second, two edited later."""
        count = len(self.world.stories(month, "stackexchange"))
        step = (month.end - month.start) // (count + 1)
        asked = []
        for number in range(count + 1):
            created_at = month.start + number * step
            if number == count - 1:
                created_at = month.end - dt.timedelta(seconds=1)
            edited_at = {
                1: min(created_at + dt.timedelta(hours=2), month.end - dt.timedelta(seconds=1)),
                count: month.end + dt.timedelta(days=3),
            }.get(number)
            site = list(SITES)[number % len(SITES)]
            story = self.world.story(month, "stackexchange", number)
            body, text = self._compose(story, site, number)
            identity = int(f"{month.start:%y%m}{number:04d}0")
            when = created_at.replace(microsecond=0)
            asked.append(Post(identity, site, story.title, body, text, when, edited_at))
        return asked

    def _answers(self, question: Post) -> list[Post]:
        """Return up to three answers to a question, some posted or edited after the month."""
        month = Month.of(question.created_at)
        number = question.id // 10 % 10_000
        room = month.end - question.created_at
        posts = []
        for index in range(number % 4):
            story = self.world.story(month, f"stackexchange/{question.id}", index)
            body, text = self._compose(story, question.site, number + index)
            created_at = question.created_at + room * (index + 1) / 4
            edited_at = None
            if index == 2 and number % 8 == 3:
                created_at = month.end
            elif index == 2:
                edited_at = month.end
            when = created_at.replace(microsecond=0)
            identity = question.id + index + 1
            posts.append(
                Post(identity, question.site, "", body, text, when, edited_at, question.id)
            )
        return posts

    def _compose(self, story: Story, site: str, number: int) -> tuple[str, str]:
        """Return a post's HTML, and the text that should be read from it."""
        first, *others = story.paragraphs
        body = [f"<p>{html.escape(first, quote=False)}</p>\n"]
        text = [first]
        if site == "math":
            body.append(f"<p>{html.escape(MATHS, quote=False)}</p>\n")
            text.append(MATHS)
        if site in {"stackoverflow", "superuser"}:
            code = self.world.module(story.month, story.key, number).strip()
            code = "\n".join(line for line in code.splitlines() if "<" not in line)
            escaped = html.escape(code, quote=False)
            body.append(
                f'<pre class="lang-py prettyprint-override"><code>{escaped}\n</code></pre>\n'
            )
            text.append(code)
        for paragraph in others:
            opening, _, rest = html.escape(paragraph, quote=False).partition(" ")
            body.append(f'<p><em>{opening}</em> <a href="https://example.org">{rest}</a></p>\n')
            text.append(paragraph)
        return "\n".join(body), "\n\n".join(text)


def _bad_parameter(request: Request, has_key: bool) -> Response | None:
    """Return the error response to wrong parameters; None if they are right."""
    if request.arg("site") not in SITES:
        return _error(400, "bad_parameter", f"No site found for name `{request.arg('site')}`")
    if request.arg("filter", "default") not in _FILTERS:
        return _error(400, "bad_parameter", "Invalid filter specified")
    numbers = [request.arg(name, "1") for name in ("page", "pagesize", "fromdate", "todate")]
    if not all(re.fullmatch("[0-9]{1,12}", number) for number in numbers):
        return _error(400, "bad_parameter", "expected a number")
    if int(numbers[0]) < 1 or int(numbers[1]) > MAX_PAGE_SIZE:
        return _error(400, "bad_parameter", "pagesize")
    if int(numbers[0]) > MAX_PAGE and not has_key:
        return _error(403, "access_denied", "page above 25 requires access token or app key")
    return None


def _error(number: int, name: str, message: str, status: int | None = None) -> Response:
    if status is None:
        status = number if number in {403, 404} else 400
    body = {"error_id": number, "error_message": message, "error_name": name}
    return _json(body, status)


def _json(content: JsonObject, status: int = 200) -> Response:
    """Return compressed JSON; the API compresses every response, even without Accept-Encoding."""
    headers = {"Content-Type": "application/json; charset=utf-8", "Content-Encoding": "gzip"}
    return Response(status, headers, gzip.compress(json.dumps(content).encode(), mtime=0))
