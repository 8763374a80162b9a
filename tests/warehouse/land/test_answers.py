import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from core.cells.answers import Answer, AnswerCell, write_answers
from core.corpus.questions import CrowdForecast, Question, QuestionSeal, seal_questions
from core.errors import StorageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from warehouse.land.answers import land_answer_cells

pytestmark = pytest.mark.usefixtures("kept_open")

MAY, JUNE = Month("2024-05"), Month("2024-06")


def question(name: str, **changes: Any) -> Question:
    fields: dict[str, Any] = {
        "question_id": name, "source": "s", "title": "Will it?", "options": ("Yes", "No"),
        # Late in the evening in UTC, the next day in other zones.
        "opened_at": dt.datetime(2024, 3, 1, 23, 30, tzinfo=dt.UTC), "answer_index": 1,
        "resolved_at": dt.datetime(2024, 5, 31, 23, 30, tzinfo=dt.UTC), "status": "resolved",
        "tags": ("Finance",), "licence": "MIT",
    }  # fmt: skip
    return Question(**{**fields, **changes})


@pytest.fixture
def land(settings: Settings) -> Callable[..., int]:
    return lambda *pairs: land_answer_cells(settings, pairs)


@pytest.fixture
def answered(store: Store) -> Callable[..., tuple[AnswerCell, QuestionSeal]]:
    """Seal questions and answer the resolved ones; every answer is option 1."""

    def answered(
        questions: list[Question], month: Month = MAY, **cell: Any
    ) -> tuple[AnswerCell, QuestionSeal]:
        seal = seal_questions(store, "s", month, questions, {"status": "complete"})
        names = {"model": "m", "revision": "r1", "protocol": "letter", "answering": "0" * 8, **cell}
        made = AnswerCell(source="s", month=month, questions_digest=seal.digest, **names)
        asked = [each for each in questions if each.status == "resolved"]
        answers = [
            Answer(each.question_id, None, None, "refusal", "I cannot say")
            if each.title == "unread"
            else Answer(each.question_id, (0.25, 0.75, *[0.0] * (len(each.options) - 2)), 1)
            for each in asked
        ]
        write_answers(store, made, asked, answers)
        return made, seal

    return answered


def test_a_cell_lands_once_with_its_questions(land: Any, answered: Any, peek: Any) -> None:
    crowd = (CrowdForecast("No", 0.75), CrowdForecast("Yes", 0.25))
    pair = answered(
        [
            question("right", crowd_forecast=crowd),
            question("wrong", answer_index=0, crowd_forecast=crowd[:1]),
            question("unread", title="unread"),
            question("void", status="void", answer_index=None),
        ]
    )
    assert (land(pair), land(pair)) == (1, 0)
    rows = peek("from internal.judged_answers order by question_id")
    assert [(r["question_id"], r["is_correct"], r["p_correct"], r["p_chosen"]) for r in rows] == [
        ("right", True, 0.75, 0.75), ("unread", False, None, None), ("wrong", False, 0.25, 0.75),
    ]  # fmt: skip
    assert [row["is_parsed"] for row in rows] == [True, False, True]
    # A crowd that gave one option only has no score; a day is a day of UTC.
    assert [row["crowd_brier"] for row in rows] == [0.125, None, None]
    assert {row["opened"] for row in rows} == {dt.date(2024, 3, 1)}
    asked = peek("from forecast_questions")
    assert {row["resolved"] for row in asked} == {dt.date(2024, 5, 31)}
    assert sorted(row["status"] for row in asked) == ["resolved"] * 3 + ["void"]
    assert peek("select model from models") == [{"model": "m"}]


def test_what_is_answered_anew_takes_the_former_place(land: Any, answered: Any, peek: Any) -> None:
    first = answered([question("a"), question("b")])
    other = answered([question("a"), question("b")], protocol="text")
    land(first, other)
    again = answered([question("a"), question("c")], revision="r2")
    assert land(again) == 1
    rows = peek("from forecast_answers order by protocol, question_id")
    assert [(r["protocol"], r["question_id"], r["revision"]) for r in rows] == [
        ("letter", "a", "r2"), ("letter", "c", "r2"), ("text", "a", "r1"), ("text", "b", "r1"),
    ]  # fmt: skip
    assert len(peek("from internal.judged_answers")) == 4, "the answer to b still has its question"


def test_a_question_that_is_resolved_anew_counts_once(land: Any, answered: Any, peek: Any) -> None:
    in_may = answered([question("a")])
    in_june = answered([question("a", answer_index=0)], month=JUNE)
    for _ in range(2):
        land(in_june, in_may)  # in whatever order they come
        [row] = peek("from internal.judged_answers")
        assert (row["is_correct"], row["p_correct"]) == (False, 0.25)
        [asked] = peek("from forecast_questions")
        assert asked["month"] == dt.date(2024, 6, 1)
    other = answered([question("a")], protocol="text")
    land(other, answered([question("b")], month=JUNE, protocol="text"))
    rows = peek("from internal.judged_answers order by all")
    assert [row["question_id"] for row in rows] == ["a", "b"]


def test_a_damaged_file_loses_nothing_that_is_landed(
    land: Any, answered: Any, store: Store, peek: Any
) -> None:
    good, bad = answered([question("a")]), answered([question("b")], month=JUNE)
    store.write_bytes(bad[0].path, b"PAR1")
    with pytest.raises(StorageError, match="is damaged .* move it out of the data root and run"):
        land(good, bad)
    assert [row["question_id"] for row in peek("from forecast_answers")] == ["a"]


def test_a_flipped_bit_is_found(land: Any, answered: Any, store: Store) -> None:
    cell, seal = answered([question("a")])
    raw = bytearray(store.read_bytes(cell.path))
    raw[32] ^= 1  # in the first page of data
    store.write_bytes(cell.path, bytes(raw))
    with pytest.raises(StorageError, match="CRC checksum verification failed"):
        land((cell, seal))
