"""Files of questions, answers, puzzles, token losses and the canary, damaged in several ways."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpus.questions import Question, seal_questions
from core.month import Month
from core.storage.store import Store
from warehouse.read.check_files import check_files

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)


def flipped(content: bytes) -> bytes:
    """Return the content with 40 other bytes in its middle."""
    start = len(content) // 2 - 20
    middle = bytes(byte ^ 0x5A for byte in content[start : start + 40])
    return content[:start] + middle + content[start + 40 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "40 bytes": flipped,
    "cut": lambda content: content[: len(content) * 2 // 3],
    "empty": lambda content: b"",
    "another format": lambda content: b"SQLite format 3\0" + bytes(200),
}


def write_parquet(path: Path) -> bytes:
    path.parent.mkdir(parents=True)
    texts = pa.array([hashlib.sha256(str(n).encode()).hexdigest() for n in range(200)])
    pq.write_table(pa.table({"text": texts}), path, write_page_checksum=True)
    return path.read_bytes()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a data root with a file of each kind."""
    write_parquet(tmp_path / "answers/model=m/source=s/month=2024-01/letter-1-2-3.parquet")
    write_parquet(tmp_path / "tokens/model=m/source=s/month=2024-01/default-1-2-3.parquet")
    answers = tmp_path / "puzzles/model=m/puzzle=sort/zero-shot-1-2.parquet"
    digest = hashlib.sha256(write_parquet(answers)).hexdigest()
    answers.with_suffix(".json").write_text(json.dumps({"answers_digest": digest}))
    (answers.parent / "other-1-2.json").write_text(json.dumps({"answers_digest": None}))
    (answers.parent / "third-1-2.failed.json").write_text("{}")
    asked = [
        Question(
            question_id=f"q{n}", source="s", title=f"Will {n} win?", options=("Yes", "No"),
            answer_index=0, opened_at=NOON, resolved_at=NOON, status="resolved", licence="CC0-1.0",
        )
        for n in range(50)
    ]  # fmt: skip
    seal_questions(Store(str(tmp_path)), "s", Month("2024-01"), asked, {})
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    ("pattern", "check"),
    [
        ("answers/**/*.parquet", "answers_can_be_read"),
        ("tokens/**/*.parquet", "tokens_can_be_read"),
        ("puzzles/**/*.parquet", "puzzles_can_be_read"),
        ("puzzles/**/zero-shot-1-2.json", "puzzles_can_be_read"),
        ("questions/**/*.parquet", "questions_can_be_read"),
        ("questions/**/manifest.json", "questions_can_be_read"),
    ],
)
def test_damage_is_found(pattern: str, check: str, damage: str, root: Path) -> None:
    store = Store(str(root))
    assert not list(check_files(store))
    [path] = root.glob(pattern)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    [finding] = check_files(store)
    assert (finding.check, finding.num_rows) == (check, 1)
    assert "Bring the file" in finding.remedy
    assert path.parent.relative_to(root).as_posix() in finding.first


def test_a_damaged_manifest_is_not_printed_and_its_folder_is_to_be_moved(root: Path) -> None:
    store = Store(str(root))
    [path] = root.glob("questions/**/manifest.json")
    path.write_bytes(path.read_bytes().replace(b"digest", b"\xffigest"))
    [finding] = check_files(store)
    assert "UnicodeDecodeError" in finding.first
    assert "num_questions" not in finding.first
    assert "move the folder of its month" in finding.remedy
    path.parent.rename(root / "moved")  # with the manifest alone there, a crawl would do nothing
    assert not list(check_files(store))


def test_what_is_missing_is_found(root: Path) -> None:
    for path in (*root.glob("questions/**/*.parquet"), *root.glob("puzzles/**/*.parquet")):
        path.unlink()
    (root / "canary").mkdir()
    (root / "canary/1.json").write_text("{}")
    found = [finding.check for finding in check_files(Store(str(root)))]
    assert found == ["questions_can_be_read", "puzzles_can_be_read", "canary_can_be_read"]
