from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.usefixtures("sites")
def test_a_recording_is_made_in_an_empty_folder_alone(
    tidemark: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    record = ("record", "hackernews", "2024-02", "--out", str(folder))
    ran = tidemark(*record, "--limit", "1").expect(0)
    exchanges = list(folder.glob("[0-9]*.json"))
    assert f"made: {len(exchanges)} exchanges (" in ran.out
    assert {path.name for path in folder.iterdir()} == {
        "README.txt", "recording.json", *(path.name for path in exchanges),
    }  # fmt: skip
    assert tidemark(*record).code == 2
