"""Simulated Metaculus: the API's list of posts, for clients with the token.

Pages are those of the server's own source (LimitOffsetPagination without a count): the link to the
next page is never null, and pages after the last post are empty. Most posts have one question. Each
month, two questions form one post (a group). One question of the last month is in a group with an
open question. The answer of some questions was known a day or more before the site published it.
Text and answer of the questions in ``withheld`` are null.
"""

from __future__ import annotations

import datetime as dt
import functools

from core.json import JsonObject
from simulator.forecasts import NUM_QUESTIONS, SimulatedQuestion, questions
from simulator.server import Request, Response, WorldSite, as_json, take_quirk

TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105
MAX_LIMIT = 100
GROUPED = (6, 10)  # numbers, within each month, of the questions that form a group
HALF_OPEN = (9, NUM_QUESTIONS)  # group in the last month: two question numbers, the second open
LATE = 5  # number of a question whose answer was known before the last forecast
DEFAULT_LIMIT = 20
_TEXTS = {"description", "resolution_criteria", "fine_print"}
_HOUR = dt.timedelta(hours=1)


class Site(WorldSite):
    """The API; see the module docstring."""

    keys: tuple[str, ...] = ("metaculus",)
    robots: str | None = "User-agent: *\nDisallow: /api/\n"
    token = TOKEN
    max_limit = MAX_LIMIT
    withheld: frozenset[int] = frozenset()  # ids of questions that the token's owner may not see

    @functools.cached_property
    def posts(self) -> list[JsonObject]:
        """All posts, sorted by publication time."""
        by_id = {question.id: question for question in questions(self.world, "metaculus")}
        groups = [[f"{m.start:%y%m}{n:03d}" for n in GROUPED] for m in self.world.months]
        groups.append([f"{self.world.last.start:%y%m}{n:03d}" for n in HALF_OPEN])
        grouped = {name for names in groups for name in names}
        posts = [_post(question) for name, question in by_id.items() if name not in grouped]
        posts += [_group([by_id[name] for name in names]) for names in groups]
        posts += _without_options(posts[0])
        return sorted(posts, key=lambda post: (post["published_at"], post["id"]))

    def respond(self, request: Request) -> Response:
        """Respond with the list of posts."""
        if request.path == "/api/posts/":
            if request.headers.get("authorization") != f"Token {TOKEN}":
                return as_json({"detail": "Authentication credentials were not provided."}, 401)
            return self._list(request)
        return as_json({"detail": "Not found."}, 404)

    def _list(self, request: Request) -> Response:
        """Answer a list of posts; quirks shift, empty or change the page."""
        limit = min(_whole(request.arg("limit")) or DEFAULT_LIMIT, self.max_limit)
        offset = _whole(request.arg("offset"))
        if take_quirk(self, "error_as_200"):
            return as_json({"error_code": "server_error", "detail": "Internal error"})
        found = self._find(request)
        start = offset - self.count_moved(is_first=offset == 0)
        page = found[start : start + limit]
        if take_quirk(self, "empty_page"):
            page = []
        is_bare = take_quirk(self, "missing_fields")
        is_odd = take_quirk(self, "extra_fields")
        has_texts = request.arg("include_descriptions") == "true"
        link = f"https://www.metaculus.com/api/posts/?limit={limit}&offset="
        rows = [self._row(post, has_texts, is_bare, is_odd) for post in page]
        previous = f"{link}{max(offset - limit, 0)}" if offset else None
        return as_json({"next": f"{link}{offset + limit}", "previous": previous, "results": rows})

    def _find(self, request: Request) -> list[JsonObject]:
        """Return the posts of the asked statuses and types, in the asked order."""
        statuses = request.query.get("statuses", [])
        types = request.query.get("forecast_type", [])
        found = [
            post
            for post in self.posts
            if (not statuses or post["status"] in statuses) and (not types or _type(post) in types)
        ]
        return found if request.arg("order_by") == "published_at" else found[::-1]

    def _row(self, post: JsonObject, has_texts: bool, is_bare: bool, is_odd: bool) -> JsonObject:
        """Return a post, with texts if asked; quirks take or add fields."""
        row = dict(post)
        if "question" in post:
            row["question"] = self._cut(post["question"], has_texts, is_bare)
        if "group_of_questions" in post:
            group = self._cut(post["group_of_questions"], has_texts, is_bare)
            group["questions"] = [
                self._cut(each, has_texts, is_bare) for each in group["questions"]
            ]
            row["group_of_questions"] = group
        if is_bare:
            row = {key: value for key, value in row.items() if key not in {"projects", "slug"}}
        return row | ({"undocumented": [{"<b>": 1}]} if is_odd else {})

    def _cut(self, fields: JsonObject, has_texts: bool, is_bare: bool) -> JsonObject:
        """Return the fields of a question, without texts and withheld values."""
        gone = set() if has_texts else _TEXTS
        gone = gone | ({"aggregations", "fine_print", "created_at"} if is_bare else set())
        hidden = {*_TEXTS, "resolution"} if fields["id"] in self.withheld else set()
        return {
            key: None if key in hidden else value
            for key, value in fields.items()
            if key not in gone
        }


def _whole(value: str) -> int:
    return int(value) if value.isdecimal() else 0


def _type(post: JsonObject) -> str:
    if "group_of_questions" in post:
        return "group_of_questions"
    return str(post["question"]["type"]) if "question" in post else "notebook"


def _post(question: SimulatedQuestion) -> JsonObject:
    return _frame([question]) | {"title": question.title, "question": _question(question)}


def _group(asked: list[SimulatedQuestion]) -> JsonObject:
    """Return a post with a group of questions, which share its texts."""
    first = asked[0]
    rows = [
        {**_question(each), "title": title, "label": label, "description": "",
         "resolution_criteria": "", "fine_print": ""}
        for each, label, title in zip(asked, ("North", "South"), ("North", ""), strict=True)
    ]  # fmt: skip
    group = {
        "id": int(first.id) + 2_000_000, "questions": rows, "description": first.background,
        "resolution_criteria": first.criteria, "fine_print": "",
    }  # fmt: skip
    return _frame(asked) | {"title": f"{first.title} By region", "group_of_questions": group}


def _frame(asked: list[SimulatedQuestion]) -> JsonObject:
    """Return the fields that posts of one and of several questions have."""
    first = asked[0]
    is_resolved = all(each.resolved for each in asked)
    opened = min(each.opened for each in asked)
    category, tag = first.tags
    return {
        "id": int(first.id) + 1_000_000, "slug": "a-question", "created_at": _utc(opened - _HOUR),
        "published_at": _utc(opened), "open_time": _utc(opened),
        "status": "resolved" if is_resolved else "open", "resolved": is_resolved,
        "nr_forecasters": 40, "author_username": "asker",
        "projects": {"category": [{"id": 1, "name": category, "slug": "one"}],
                     "tag": [{"id": 2, "name": tag}]},
    }  # fmt: skip


def _question(question: SimulatedQuestion) -> JsonObject:
    """Return a question of a post in JSON."""
    is_resolved = question.resolved is not None
    known_at = question.closed
    if int(question.id) % 1000 == LATE:
        known_at -= dt.timedelta(days=1)
    return {
        "id": int(question.id), "title": question.title, "label": None,
        "type": "binary" if question.is_binary else "multiple_choice",
        "options": None if question.is_binary else list(question.options),
        "created_at": _utc(question.opened - _HOUR), "open_time": _utc(question.opened),
        "scheduled_close_time": _utc(question.closed),
        "actual_close_time": _utc(question.closed) if is_resolved else None,
        "actual_resolve_time": _utc(known_at) if is_resolved else None,
        "resolution_set_time": _utc(question.resolved) if question.resolved else None,
        "status": "resolved" if is_resolved else "open", "resolution": _resolution(question),
        "description": question.background, "resolution_criteria": question.criteria,
        "fine_print": "Only public sources count.", "post_id": int(question.id) + 1_000_000,
        "aggregations": {"recency_weighted": {"history": [], "latest": _latest(question)}},
    }  # fmt: skip


def _latest(question: SimulatedQuestion) -> JsonObject:
    """Return the crowd's last forecast in JSON."""
    centers = question.crowd[:1] if question.is_binary else question.crowd
    return {
        "start_time": (question.closed - _HOUR).timestamp(), "end_time": None,
        "forecaster_count": 40, "centers": list(centers), "means": None,
    }  # fmt: skip


def _resolution(question: SimulatedQuestion) -> str | None:
    """Return a question's resolution as the site spells it; None if it is open."""
    if question.is_void:
        return "annulled" if question.is_binary else "ambiguous"
    if question.answer_index is None:
        return None
    answer = question.options[question.answer_index]
    return answer.lower() if question.is_binary else answer


def _without_options(post: JsonObject) -> list[JsonObject]:
    number = {**post["question"], "id": 1, "type": "numeric", "resolution": "12.5"}
    notebook = {key: value for key, value in post.items() if key != "question"}
    return [{**post, "id": 1, "question": number}, {**notebook, "id": 2}]


def _utc(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
