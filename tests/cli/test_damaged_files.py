"""Damaged files of the data root: each advice is followed as it is printed, and no row is lost."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import StorageError
from core.storage.store import Store
from tests.commands import import_notes
from tests.databases import losses_of, snapshot_of, text_of, writer_of

pytestmark = pytest.mark.long
Tidemark = Callable[..., Any]
TEXTS = ("One fine day", "Two of them ran")
MONTH = "corpus/source=notes/month=2024-01"


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    return {}


@pytest.fixture
def whole(
    home: Path,
    tidemark: Tidemark,
    tmp_path: Path,
    made: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Make a home with two texts, scored and published; return it."""
    if made:
        shutil.copytree(made["home"], home)
        named = home / "writer.json"
        named.write_text(json.dumps({**json.loads(named.read_text()), "root": str(home)}))
        return home
    import_notes(tidemark, tmp_path, "2024-01", *TEXTS)
    assert tidemark("score", "-m", "control:zstd").code == 0
    made["home"] = tmp_path_factory.mktemp("made") / "home"
    shutil.copytree(home, made["home"])
    return home


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20] = b"\xff" * 20
    path.write_bytes(data)


def found(home: Path, pattern: str) -> Path:
    [path] = home.glob(pattern)
    return path


def cell(home: Path) -> Path:
    return found(home, "losses/*/*/*/*.parquet")


def require_sound(tidemark: Tidemark) -> None:
    checked = tidemark("check", "--deep")
    assert checked.code == 0, checked.out


DAMAGE_OF_CELLS: dict[str, Callable[[Path], object]] = {
    "losses": lambda path: damage(path),
    "losses cut short": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "losses gone": lambda path: path.unlink(),
    "record": lambda path: path.with_suffix(".json").write_text("{"),
    "record gone": lambda path: path.with_suffix(".json").unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE_OF_CELLS)
def test_the_advice_for_a_damaged_cell_scores_it_again(
    whole: Path, tidemark: Tidemark, tmp_path: Path, kind: str
) -> None:
    before = losses_of(snapshot_of(whole))
    DAMAGE_OF_CELLS[kind](cell(whole))
    checked = tidemark("check", "--deep")
    if kind == "record gone":  # early versions wrote none
        assert checked.code == 0, checked.out
        return
    assert checked.code == 1
    assert "move both out of the data root, then run `tidemark score` again" in text_of(checked)
    for path in whole.glob("losses/*/*/*/default*"):
        path.rename(tmp_path / path.name)
    ran = tidemark("score", "-m", "control:zstd")
    assert ran.code == 0, ran.err
    require_sound(tidemark)
    assert losses_of(snapshot_of(whole)) == losses_of(writer_of(whole)) == before


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("texts", [TEXTS, ("One fine day", "Other words")])
def test_the_advice_for_a_damaged_part_ends_in_a_sound_home(
    whole: Path, tidemark: Tidemark, tmp_path: Path, texts: tuple[str, ...], is_gone: bool
) -> None:
    part = found(whole, f"{MONTH}/part-*.parquet")
    part.unlink() if is_gone else damage(part)
    checked = text_of(tidemark("check", "--deep"))
    assert "crawl or import the partition again with --replace" in checked
    import_notes(tidemark, tmp_path, "2024-01", *texts)
    assert tidemark("score", "-m", "control:zstd").code == 0
    if texts != TEXTS:  # a next version is sealed, and the damaged one is still there
        advised = "move them and the manifest.json beside them out of the data root"
        assert advised in text_of(tidemark("check", "--deep"))
        for path in (whole / MONTH).glob("*.*"):
            path.rename(tmp_path / path.name)
    require_sound(tidemark)


@pytest.mark.parametrize("is_gone", [False, True])
def test_the_advice_for_a_manifest_keeps_the_text(
    whole: Path, tidemark: Tidemark, tmp_path: Path, is_gone: bool
) -> None:
    manifest = whole / MONTH / "manifest.json"
    manifest.unlink() if is_gone else manifest.write_text("{")
    text = found(whole, f"{MONTH}/part-*.parquet").read_bytes()
    checked = text_of(tidemark("check", "--deep"))
    assert "Delete nothing" in checked
    assert "move it out of the data root, crawl or import the month again" in checked
    aside = tmp_path / "aside"
    (whole / MONTH).rename(aside)
    import_notes(tidemark, tmp_path, "2024-01", *TEXTS)
    assert tidemark("score", "-m", "control:zstd").code == 0
    require_sound(tidemark)
    assert found(aside, "part-*.parquet").read_bytes() == text


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    whole: Path, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise StorageError("cannot read it: [Errno 13] Permission denied")

    monkeypatch.setattr(Store, "sha256", refuse)  # the superuser may read everything
    checked = text_of(tidemark("check", "--deep"))
    assert "partitions_are_sound: 1 row" in checked
    assert "nothing is damaged: run the command as the owner of the file" in checked
