"""The simulated Stack Exchange refuses what the real one refuses, in its words."""

import pytest

from extras.more_sources.simulator import stackexchange
from tests.simulator.test_sites import answer, body_of, get

QUESTIONS = "/2.3/questions?site=math"
REFUSED: list[tuple[int, str, list[str]]] = [
    (400, '"error_id": 400', [
        "/2.3/questions?site=quora", *(
            f"{QUESTIONS}&{each}"
            for each in ("pagesize=101", "page=0", "filter=nope", "key=wrong",
                         "fromdate=2023-01-01")
        ),
    ]),
    (403, '"error_id": 403', [f"{QUESTIONS}&page=26"]),
    (404, "", ["/2.3/nothing?site=math"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "says", "target"),
    [(status, says, each) for status, says, targets in REFUSED for each in targets],
)
def test_what_the_real_site_refuses_is_refused(status: int, says: str, target: str) -> None:
    response = get(stackexchange.Site, target)
    assert response.status == status
    assert says in body_of(response).decode()


def test_a_question_has_the_fields_that_the_documentation_names() -> None:
    wrapper = answer(
        stackexchange.Site, QUESTIONS, filter="withbody", pagesize=1, order="asc", sort="creation"
    )
    assert wrapper.keys() == {"items", "has_more", "quota_max", "quota_remaining"}
    [question] = wrapper["items"]
    assert question.keys() >= {
        "question_id", "title", "body", "tags", "creation_date", "score", "answer_count",
        "content_license", "owner", "link",
    }  # fmt: skip
    assert "body" not in answer(stackexchange.Site, QUESTIONS, filter="default")["items"][0]
