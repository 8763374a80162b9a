import gzip
import json
from typing import Any

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.stackexchange import Site
from simulator.world import World


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
