"""Likelihoods against numpy's softmax of the logits of a tiny random model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from core.cells.puzzles import PuzzleCell
from core.errors import NotMeasurable
from core.settings import Settings
from extras.scylla.asking import Writer, find_items, list_asked, measure
from extras.scylla.journal import Journal
from extras.scylla.judging import list_stored_answers, paper_accepts
from extras.scylla.likelihoods import AnswerLosses, LikelihoodModel, likelihood_id, load_likelihoods
from extras.scylla.puzzle import Instance, load_puzzle
from extras.scylla.sampling import generator_of
from extras.scylla.scripted import ScriptedGenerator
from models.catalogue import ModelEntry, find_model


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=str(tmp_path_factory.mktemp("home")), device="cpu", batch_tokens=40)


@pytest.fixture(scope="module")
def model(llama_folder: str, given: Settings) -> LikelihoodModel:
    return load_likelihoods(find_model(llama_folder, given), given, None)


def by_hand(folder: str, text: str) -> np.ndarray:
    """-ln p of each token of a text after the first."""
    tokens = by_hand_tokens(folder, text)
    network = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        logits = network(torch.tensor([tokens])).logits[0].double().numpy()[:-1]
    logits -= logits.max(axis=1, keepdims=True)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen: np.ndarray = -np.log(probabilities[np.arange(len(tokens) - 1), tokens[1:]])
    return chosen


def by_hand_tokens(folder: str, text: str) -> list[int]:
    from transformers import AutoTokenizer

    return list(AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False).input_ids)


def test_losses_are_those_of_the_softmax(model: LikelihoodModel, llama_folder: str) -> None:
    prompts = [("Input: 3 1\nOutput:", [" 1", " 31"]), ("Sum:", [" [1, 2]"])]
    for (prompt, answers), losses in zip(prompts, model.measure(prompts), strict=True):
        assert losses is not None
        for answer, own in zip(answers, losses, strict=True):
            expected = by_hand(llama_folder, prompt + answer)
            np.testing.assert_allclose(np.concatenate(own), expected, rtol=1e-4)
            assert len(own.prompt) == len(by_hand_tokens(llama_folder, prompt)) - 1
            num = len(expected) - len(own.prompt)
            product = np.prod(np.exp(-expected[-num:])) ** (1 / num)
            assert own.probability == pytest.approx(product, rel=1e-4)


def test_a_probability_is_a_geometric_mean() -> None:
    losses = AnswerLosses(np.zeros(0), -np.log([0.5, 0.02, 0.1]))
    assert losses.probability == pytest.approx(0.1)


def test_a_prompt_beyond_the_context_is_not_measured(model: LikelihoodModel) -> None:
    assert [each is None for each in model.measure([("x" * 80, [" 1"]), ("x", [" 1"])])] == [
        True, False
    ]  # fmt: skip


def test_stored_answers_are_those_of_the_paper() -> None:
    rng = generator_of("a")
    cases = {
        "find_minimum": (Instance(((3, 1, 2),)), 1),
        "two_sum": (Instance(((1, 2, 4),), (6,)), 2),
        "three_sum": (Instance(((1, 2, 4, 40),), (7,)), 6),
        "four_sum": (Instance(((1, 2, 4, 40, 90),), (47,)), 6),
        "tsp": (Instance(((0, 1, 9, 2), (1, 0, 3, 9), (9, 3, 0, 4), (2, 9, 4, 0))), 2),
    }
    for name, (instance, number) in cases.items():
        answers = list_stored_answers(load_puzzle(name), instance, rng)
        assert len(answers) == len(set(answers)) == number
        assert all(paper_accepts(load_puzzle(name), instance, answer) for answer in answers)


class Measured(ScriptedGenerator):
    """Scripted inputs; the likelihoods are those of the lengths of prompt and answers."""

    def measure(self, prompts):  # type: ignore[no-untyped-def]
        for number, (prompt, answers) in enumerate(prompts):
            losses = [
                AnswerLosses(np.full(len(prompt) - 1, 0.5), np.full(3, 1.0 + place))
                for place, _ in enumerate(answers)
            ]
            yield None if number == 1 else losses


def test_the_most_probable_right_answer_counts(tmp_path: Path) -> None:
    given = Settings(home=str(tmp_path), puzzle_items=8, puzzle_prompt="mixed-2-likelihood")
    cell = PuzzleCell("m", "r", "two_sum", "p", "g")
    puzzle = load_puzzle("two_sum")
    generator = Measured("scripted:perfect", 8)
    with Journal(tmp_path / "journal.jsonl") as journal:
        _, data = find_items(cell, puzzle, Writer(generator, journal), given)
    found = list(measure(cell, puzzle, data, generator, given))  # type: ignore[arg-type]
    asked = list_asked(puzzle, data, given)
    for number, (one, item) in enumerate(zip(found, asked, strict=True)):
        assert (one.split, one.item, one.num_answers) == (item.split, item.item, 2)
        if number == 1:
            assert (one.token_nats, one.answer, one.reason) == (None, None, "too_long")
            continue
        assert one.token_nats == (1.0, 1.0, 1.0) and one.reason is None
        assert one.prompt_tokens == len(item.prompt) - 1
        assert one.prompt_nats == pytest.approx(0.5 * (len(item.prompt) - 1))
        assert one.answer == str(sorted(puzzle.solve(item.instance)))


def test_models_without_logits_are_refused(given: Settings) -> None:
    entry = ModelEntry(name="sim", kind="api", location="http://127.0.0.1:9", served_name="s")
    with pytest.raises(NotMeasurable, match="likelihood of each token"):
        likelihood_id(entry, given)
