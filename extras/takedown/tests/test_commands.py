from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import import_notes, joined_words

Tidemark = Callable[..., Any]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("corpus forget", "say which documents"),
        ("corpus forget --again 00000000000000000000000000000000", "say which documents"),
        ("corpus forget x1", "is no document id"),
        ("corpus forget --native-id notes", "is not SOURCE:ID"),
        ("corpus forget --native-id :1", "is not SOURCE:ID"),
    ],
)
def test_a_wrong_request_exits_with_2_and_does_nothing(
    tidemark: Tidemark, home: Path, command: str, says: str
) -> None:
    ran = tidemark(*command.split()).expect(2, out="")
    assert says in joined_words(ran.err)
    assert not home.exists()


@pytest.mark.long
def test_a_document_is_forgotten_and_stays_out(
    tidemark: Tidemark, tmp_path: Path, home: Path
) -> None:
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    ran = tidemark("corpus", "forget", "--native-id", "notes:t1", "--why", "asked").expect(0)
    assert "1 document forgotten; rewritten: 1 version" in ran.out
    import_notes(tidemark, tmp_path, "2024-01", "sand and tide", "wind and wave")
    shown = joined_words(tidemark("corpus", "show", "notes", "2024-01").out)
    assert "1 of 1" in shown  # without the dropped item, the content is the same
    ran = tidemark("corpus", "forget", "--again").expect(0)
    assert "none of them is in the corpus" in ran.out
