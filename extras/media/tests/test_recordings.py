import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from core.errors import ItemUnavailable
from crawlers.pieces import SAMPLE_RATE
from extras.media import recordings
from extras.media.recordings import read_segments

Samples = npt.NDArray[Any]


def _noise(seconds: float, rate: int = SAMPLE_RATE, channels: int = 1) -> Samples:
    rng = np.random.default_rng(0)
    return rng.integers(-(2**15), 2**15, (int(seconds * rate), channels), dtype=np.int16)


def _tone(seconds: float, rate: int, hertz: float = 440.0) -> npt.NDArray[np.float64]:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def _save(path: Path, samples: Samples, rate: int = SAMPLE_RATE, **options: Any) -> Path:
    soundfile.write(path, samples, rate, **options)
    return path


def _pcm(path: Path) -> npt.NDArray[np.int16]:
    return np.frombuffer(b"".join(piece.data for piece in read_segments(path)), dtype="<i2")


def _reason(path: Path) -> str:
    with pytest.raises(ItemUnavailable) as caught:
        list(read_segments(path))
    return caught.value.reason


@pytest.mark.parametrize("format_", ["WAV", "WAVEX", "FLAC", "RF64", "AIFF"])
def test_what_has_the_right_form_comes_back_bit_for_bit(tmp_path: Path, format_: str) -> None:
    samples = _noise(2.5)
    path = _save(tmp_path / "a", samples, format=format_)
    if format_ in {"RF64", "AIFF"}:
        assert _reason(path) == "unknown_format"
    else:
        assert (_pcm(path) == samples[:, 0]).all()


@pytest.mark.parametrize(
    ("seconds", "lengths"),
    [
        (1, [1]), (3.5, [3.5]), (4, [4]), (4.9, [4.9]), (5, [4, 1]), (8.999, [4, 4.999]),
        (9, [4, 4, 1]),
    ],
)  # fmt: skip
def test_segments_of_four_seconds_and_a_last_one(
    tmp_path: Path, seconds: float, lengths: list[float]
) -> None:
    samples = _noise(seconds)
    pieces = list(read_segments(_save(tmp_path / "a.wav", samples)))
    assert [len(piece.data) / 2 / SAMPLE_RATE for piece in pieces] == pytest.approx(lengths)
    assert [piece.index for piece in pieces] == list(range(len(lengths)))
    assert [piece.place for piece in pieces] == [{"begin_s": 4 * i} for i in range(len(lengths))]
    assert b"".join(piece.data for piece in pieces) == samples.astype("<i2").tobytes()


def test_channels_are_averaged(tmp_path: Path) -> None:
    samples = _noise(1.5, channels=3)
    expected = np.rint(samples.astype(float).mean(axis=1))
    assert (_pcm(_save(tmp_path / "a.wav", samples)) == expected).all()


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_other_sample_rates_are_resampled(tmp_path: Path, rate: int) -> None:
    pcm = _pcm(_save(tmp_path / "a.wav", _tone(3, rate), rate, subtype="FLOAT"))
    expected = _tone(3, SAMPLE_RATE) * 2**15
    assert len(pcm) == len(expected)
    inner = slice(SAMPLE_RATE // 2, -SAMPLE_RATE // 2)  # away from the filter's ends
    assert np.abs(pcm[inner] - expected[inner]).max() < 1


def test_what_16_khz_cannot_hold_is_filtered_out(tmp_path: Path) -> None:
    pcm = _pcm(_save(tmp_path / "a.wav", _tone(2, 48_000, hertz=9_000.0), 48_000))
    assert np.abs(pcm[SAMPLE_RATE // 4 : -SAMPLE_RATE // 4]).max() <= 1


def test_the_size_of_blocks_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _save(tmp_path / "a.wav", _noise(2, 44_100, channels=2), 44_100)
    whole = _pcm(path)
    monkeypatch.setattr(recordings, "_BLOCK_SAMPLES", 1000)
    monkeypatch.setattr(recordings, "_SPOOL_BYTES", 100)
    assert (_pcm(path) == whole).all()


@pytest.mark.parametrize("format_", ["OGG", "MP3"])
@pytest.mark.parametrize("rate", [16_000, 44_100])
def test_lossy_formats_are_decoded(tmp_path: Path, format_: str, rate: int) -> None:
    path = _save(tmp_path / "a", _tone(5, rate), rate, format=format_)
    pcm = _pcm(path)
    assert len(pcm) == 5 * SAMPLE_RATE
    inner = slice(SAMPLE_RATE, -SAMPLE_RATE)
    assert np.abs(pcm[inner] - _tone(5, SAMPLE_RATE)[inner] * 2**15).max() < 2000


def test_over_full_scale_is_clipped_and_what_is_no_number_is_damage(tmp_path: Path) -> None:
    samples = np.full(2 * SAMPLE_RATE, 1e300)
    samples[::2] = -3.0
    samples[1001] = np.inf
    assert set(_pcm(_save(tmp_path / "a.wav", samples, subtype="DOUBLE"))) == {-(2**15), 2**15 - 1}
    samples[1000] = np.nan
    assert _reason(_save(tmp_path / "a.wav", samples, subtype="DOUBLE")) == "damaged"


def test_recordings_that_are_too_short_slow_or_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _reason(_save(tmp_path / "a.wav", _noise(0.99))) == "too_short"
    assert _reason(_save(tmp_path / "b.wav", _noise(0), format="WAV")) == "too_short"
    assert _reason(_save(tmp_path / "c.wav", _noise(3, 4000), 4000)) == "low_quality"
    monkeypatch.setattr(recordings, "MAX_S", 5)
    assert _reason(_save(tmp_path / "d.flac", np.zeros(6 * SAMPLE_RATE))) == "too_long"


@pytest.mark.parametrize("format_", ["WAV", "FLAC", "MP3"])
def test_a_recording_that_ends_early_is_damaged(tmp_path: Path, format_: str) -> None:
    path = _save(tmp_path / "a", _noise(5), format=format_)
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        assert _reason(path) == "damaged"


def test_a_length_that_was_not_known_when_writing(tmp_path: Path) -> None:
    samples = _noise(2)
    path = _save(tmp_path / "a.wav", samples)
    data = bytearray(path.read_bytes())
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"  # as writers to a pipe leave it
    path.write_bytes(data)
    assert (_pcm(path) == samples[:, 0]).all()


def test_an_mp3_without_an_index(tmp_path: Path) -> None:
    """Its length is guessed from the first frames: wrong where the bit rate changes."""
    sound = np.concatenate([_tone(10, 44_100), np.random.default_rng(0).normal(0, 0.2, 441_000)])
    for mode in ("CONSTANT", "VARIABLE"):
        options = {"bitrate_mode": mode, "compression_level": 0.3}
        path = _save(tmp_path / "a.mp3", sound, 44_100, **options)
        data = path.read_bytes()
        path.write_bytes(data[data.index(data[:2], 4) :])  # the first frame holds the index
        if mode == "CONSTANT":
            assert abs(len(_pcm(path)) / SAMPLE_RATE - 20) < 0.1
        else:
            assert _reason(path) == "damaged"


@pytest.mark.parametrize("format_", ["WAV", "FLAC", "OGG", "MP3"])
def test_damage_is_found_or_harmless(tmp_path: Path, format_: str) -> None:
    rng = np.random.default_rng(0)
    path = _save(tmp_path / "a", _tone(1.5, SAMPLE_RATE), format=format_)
    whole = path.read_bytes()
    num_damaged = 0
    for _ in range(60):
        broken = bytearray(whole)
        for position in rng.integers(4, len(whole) if rng.integers(2) else 60, 4):
            broken[position] = rng.integers(256)
        path.write_bytes(broken)
        try:
            _pcm(path)
        except ItemUnavailable as error:
            assert error.reason in {"damaged", "too_short", "low_quality", "unknown_format"}
            num_damaged += 1
    assert num_damaged > 5


@pytest.mark.long
def test_memory_does_not_grow_with_the_length(tmp_path: Path) -> None:
    def peak(seconds: int) -> int:
        path = _save(tmp_path / "a.flac", np.zeros(seconds * 48_000), 48_000)
        tracemalloc.start()
        num_pieces = sum(1 for _ in read_segments(path))
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert num_pieces == seconds // 4
        return high

    assert peak(1200) < peak(600) + 2**20  # spooled data is on disk by then
