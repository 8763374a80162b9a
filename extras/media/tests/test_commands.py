import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from core.corpus.partition import list_sealed
from core.month import Month
from core.storage.store import Store
from tests.commands import *  # noqa: F403
from tests.flows.support.apis import rows

Tidemark = Callable[..., Any]


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    folder = tmp_path / "gallery"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name, size in (("a.png", (64, 256)), ("b.jpg", (140, 140)), ("c.gif", (9, 9))):
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(folder / name)
    (folder / "list.txt").write_text("three images")
    return folder


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "talk.flac"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, (220_500, 2)), 44_100)
    return path


def test_media_of_ones_own(tidemark: Tidemark, home: Path, gallery: Path, recording: Path) -> None:
    ran = tidemark("import", "media", gallery, "--source", "photos", "--month", "2024-05")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "photos 2024-05: 4 documents", "dropped: 1 too_small, 1 unknown_format",
    ]  # fmt: skip
    ran = tidemark("import", "media", recording, "--source", "talks", "--undated")
    assert (ran.code, ran.out) == (0, "talks undated: 2 documents\n")
    seals = {seal.partition.source: seal for seal in list_sealed(Store(str(home)))}
    assert (seals["photos"].content, seals["photos"].partition.month) == ("image", Month("2024-05"))
    assert (seals["talks"].content, seals["talks"].num_bytes) == ("audio", 160_000)
    assert "talks" in tidemark("sources", "list").out


def test_other_media_need_replace(tidemark: Tidemark, gallery: Path) -> None:
    command = ("import", "media", gallery, "--source", "photos", "--undated")
    assert tidemark(*command).out == tidemark(*command).out  # the same again
    (gallery / "b.jpg").unlink()
    tidemark(*command).expect(1, "use --replace")
    assert tidemark(*command, "--replace").out.startswith("photos undated: 2 documents\n")


@pytest.mark.long
@pytest.mark.parametrize("is_shown", [pytest.param(False, marks=pytest.mark.smoke), True])
def test_texts_and_media_are_scored_landed_and_shown(
    tidemark: Tidemark, gallery: Path, recording: Path, tmp_path: Path, is_shown: bool
) -> None:
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([f"{i}: sand and tide, " * 20 for i in range(3)]))
    for month in ("2024-01", "2024-02"):
        for kind, path, source in (
            ("texts", texts, "notes"), ("media", gallery, "photos"), ("media", recording, "talks"),
        ):  # fmt: skip
            assert tidemark("import", kind, path, "--source", source, "--month", month).code == 0
    tidemark("score", "-m", "control:zstd").expect(0, out="6 cells landed\n")
    assert not is_shown or tidemark("report").code == 0

    monthly = "from internal.monthly_loss_details where month = '2024-02-01'"
    figures = {row["source"]: row for row in rows(tidemark, monthly)}
    assert [figures[name]["num_bytes"] for name in ("photos", "talks")] == [4 * 8192, 160_000]
    for source in ("photos", "talks"):
        assert figures[source]["num_chars"] == 0
        assert figures[source]["bits_per_char"] is figures[source]["nats_per_char"] is None
        assert 4 < figures[source]["bits_per_byte"] < 9
    assert figures["notes"]["bits_per_char"] > 0
    landed = rows(
        tidemark, "select source, num_chars, num_bytes, cluster_id, category from documents"
    )
    assert {row["num_chars"] for row in landed if row["source"] != "notes"} == {0}
    assert {row["cluster_id"] for row in landed if row["source"] == "photos"} == {"a.png", "b.jpg"}
    for row in rows(tidemark, "from coverage"):
        assert row["num_documents"] == row["num_documents_of_partitions"]
        assert (row["num_months"], row["num_unmeasured"]) == (2, 0)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("nothing.png --source x --undated", "there is no file or folder"),
        (". --source x", "say either --month YYYY-MM or --undated"),
        ("x --undated", "--source"),
    ],
)
def test_a_wrong_request_exits_with_2(tidemark: Tidemark, command: str, says: str) -> None:
    tidemark("import", "media", *command.split()).expect(2, says)
