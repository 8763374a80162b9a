import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import list_questions, read_questions
from core.month import Month
from core.progress import counted
from core.storage.store import Store
from simulator.server import Web
from simulator.sites.openai_api import refusal
from tests.flows.support.apis import rows, write_entry

Tidemark = Callable[..., Any]
KEY = "sk-simulated-Tide0123456789"
JANUARY, MARCH = Month("2024-01"), Month("2024-03")


def resolved(home: Path, source: str | None = None) -> int:
    store = Store(str(home))
    questions = [q for seal in list_questions(store, source) for q in read_questions(store, seal)]
    return sum(question.status == "resolved" for question in questions)


def test_questions_are_crawled_answered_and_shown(
    tidemark: Tidemark, sites: Web, tiny_model: Path, home: Path
) -> None:
    ran = tidemark("forecast", "crawl", "--month=2024-02", "--to=2024-03").expect(0)
    assert "questions of manifold 2024-03: " in ran.out
    asked = len(sites.requests)
    assert tidemark("forecast", "crawl", "--month=2024-02", "--to=2024-03").code == 0
    assert len(sites.requests) == asked, "sealed months are not asked for again"

    answer = ("forecast", "answer", "-m", tiny_model, "-p", "letter", "-p", "text-byte")
    ran = tidemark(*answer).expect(0)
    num = resolved(home)
    assert ran.out == f"{2 * num} questions answered, 8 cells landed\n"
    assert tidemark(*answer).out == "0 questions answered, 0 cells landed\n"
    for protocol in ("letter", "text-byte"):
        where = f"where protocol = '{protocol}'"
        found = rows(tidemark, f"select * from forecast_answers {where}")
        assert len(found) == num
        assert all(row["is_parsed"] and row["is_correct"] is not None for row in found)
        assert all(abs(sum(row["probabilities"]) - 1) < 1e-9 for row in found)
        assert all(row["p_chosen"] == max(row["probabilities"]) for row in found)
    void = rows(tidemark, "select * from forecast_questions where status = 'void'")
    assert void, "void questions are kept, and never asked"
    assert not {row["question_id"] for row in void} & {row["question_id"] for row in found}

    ran = tidemark("forecast", "report")
    assert ran.out.startswith("report ")
    page = (home / "report" / "forecasts.html").read_text()
    assert tiny_model.name in page and "<td>manifold</td>" in page


def test_what_cannot_be_crawled_or_answered_is_refused(tidemark: Tidemark, home: Path) -> None:
    tidemark("forecast", "crawl", "-s", "nosuch", "--month=2024-03").expect(2, "manifold")
    tidemark("forecast", "answer", "-m", "gpt2").expect(2, "tidemark forecast crawl")
    ran = tidemark("forecast", "report")
    assert ran.code == 2 and not (home / "report").exists()


@pytest.mark.long
def test_a_compressor_does_not_answer(tidemark: Tidemark, sites: Web) -> None:
    assert tidemark("forecast", "crawl", "-s", "manifold", "--month=2024-03").code == 0
    tidemark("forecast", "answer", "-m", "control:zstd").expect(1, "a compressor has no answers")
    ran = tidemark("forecast", "answer")  # the models of the settings are compressors alone
    assert ran.code == 2 and "no model that can answer" in ran.err


def _catalogue(home: Path, sites: Web) -> None:
    prices = {"dollars_per_million_input_tokens": 1, "dollars_per_million_output_tokens": 2}
    write_entry(home, sites, "sim-forecaster", **prices)
    _paid(sites).clear()


@pytest.mark.long
def test_a_question_that_a_server_never_serves_keeps_no_other_from_landing(
    tidemark: Tidemark, sites: Web, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _catalogue(home, sites)
    monkeypatch.setenv("TIDEMARK_API_KEYS__SIM", KEY)
    assert tidemark("forecast", "crawl", "-s", "manifold", "--month=2024-03").code == 0
    store = Store(str(home))
    [seal] = list_questions(store)
    first, *others = [q for q in read_questions(store, seal) if q.status == "resolved"]
    site: Any = sites.sites["openai_api"]
    site.refusals[first.title] = refusal(400, "odd", "What?")

    for landed in (1, 0):
        ran = tidemark("forecast", "answer", "-m", "sim").expect(
            1,
            f"1 of {1 + len(others)} questions have no answer, the first, ",
            first.question_id,
            "answered 400: 'What?'",
        )
        assert f"{len(others)} questions answered, {counted(landed, 'cell')} landed" in ran.out
        [row] = rows(tidemark, "from forecast_accuracy")
        assert row["num_all_questions"] == len(others)
    assert len(_paid(sites)) == len(others)

    del site.refusals[first.title]
    ran = tidemark("forecast", "answer", "-m", "sim")
    assert ran.code == 0 and ", 1 cell landed" in ran.out
    [row] = rows(tidemark, "from forecast_accuracy")
    assert row["num_all_questions"] == len(_paid(sites)) == 1 + len(others)


@pytest.mark.slow
def test_a_paid_model_stops_at_its_budget_and_goes_on(
    tidemark: Tidemark, sites: Web, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _catalogue(home, sites)
    assert tidemark("forecast", "crawl", "-s", "manifold", "--month=2024-03").code == 0
    tidemark("forecast", "answer", "-m", "sim").expect(2, "TIDEMARK_API_KEYS__SIM")
    monkeypatch.setenv("TIDEMARK_API_KEYS__SIM", KEY)
    monkeypatch.setenv("TIDEMARK_MAX_ANSWER_TOKENS", "3500")
    ran = tidemark("forecast", "answer", "-m", "sim")
    assert ran.code == 1 and "this run has spent" in ran.err and KEY not in ran.err
    paid = len(_paid(sites))
    assert 0 < paid < resolved(home)
    monkeypatch.delenv("TIDEMARK_MAX_ANSWER_TOKENS")
    ran = tidemark("forecast", "answer", "-m", "sim").expect(0)
    said, spent = ran.out.splitlines()
    assert said == f"{resolved(home)} questions answered, 1 cell landed"
    tokens = sum(bill.input_tokens + bill.output_tokens for bill in _paid(sites))
    assert spent.startswith(f"sim has taken so far: {resolved(home)} answers: {tokens} tokens")
    assert len(_paid(sites)) == resolved(home), "nothing is paid twice"
    [row] = rows(tidemark, "from forecast_accuracy")
    assert (row["protocol"], row["num_all_questions"]) == ("generate", resolved(home))
    assert row["released"] == "2024-02-01"
    tidemark("forecast", "answer", "-m", "sim", "-p", "letter").expect(1, "generate")


def _paid(sites: Web) -> list[Any]:
    ledger: list[Any] = sites.sites["openai_api"].ledger  # type: ignore[attr-defined]
    return ledger


def test_an_imported_set_is_answered_too(
    tidemark: Tidemark, tiny_model: Path, tmp_path: Path
) -> None:
    entry = {
        "Question": "Will the harbour of Tornel open?",
        "Started_time": "Feb 02, 2024 06:00PM UTC",
        "Closed_time": "Mar 03, 2024 06:00PM UTC",
        "Challenges_list": ["A challenge"],
        "Tags_list": ["Finance"],
        "Description": "It was closed.",
        "Possible_Answers_dict": {
            "Yes": {"Correct?": False, "Final Crowd Forecast": "20%"},
            "No": {"Correct?": True, "Final Crowd Forecast": "80%"},
        },
    }
    path = tmp_path / "gjo.json"
    path.write_text(json.dumps([entry]))
    ran = tidemark("forecast", "import", path, "--source", "freshbench")
    assert (ran.code, ran.out) == (0, "questions of freshbench 2024-03: 1 question\n")
    tidemark("forecast", "answer", "-m", tiny_model).expect(0)
    [row] = rows(tidemark, "from internal.judged_answers")
    assert (row["source"], row["protocol"]) == ("freshbench", "letter-rotated")
    assert row["crowd_brier"] == pytest.approx(0.08)
    grouped = """
        select g.question_group
        from (select lower(unnest(tags)) as tag from internal.judged_answers) as a
        inner join internal.tag_groups as g on g.tag = a.tag
    """
    [row] = rows(tidemark, grouped)
    assert row["question_group"] == "Economic and Business Items"
    path.write_text("[{]")
    tidemark("forecast", "import", path, "--source", "other").expect(1, "gjo.json")
