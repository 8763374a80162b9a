from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import import_notes

Tidemark = Callable[..., Any]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--cutoff 2024-01", "nothing is sealed of any source up to 2024-01"),
        ("--cutoff 2024-01 --seed -1", "seed must be at least 0"),
    ],
)
def test_a_wrong_request_exits_with_2_and_does_nothing(
    tidemark: Tidemark, home: Path, options: str, says: str
) -> None:
    ran = tidemark("models", "train", "mine", *options.split()).expect(2, says, out="")
    assert ran.err.strip().startswith("error: ")
    files = [path for path in home.rglob("*") if path.is_file()] if home.exists() else []
    assert files == []


def test_a_training_without_a_cutoff_exits_with_2(tidemark: Tidemark) -> None:
    assert tidemark("models", "train", "x").code == 2


def test_a_source_with_a_wrong_letter_is_asked_about(tidemark: Tidemark, tmp_path: Path) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide")
    command = "models train mine --cutoff 2024-01 -s nots"
    tidemark(*command.split()).expect(2, "did you mean notes? ", out="")


def test_the_demo_is_the_first_command_of_the_help(tidemark: Tidemark) -> None:
    first, second = tidemark("--help").expect(0).out.split("Start")[1].splitlines()[1:3]
    assert first.strip("│ ").startswith("demo ")
    assert second.strip("│ ").startswith("doctor ")
