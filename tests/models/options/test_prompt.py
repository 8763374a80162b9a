import datetime as dt
from collections import Counter

import pytest

from core.corpus.questions import CrowdForecast, Question
from core.errors import UnknownName
from models.options.protocols import (
    AnswerProtocol,
    get_answer_protocol,
    list_answer_protocols,
    prompts_of,
)
from tests.models.conftest import question


def _question(**changes: object) -> Question:
    fields: dict[str, object] = {
        "title": "Will the $5 bridge of Rovinal open?",
        "background": "It was begun in spring.",
        "options": ("Yes", "No", "Never\nat all"),
        "answer_index": 1,
        "closed_at": dt.datetime(2025, 7, 9, tzinfo=dt.UTC),
        "resolved_at": dt.datetime(2025, 8, 9, tzinfo=dt.UTC),
        "status": "resolved",
        "crowd_forecast": (CrowdForecast("No", 0.8731),),
    }
    return question(**(fields | changes))


def test_every_protocol_has_a_name_of_its_own_that_is_read_back() -> None:
    protocols = list_answer_protocols()
    assert len({protocol.name for protocol in protocols}) == len(protocols) == 42
    assert [get_answer_protocol(protocol.name) for protocol in protocols] == protocols
    assert len({protocol.digest for protocol in protocols}) == 42
    with pytest.raises(UnknownName, match="letter-rotated"):
        get_answer_protocol("letter-rotate")


@pytest.mark.parametrize("protocol", list_answer_protocols(), ids=lambda each: each.name)
def test_neither_the_answer_nor_the_crowd_is_shown(protocol: AnswerProtocol) -> None:
    for prompt in prompts_of(_question(), protocol):
        assert "0.87" not in prompt.text
        assert "2025" not in prompt.text
        assert protocol.is_task or "$5 bridge" in prompt.text
        assert prompt.text == prompt.text.strip()


def test_a_field_that_is_not_there_has_no_line() -> None:
    [prompt] = prompts_of(_question(background=None), AnswerProtocol("text"))
    assert "Background" not in prompt.text
    assert "Resolution" not in prompt.text
    assert prompt.text.endswith("- Yes\n- No\n- Never at all\nAnswer:")
    assert prompt.continuations == (" Yes", " No", " Never at all")


def test_each_option_is_in_each_place_once() -> None:
    prompts = prompts_of(_question(), AnswerProtocol("letter", is_rotated=True))
    assert [prompt.order for prompt in prompts] == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    assert "A. No\nB. Never at all\nC. Yes\nAnswer:" in prompts[1].text
    assert prompts[1].continuations == (" A", " B", " C")


def test_more_options_than_letters_are_asked_by_text_alone() -> None:
    many = _question(options=tuple(f"number {n}" for n in range(27)))
    assert prompts_of(many, AnswerProtocol("letter")) == []
    assert len(prompts_of(many, AnswerProtocol("text"))[0].continuations) == 27


def test_options_of_written_answers_are_rotated_evenly_and_alike_each_time() -> None:
    protocol = get_answer_protocol("generate")
    asked = [question(title=f"Will {n} open?", options=("Yes", "No", "Never")) for n in range(300)]
    orders = [prompts_of(each, protocol)[0].order for each in asked]
    assert orders == [prompts_of(each, protocol)[0].order for each in asked]
    counts = Counter(orders)
    assert set(counts) == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
    assert min(counts.values()) > 80
    other = get_answer_protocol("generate-seed-7")
    assert other.name == "generate-seed-7" and other.digest != protocol.digest
    assert get_answer_protocol("generate-seed-0") == protocol
    assert [prompts_of(each, other)[0].order for each in asked] != orders
