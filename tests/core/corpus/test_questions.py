import datetime as dt
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core.cells.answers import Answer, AnswerCell, NoAnswer, find_answers, write_answers
from core.corpus.questions import (
    CrowdForecast,
    Question,
    list_questions,
    read_question_seal,
    read_questions,
    seal_questions,
)
from core.errors import SchemaMismatch, StorageError
from core.month import Month
from core.storage.store import Store

MAY = Month("2024-05")


def _question(number: int = 1, **changes: object) -> Question:
    at = dt.datetime(2024, 3, number, tzinfo=dt.UTC)
    fields: dict[str, object] = {
        "question_id": f"q/{number}", "source": "some/where", "title": "Will it?",
        "options": ("Yes", "No"), "answer_index": 0, "opened_at": at,
        "resolved_at": dt.datetime(2024, 5, 31, 23, 59, 59, tzinfo=dt.UTC), "status": "resolved",
        "tags": ("a", "b"), "crowd_forecast": (CrowdForecast("Yes", 0.75, at),), "licence": "MIT",
    }  # fmt: skip
    return Question(**{**fields, **changes})  # type: ignore[arg-type]


def test_questions_come_back_as_they_were(store: Store) -> None:
    void = _question(2, status="void", answer_index=None)
    seal = seal_questions(store, "some/where", MAY, [void, _question()], {"status": "complete"})
    assert read_question_seal(store, "some/where", MAY) == seal
    assert list_questions(store) == list_questions(store, "some/where") == [seal]
    assert read_questions(store, seal) == [_question(), void]
    assert (seal.source, seal.month, seal.num_questions) == ("some/where", MAY, 2)
    assert not seal.is_partial


def test_the_same_questions_have_the_same_digest_whatever_their_order(store: Store) -> None:
    pair = [_question(1), _question(2)]
    first = seal_questions(store, "s", MAY, pair, {})
    again = seal_questions(store, "s", MAY, pair[::-1], {"note": "later"})
    other = seal_questions(store, "s", MAY, [_question(1)], {})
    assert first.digest == again.digest != other.digest
    assert store.exists(first.path), "answers name it"
    assert read_question_seal(store, "s", MAY) == other


def test_a_damaged_month_says_so(store: Store) -> None:
    seal = seal_questions(store, "s", MAY, [_question()], {})
    Path(store.root, seal.path).write_bytes(b"PAR1")
    with pytest.raises(StorageError, match="is damaged .* again with --replace"):
        read_questions(store, seal)
    Path(store.root, seal.path).with_name("manifest.json").write_text("{")
    with pytest.raises(StorageError, match="is not a manifest"):
        list_questions(store)


def test_a_question_without_an_answer_is_not_sealed_as_resolved(store: Store) -> None:
    with pytest.raises(SchemaMismatch, match="questions of s 2024-05: row 0: a resolved question"):
        seal_questions(store, "s", MAY, [_question(answer_index=None)], {})
    assert list_questions(store) == []


def test_answers_are_judged_and_written_whole(store: Store) -> None:
    cell = AnswerCell("a/model", "f" * 40, "some/where", MAY, "d" * 64, "letter", "01234567")
    asked = [_question(1), _question(2, status="void", answer_index=None)]
    answers = [Answer("q/2", None, None, "refused", "I cannot"), Answer("q/1", (0.75, 0.25), 0)]
    assert write_answers(store, cell, asked, answers) == 2
    rows = pq.read_table(Path(store.root, cell.path)).to_pylist()
    assert [row["is_correct"] for row in rows] == [True, None]
    assert [row["is_parsed"] for row in rows] == [True, False]
    assert "month=2024-05/letter-ffffffffffff-dddddddddddd-01234567.parquet" in cell.path
    for wrong, says in (
        (answers[:1], "1 answers to 2 questions"),
        ([*answers, answers[0]], "3 answers to 2"),
        ([answers[0], Answer("q/1", (1.0,), 0)], "does not fit a question of 2 options"),
        ([answers[0], Answer("q/1", None, 2)], "does not fit"),
        ([answers[0], Answer("q/1", None, -1)], "does not fit"),
        ([answers[0], Answer("q/1", None, None)], "reason must say why"),
        ([answers[0], Answer("q/3", None, 1)], "was not asked"),
    ):
        with pytest.raises(SchemaMismatch, match=says):
            write_answers(store, cell, asked, wrong)
    assert pq.read_table(Path(store.root, cell.path)).to_pylist() == rows


def test_a_cell_that_lacks_answers_is_replaced_by_one_that_lacks_fewer(store: Store) -> None:
    cell = AnswerCell("a/model", "f" * 40, "some/where", MAY, "d" * 64, "letter", "01234567")
    asked = [_question(number) for number in range(1, 4)]
    answers = [Answer(each.question_id, None, 0) for each in asked]
    missing = [NoAnswer(each.question_id, "answered 500") for each in asked]
    assert find_answers(store, cell) is None
    assert write_answers(store, cell, asked, [], missing) == 0
    assert find_answers(store, cell) is None
    with pytest.raises(SchemaMismatch, match="2 answers to 3"):
        write_answers(store, cell, asked, answers[:2], missing[1:])

    assert write_answers(store, cell, asked, answers[:1], missing[1:]) == 1
    two = find_answers(store, cell)
    write_answers(store, cell, asked, answers[:2], missing[2:])
    one = find_answers(store, cell)
    assert two and one and two.missing.startswith("2-") and one.missing.startswith("1-")
    rows = pq.read_table(Path(store.root, one.path)).to_pylist()
    assert [row["question_id"] for row in rows] == ["q/1", "q/2"]
    assert not store.exists(two.path) and not store.exists(cell.path)
    write_answers(store, cell, asked, answers)
    assert find_answers(store, cell) == cell
    assert store.list("answers/*/*/*/*") == [cell.path]
