from collections import Counter
from pathlib import Path

import pytest

from core.month import Month
from crawlers.contract import Medium
from extras.media.recordings import read_segments
from extras.media.simulator import commons as simulated
from simulator.world import World
from tests.crawlers.conftest import Crawl, reasons_of

SITE_KINDS = simulated.SITE_KINDS
MONTH = Month("2024-02")
WORLD = World(5, MONTH - 1, MONTH)
RECORDINGS = [file for file in simulated.Uploads(WORLD).of_month(MONTH) if not file.is_picture]
ORDINARY = [file for file in RECORDINGS if not file.oddity]


def test_the_segments_are_those_of_an_import(crawl: Crawl, tmp_path: Path) -> None:
    found = {item.native_id: item for item in crawl() if isinstance(item, Medium)}
    assert {item.cluster_id for item in found.values()} == {file.title for file in ORDINARY}
    for file in ORDINARY[:3]:
        (tmp_path / "sound").write_bytes(file.body)
        for piece in read_segments(tmp_path / "sound"):
            item = found[f"{file.title}#{piece.index}"]
            assert (item.data, item.kind) == (piece.data, "audio")
            assert item.extra["begin_s"] == piece.place["begin_s"]


def test_at_most_four_segments_of_a_recording_are_kept(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extras.media.recordings.SEGMENT_S", 1)
    kept = Counter(item.cluster_id for item in crawl() if isinstance(item, Medium))
    assert set(kept.values()) == {4}


def test_words_and_films_are_not_taken_and_special_files_are_dropped(crawl: Crawl) -> None:
    reasons = reasons_of(crawl())
    of = {file.oddity: file.title for file in RECORDINGS}
    assert reasons[of["cut_off"]] == "damaged"
    assert reasons[of["gone"]] == "deleted"
    assert reasons[f"{of['silent']}#0"] == "low_quality"
    assert not any(of[name] in reasons for name in ("word", "film"))
