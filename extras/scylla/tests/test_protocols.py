from typing import Any

import pytest
from pydantic import ValidationError

from core.settings import Settings
from extras.scylla.solving import plan_puzzles
from instruments.running.run_options import PuzzleOptions


def protocol_of(settings: Settings) -> str:
    [cell] = plan_puzzles("scripted:small", ["two_sum"], settings).cells
    return cell.protocol


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "zero-shot-cot"),
        ({"puzzle_seed": 3}, "zero-shot-cot-seed-3"),
        ({"puzzle_prompt": "mixed-2", "puzzle_items": 16}, "mixed-2-16"),
        ({"puzzle_prompt": "mixed-2", "puzzle_items": 16, "puzzle_seed": 3}, "mixed-2-16-seed-3"),
    ],
)
def test_a_protocol_names_what_is_not_usual(
    given: dict[str, Any], name: str, settings: Settings
) -> None:
    assert protocol_of(settings.model_copy(update=given)) == name


def test_a_run_may_have_another_prompt(settings: Settings) -> None:
    options = PuzzleOptions(puzzle_prompt="few-shot-2")
    assert protocol_of(options.applied_to(settings)) == "few-shot-2"
    assert options.given() == {"puzzle_prompt": "few-shot-2"}
    for wrong in ("few-shot", "few-shot-9", "mixed-2-second-likelihood", ""):
        with pytest.raises(ValidationError, match="puzzle_prompt"):
            PuzzleOptions(puzzle_prompt=wrong)
