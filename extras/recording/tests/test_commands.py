from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.server import Web


@pytest.mark.long
@pytest.mark.usefixtures("sites")
def test_a_recording_is_made_in_an_empty_folder_alone(
    tidemark: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    record = ("sources", "record", "hackernews", "2024-02", "--out", str(folder))
    ran = tidemark(*record, "--limit", "1").expect(0)
    exchanges = list(folder.glob("[0-9]*.json"))
    assert f"made: {len(exchanges)} exchanges (" in ran.out
    assert {path.name for path in folder.iterdir()} == {
        "README.txt", "recording.json", *(path.name for path in exchanges),
    }  # fmt: skip
    assert tidemark(*record).code == 2


def test_the_check_fails_if_a_field_is_missing(
    tidemark: Callable[..., Any], sites: Web, tmp_path: Path
) -> None:
    folder = tmp_path / "recordings" / "manifold"
    tidemark("sources", "record", "manifold", "2024-02", "--out", str(folder)).expect(0)
    check = ("sources", "check", "--recordings", str(folder.parent))
    assert tidemark(*check).code == 2
    assert "as recorded" in tidemark(*check, "--live").expect(0).out
    sites.sites["manifold"].quirks["missing_fields"] = 1
    ran = tidemark(*check, "--live")
    assert ran.code == 1
    assert "is missing" in ran.out
    assert "fields are missing or of another type" in ran.err
