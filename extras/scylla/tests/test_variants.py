import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from core.cells.puzzles import PuzzleCell
from core.errors import UsageError
from core.settings import Settings
from extras.scylla.asking import Writer, ask, find_items, list_asked
from extras.scylla.demonstrations import draw_instance, draw_other_puzzles
from extras.scylla.journal import Journal
from extras.scylla.puzzle import Instance, list_puzzles, load_puzzle
from extras.scylla.sampling import Sampling, sample_items
from extras.scylla.scripted import ScriptedGenerator, ScriptedModel
from extras.scylla.solving import plan_puzzles
from extras.scylla.texts import extract_examples, probe_prompt, question_prompt
from extras.scylla.variants import (
    TRIGGER,
    has_gone_on,
    make_prompt,
    parse_variant,
    read_prompt,
    second_prompt,
    trim_response,
)
from models.generation import Decoding, Generation, GenerationRequest

MINIMUM = load_puzzle("find_minimum")
TWO = load_puzzle("two_sum")
ASKED = Instance(((9, 8, 7),))
SHOWN = (Instance(((3, 1, 2),)), Instance(((5, 6),)))
PROMPTS = {
    "few-shot-2": "Input: 3 1 2\nOutput: 1\n\nInput: 5 6\nOutput: 5\n\nInput: 9 8 7\nOutput:",
    "few-shot-1": "Input: 3 1 2\nOutput: 1\n\nInput: 9 8 7\nOutput:",
    "mixed-2": f"{MINIMUM.statement}\n\nInput: 3 1 2\nOutput: 1\n\nInput: 5 6\nOutput: 5\n\n"
    "Input: 9 8 7\nOutput:",
}


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_with_demonstrations(name: str) -> None:
    variant = parse_variant(name)
    shown = SHOWN[: variant.num_of_puzzle]
    assert make_prompt(variant, MINIMUM, ASKED, shown, seed=0) == PROMPTS[name]


def test_lists_and_parameters_in_demonstrations() -> None:
    shown = [Instance(((1, 2, 4),), (6,))]
    prompt = make_prompt(parse_variant("few-shot-1"), TWO, Instance(((1, 3),), (4,)), shown, 0)
    assert prompt == (
        "Input: $l$ = 1 2 4, $k$ = 6\nOutput: [2, 4]\n\nInput: $l$ = 1 3, $k$ = 4\nOutput:"
    )


def test_without_a_variant_the_question_is_as_ever() -> None:
    variant = parse_variant("zero-shot-cot")
    assert make_prompt(variant, MINIMUM, ASKED, (), 0) == question_prompt(MINIMUM, ASKED)


def test_varied_demonstrations_are_of_several_levels_and_not_of_the_asked_puzzle() -> None:
    variant = parse_variant("varied-6")
    others = draw_other_puzzles(MINIMUM, 6, seed=3)
    assert {puzzle.level for puzzle, _ in others} == {1, 2, 3, 4, 5, None}
    assert MINIMUM.name not in {puzzle.name for puzzle, _ in others}
    blocks = make_prompt(variant, MINIMUM, ASKED, (), seed=3).split("\n\n")
    statements = [puzzle.statement for puzzle, _ in others]
    assert blocks[:12:2] == statements and blocks[12] == MINIMUM.statement
    for (puzzle, given), block in zip(others, blocks[1:12:2], strict=True):
        shown, _, answer = block.partition("\nOutput: ")
        assert shown == f"Input: {puzzle.render(given)}"
        assert puzzle.accepts(given, tuple(map(int, answer.strip("[]").split(", "))))
    assert blocks[13] == "Input: 9 8 7\nOutput:"
    again = [draw_other_puzzles.__wrapped__(MINIMUM, 6, seed) for seed in (3, 4)]
    assert again[0] == others != again[1]


def test_the_second_prompt_has_the_first_and_its_answer() -> None:
    assert second_prompt("How much?", "\nSeven.\n") == f"How much?\n\nSeven.\n\n{TRIGGER}"


@pytest.mark.parametrize("name", list_puzzles())
def test_an_input_is_read_from_every_variant(name: str) -> None:
    puzzle = load_puzzle(name)
    instance, *shown = (draw_instance(puzzle, random.Random(seed)) for seed in range(3))
    for variant in map(parse_variant, ("zero-shot-cot", "few-shot-2", "mixed-2", "varied-3")):
        prompt = make_prompt(variant, puzzle, instance, shown[: variant.num_of_puzzle], 0)
        assert read_prompt(puzzle, prompt) == instance
        assert read_prompt(puzzle, second_prompt(prompt, "The answer is 3.")) == instance


# Of the paper's twenty puzzles: what models are asked never changes, so that answers stay good.
GOLDEN = "3623b52f1052951fccf46fa8d2df4c1fb06e78fd6e8f4c5cbf54787b74ea3346"
LATER = ("add_days", "reachable_numbers")


def test_the_first_twenty_puzzles_ask_what_they_always_did() -> None:
    digests = {}
    for name in sorted(set(list_puzzles()) - set(LATER)):
        puzzle = load_puzzle(name)
        model = ScriptedModel("scripted:valley", 8)
        texts = [model.write_inputs(puzzle, seed) for seed in range(40)]
        written = extract_examples(texts, puzzle.input_shape)
        items = sample_items(model.name, puzzle, written, Sampling(8)).items
        asked = [[s, question_prompt(puzzle, each)] for s, own in items.items() for each in own]
        digests[name] = digest([probe_prompt(puzzle), asked])[:12]
    assert digest(digests) == GOLDEN


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def test_what_follows_the_answer_is_not_judged() -> None:
    direct = parse_variant("mixed-8")
    for text in (" 7\n\nInput: 3 4\nOutput: 3", "7", "Output: 7\n"):
        assert trim_response(direct, text) == "7"
    assert has_gone_on(direct, "7\n\nInput: 3") and not has_gone_on(direct, "7\n")
    plain = parse_variant("zero-shot-cot")
    assert trim_response(plain, " 7\nInput: 3") == " 7\nInput: 3"
    assert not has_gone_on(plain, " 7\nInput: 3")


def test_other_names_are_refused() -> None:
    for name in ("few-shot", "mixed-0", "mixed-9", "zero-shot-cot-likelihood", "mixed-2-third"):
        with pytest.raises(UsageError, match="expected zero-shot-cot"):
            parse_variant(name)
        with pytest.raises(ValidationError):
            Settings(puzzle_prompt=name)
    for name in ("zero-shot-cot-second", "few-shot-2", "mixed-8-likelihood", "varied-1-second"):
        assert parse_variant(name).name == name == Settings(puzzle_prompt=name).puzzle_prompt


class Doubter(ScriptedGenerator):
    """Asked again, it turns right answers into wrong ones, and wrong ones into right ones."""

    prompts: list[str]

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        for each in requests:
            if not each.prompt.endswith(TRIGGER):
                yield from super().generate([each], decoding)
                continue
            puzzle = load_puzzle(each.key.split("/")[0])
            answer = puzzle.solve(read_prompt(puzzle, each.prompt))[0]
            is_right = f"The answer is {answer}." in each.prompt
            yield Generation(each.key, f" {answer + is_right}.", "stop", 3)


def solved(prompt: str, tmp_path: Path, generator: ScriptedGenerator) -> dict[str, list[str]]:
    given = Settings(home=str(tmp_path), puzzle_items=8, puzzle_prompt=prompt)
    cell = PuzzleCell("m", "r", MINIMUM.name, prompt, "g")
    with Journal(tmp_path / "journal.jsonl") as journal:
        writer = Writer(generator, journal)
        _, data = find_items(cell, MINIMUM, writer, given)
        answers = list(ask(cell, MINIMUM, data, writer, given))
        asked = list_asked(MINIMUM, data, given)
    inputs = {MINIMUM.render(each.instance) for each in asked}
    for each in asked:
        shown = each.prompt.split("Input: ")[1:-1]
        assert len(shown) == parse_variant(prompt).num_of_puzzle
        assert not inputs & {text.partition("\n")[0] for text in shown}, "no item is shown"
    return {s: [a.status for a in answers if a.split == s] for s in ("id", "ood", "ood_near")}


@pytest.mark.parametrize("prompt", ["few-shot-2", "mixed-8", "zero-shot-cot-second"])
def test_a_scripted_model_has_its_planted_shares(prompt: str, tmp_path: Path) -> None:
    generator = ScriptedGenerator("scripted:generalises", 8)
    found = solved(prompt, tmp_path, generator)
    assert found["id"] == ["correct"] * 4 + ["wrong"] * 4
    assert found["ood"] == ["correct"] * 6 + ["wrong"] * 2


def test_the_second_answer_counts(tmp_path: Path) -> None:
    found = solved("zero-shot-cot-second", tmp_path, Doubter("scripted:generalises", 8))
    assert found["id"] == ["wrong"] * 4 + ["correct"] * 4
    assert found["ood"] == ["wrong"] * 6 + ["correct"] * 2


def test_a_variant_has_cells_of_its_own_and_leaves_the_usual_ones(tmp_path: Path) -> None:
    given = Settings(home=str(tmp_path), puzzle_items=8, max_document_bytes=10**6)
    (usual,) = plan_puzzles("scripted:valley", ["find_minimum"], given).cells
    assert usual.protocol == "zero-shot-cot-8"
    assert usual.generation == "ab7e8e41f11e"
    for name in ("few-shot-2", "mixed-8-second", "varied-2"):
        other = given.model_copy(update={"puzzle_prompt": name})
        (cell,) = plan_puzzles("scripted:valley", ["find_minimum"], other).cells
        assert cell.protocol == f"{name}-8" and cell.generation != usual.generation
        assert replace(cell, protocol="", generation="") == replace(
            usual, protocol="", generation=""
        )
