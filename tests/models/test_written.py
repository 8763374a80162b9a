import dataclasses
from pathlib import Path

import pytest

from core.settings import Settings
from models.backends import identify, load_answerer
from models.catalogue import ModelEntry
from models.generation import Generation
from models.options.protocols import Answerer, Prompt, get_answer_protocol
from models.servers.budget import Budget
from models.written import answer_of_text, any_answering_id
from tests.models.conftest import llama_config, random_model
from tests.models.options.test_answering import question, save


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = random_model(llama_config(max_position_embeddings=512), 4)
    return save(model, tmp_path_factory.mktemp("writing") / "plain")


@pytest.fixture(scope="module")
def answerer(folder: Path, settings: Settings) -> Answerer:
    return load_answerer(ModelEntry(name="tiny", location=str(folder)), settings, Budget())


@pytest.mark.parametrize("name", ["generate", "task-generate"])
def test_a_text_does_not_depend_on_other_questions(answerer: Answerer, name: str) -> None:
    protocol = get_answer_protocol(name)
    asked = [question(number) for number in range(3)]
    many = dataclasses.replace(question(3), options=("x",) * 27)
    answers = list(answerer.answer([*asked, many], protocol))
    assert [each.question_id for each in answers] == ["q0", "q1", "q2", "q3"]
    assert answers[3].reason == "too_many_options"  # type: ignore[union-attr]
    assert list(answerer.answer(asked[1:2], protocol)) == answers[1:2]


def test_likelihoods_are_read_as_before(
    answerer: Answerer, folder: Path, settings: Settings
) -> None:
    (answer,) = answerer.answer([question()], get_answer_protocol("task-text"))
    assert sum(answer.probabilities) == pytest.approx(1)  # type: ignore[union-attr, arg-type]
    identity = identify(ModelEntry(name="tiny", location=str(folder)), settings)
    names = ["generate", "generate-seed-3", "task-generate", "letter", "task-letter", "task-text"]
    ids = [any_answering_id(identity, get_answer_protocol(name)) for name in names]
    assert ids == [answerer.answering_id(get_answer_protocol(name)) for name in names]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("written", "chosen", "reason"),
    [
        (Generation("0", "B", "stop"), 2, None),
        (Generation("0", "The answer is (D).", "length"), 0, None),
        (Generation("0", "Perhaps", "stop"), None, "no_choice"),
        (Generation("0", "It depends on", "length"), None, "length"),
        (Generation("0", " ", "stop"), None, "empty"),
        (Generation("0", "", "error", reason="too_long"), None, "too_long"),
    ],
)
def test_the_letter_is_of_the_rotated_options(
    written: Generation, chosen: int | None, reason: str | None
) -> None:
    prompt = Prompt("?", (), order=(1, 2, 3, 0))
    answer = answer_of_text(question(), prompt, written)
    assert (answer.chosen_index, answer.reason) == (chosen, reason)
