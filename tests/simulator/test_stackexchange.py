"""The simulated Stack Exchange speaks the API 2.3."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.stackexchange import KEY, Site
from simulator.world import World

JANUARY, MARCH = 1672531200, 1677628800


@pytest.fixture
def site() -> Site:
    return Site(World(0, Month("2023-01"), Month("2023-03"), stories_per_month=14))


def get(site: Site, path: str, /, **query: str) -> Response:
    return site.respond(Request("GET", path, {k: [v] for k, v in query.items()}, {}, b""))


def ask(site: Site, path: str = "/2.3/questions", /, **query: str) -> dict[str, Any]:
    answer = get(site, path, **{"site": "math", "filter": "withbody", **query})
    assert answer.headers["Content-Encoding"] == "gzip"
    wrapper: dict[str, Any] = json.loads(gzip.decompress(answer.body))
    return wrapper


def test_a_question_has_the_fields_that_the_documentation_names(site: Site) -> None:
    wrapper = ask(site, pagesize="1", order="asc", sort="creation")
    assert wrapper.keys() == {"items", "has_more", "quota_max", "quota_remaining"}
    [question] = wrapper["items"]
    assert question.keys() >= {
        "question_id", "title", "body", "tags", "creation_date", "score", "answer_count",
        "content_license", "owner", "link",
    }  # fmt: skip
    assert "body" not in ask(site, filter="default")["items"][0]


def test_windows_include_both_ends(site: Site) -> None:
    posts = [post for post in site.questions.values() if post.site == "stackoverflow"]
    first, last = (int(post.created_at.timestamp()) for post in (posts[0], posts[-1]))
    found = ask(site, site="stackoverflow", fromdate=str(first), todate=str(last))["items"]
    assert len(found) == len(posts)
    total = ask(site, site="stackoverflow", fromdate=str(first), todate=str(last), filter="total")
    assert total == {"total": len(posts)}


def test_pages_follow_each_other(site: Site) -> None:
    pages = [ask(site, pagesize="2", page=str(number), order="asc") for number in (1, 2, 3, 4)]
    ids = [item["question_id"] for page in pages for item in page["items"]]
    assert ids == sorted(set(ids))
    assert [page["has_more"] for page in pages] == [True, True, False, False]


def test_answers_are_those_of_the_questions_asked_for(site: Site) -> None:
    questions = [post for post in site.questions.values() if post.site == "math"]
    path = f"/2.3/questions/{';'.join(str(post.id) for post in questions)}/answers"
    answers = ask(site, path)["items"]
    assert {answer["question_id"] for answer in answers} <= {post.id for post in questions}
    assert len(answers) == sum(len(site.answers[post.id]) for post in questions)
    assert ask(site, path, site="movies")["items"] == []


def test_the_quota_is_counted_down_and_then_refuses(site: Site) -> None:
    site.quota[False] = 2
    assert [ask(site)["quota_remaining"] for _ in range(2)] == [1, 0]
    assert ask(site)["error_name"] == "throttle_violation"
    assert ask(site, key=KEY)["quota_max"] == 10_000


def test_who_does_not_back_off_is_locked_out(site: Site) -> None:
    site.backoff_s = 1
    assert ask(site)["backoff"] == 1
    assert ask(site)["error_id"] == 502
    time.sleep(1)
    assert "items" in ask(site)


@pytest.mark.parametrize(
    ("query", "status", "number"),
    [
        ({"site": "quora"}, 400, 400), ({"pagesize": "101"}, 400, 400), ({"page": "0"}, 400, 400),
        ({"page": "26"}, 403, 403), ({"filter": "nope"}, 400, 400), ({"key": "wrong"}, 400, 400),
        ({"fromdate": "2023-01-01"}, 400, 400),
    ],
)  # fmt: skip
def test_errors_have_a_status_of_their_own(
    site: Site, query: dict[str, str], status: int, number: int
) -> None:
    answer = get(site, "/2.3/questions", **{"site": "math", **query})
    assert answer.status == status
    assert json.loads(gzip.decompress(answer.body))["error_id"] == number
    assert get(site, "/2.3/nothing", site="math").status == 404


def test_people_can_click_through(site: Site) -> None:
    number = next(iter(site.questions))
    assert f'href="/questions/{number}"'.encode() in get(site, "/").body
    assert get(site, f"/questions/{number}").status == 200
    assert get(site, "/questions/1").status == get(site, "/elsewhere").status == 404
