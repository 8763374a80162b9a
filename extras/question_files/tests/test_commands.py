from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import list_questions
from core.storage.store import Store
from extras.question_files.tests.test_files import gjo, write
from tests.commands import home, tidemark

__all__ = ["home", "tidemark"]


@pytest.mark.smoke
def test_questions_of_a_file_are_sealed_by_month(
    tidemark: Callable[..., Any], home: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "gjo.json", [gjo(), gjo("Will it rain?", "No")])
    ran = tidemark("forecast", "import", path, "--source", "freshbench").expect(0)
    assert "freshbench 2024-03: 2 questions" in ran.out
    [seal] = list_questions(Store(str(home)))
    assert (seal.source, str(seal.month)) == ("freshbench", "2024-03")
    path.write_text("[1]", encoding="utf-8")
    tidemark("forecast", "import", path, "--source", "freshbench").expect(1, "gjo.json")
