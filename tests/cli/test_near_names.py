"""A misspelt name is answered with the name that is meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import import_notes
from tests.tiers import needs_extra

MEANT = "did you mean notes?"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("corpus accept ntoes 2024-01 --why x", MEANT),
        pytest.param("corpus forget --native-id ntoes:1", MEANT, marks=needs_extra("takedown")),
        ("corpus show ntoes 2024-01", MEANT),
        ("models list --tag thermometr", "did you mean thermometer?"),
        pytest.param(
            "clean a.txt --format radme", "did you mean readme?", marks=needs_extra("clean")
        ),
    ],
)
def test_the_name_that_is_meant(
    tidemark: Callable[..., Any], tmp_path: Path, arguments: str, meant: str
) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "tide")
    assert meant in tidemark(*arguments.split()).err


def test_a_name_like_none_is_answered_with_the_known_ones(tidemark: Callable[..., Any]) -> None:
    ran = tidemark("models", "list", "--tag", "zzzzz").expect(2, "thermometer")
    assert "did you mean" not in ran.err
