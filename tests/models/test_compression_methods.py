import gzip
import io
import lzma
import random
import sys
import zlib

import brotli
import numpy as np
import psutil
import pyppmd
import pytest
import soundfile
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, features

from core.errors import ModelLoadError, UnknownName
from models.catalogue import CONTROLS
from models.compression_methods import COMPRESSORS, ByteCounter, Form, load_method
from tests.tiers import few

TEXT = "早い者勝ち – the tide leaves a mark on the sand. 🙂 ".encode() * 400


def encode(name: str, pieces: list[bytes], form: Form, num_bytes: int | None = None) -> bytes:
    sink = io.BytesIO()
    encoder = load_method(name).start(sink, form, num_bytes)
    for piece in pieces:
        encoder.write(piece)
    encoder.close()
    return sink.getvalue()


def decode_images(code: bytes) -> bytes:
    raw = b""
    while code:
        end = 8
        while code[end + 4 : end + 8] != b"IEND":
            end += 12 + int.from_bytes(code[end : end + 4], "big")
        with Image.open(io.BytesIO(code[: end + 12])) as image:
            assert image.mode == "L"
            raw += image.tobytes()
        code = code[end + 12 :]
    return raw


def decode_recording(code: bytes) -> bytes:
    with soundfile.SoundFile(io.BytesIO(code)) as file:
        assert (file.samplerate, file.channels) == (16_000, 1)
        samples, is_wide = file.read(dtype="int16"), file.subtype == "PCM_16"
    if is_wide:
        return samples.astype("<i2").tobytes()
    return ((samples >> 8) + 128).astype(np.uint8).tobytes()


DECODERS = {
    "control:gzip": gzip.decompress,
    "control:zlib": zlib.decompress,
    "control:zstd": lambda code: zstandard.ZstdDecompressor().decompressobj().decompress(code),
    "control:xz": lzma.decompress,
    "control:brotli": brotli.decompress,
    "control:ppmd": lambda code: pyppmd.Ppmd8Decoder(12, 2**26).decode(code, -1),
    "control:png": decode_images,
    "control:flac": decode_recording,
}

_PATTERNS = st.tuples(st.binary(min_size=1, max_size=9), st.integers(1, 900))
BYTES = st.one_of(
    st.binary(min_size=1, max_size=3000),
    st.text(min_size=1, max_size=2000).map(str.encode),
    _PATTERNS.map(lambda pattern: pattern[0] * pattern[1]),
)


def forms_of(raw: bytes) -> list[Form]:
    rows = next((rows for rows in (7, 5, 3, 2) if len(raw) % rows == 0), 1)
    audio = [Form(sample_bytes=2)] if len(raw) % 2 == 0 else []
    return [Form(), Form(width=len(raw) // rows), *audio]


@pytest.mark.long
@pytest.mark.parametrize("name", COMPRESSORS)
@given(raw=BYTES, is_known=st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_comes_out_decodes_to_what_went_in(name: str, raw: bytes, is_known: bool) -> None:
    for form in forms_of(raw):
        code = encode(name, [raw], form, len(raw) if is_known else None)
        assert DECODERS[name](code) == raw


@pytest.mark.long
@pytest.mark.parametrize("name", COMPRESSORS)
def test_any_length_comes_back(name: str) -> None:
    for size in (*range(1, 34), 4095, 4096, 8192, 65_535, 65_536, 300_001):
        noise = np.random.default_rng(size).bytes(size)
        for raw in (noise, bytes(size), b"\xff" * size, (TEXT * 13)[:size]):
            if size > 10_000 and name == "control:brotli" and raw == noise:
                continue  # seconds
            form = Form(sample_bytes=2 - size % 2)
            assert DECODERS[name](encode(name, [raw], form, size)) == raw, size


@pytest.mark.long
@pytest.mark.parametrize("name", COMPRESSORS)
@given(pieces=st.lists(BYTES, min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_a_stream_decodes_to_its_pieces_one_after_another(name: str, pieces: list[bytes]) -> None:
    assert DECODERS[name](encode(name, pieces, Form())) == b"".join(pieces)


@pytest.mark.parametrize("seed", [8, 10, 14, 15, 22, 28])
def test_ppmd_loses_nothing_where_its_buffer_ends(seed: int) -> None:
    """pyppmd 1.3.1 fails to decode these inputs if it gets them at once."""
    raw = random.Random(seed).randbytes(100_000)
    assert DECODERS["control:ppmd"](encode("control:ppmd", [raw], Form())) == raw


@pytest.mark.parametrize("width", [None, 128, 5_000_000])
def test_pictures_of_many_bytes_are_several_images_of_whole_rows(width: int | None) -> None:
    rows = 3 if width == 5_000_000 else 100_000
    raw = (np.arange(rows * (width or 128)) // 64).astype(np.uint8).tobytes()
    code = encode("control:png", [raw[:1_000_000], raw[1_000_000:]], Form(width=width))
    assert code.count(b"IHDR") == (3 if rows == 3 else 4)
    assert decode_images(code) == raw


def test_every_value_of_a_sample_comes_back() -> None:
    wide = np.arange(-(2**15), 2**15).astype("<i2").tobytes()
    assert decode_recording(encode("control:flac", [wide], Form(sample_bytes=2))) == wide
    assert decode_recording(encode("control:flac", [bytes(range(256))], Form())) == bytes(
        range(256)
    )


def test_each_method_gains_by_what_it_is_made_for() -> None:
    generator = np.random.default_rng(0)
    steps = generator.integers(-1, 2, (64, 128))  # each row is like the one above it
    steps[0] = generator.integers(80, 160, 128)
    picture = steps.cumsum(axis=0).astype(np.uint8).tobytes()
    rows, row = (len(encode("control:png", [picture], Form(width))) for width in (128, None))
    assert rows < 0.6 * row
    wave = (np.sin(np.arange(16_000) / 20) * 9000).astype("<i2").tobytes()
    sound = len(encode("control:flac", [wave], Form(sample_bytes=2)))
    assert sound < 0.6 * len(encode("control:flac", [wave], Form()))
    assert sound < 0.6 * len(encode("control:gzip", [wave], Form()))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_counting_agrees_with_what_is_written_however_often(name: str) -> None:
    form = Form(sample_bytes=2)
    codes = {encode(name, [TEXT], form, len(TEXT)) for _ in range(3)}
    assert len(codes) == 1
    counter = ByteCounter()
    encoder = load_method(name).start(counter, form, len(TEXT))
    encoder.write(TEXT)
    encoder.close()
    assert counter.num_bytes == len(codes.pop())


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 2), st.binary(min_size=1, max_size=9)))
)
def test_a_counter_is_as_long_as_a_file(steps: list[tuple[int, int, bytes]]) -> None:
    counter, file = ByteCounter(), io.BytesIO()
    for offset, whence, data in steps:
        assert counter.seek(offset, whence) == file.seek(offset, whence)
        assert counter.write(data) == file.write(data)
        assert counter.tell() == file.tell()
    assert counter.num_bytes == len(file.getvalue())


@pytest.mark.long
@pytest.mark.parametrize("name", few(["control:zlib", "control:png", "control:flac"], 1))
def test_memory_does_not_grow_with_a_stream(name: str) -> None:
    process = psutil.Process()
    piece = np.random.default_rng(0).bytes(2**20)
    encoder = load_method(name).start(ByteCounter(), Form(), None)
    for _ in range(6):
        encoder.write(piece)
    before = process.memory_info().rss
    for _ in range(24):
        encoder.write(piece)
    assert process.memory_info().rss - before < 8 * 2**20
    encoder.close()


def test_revisions_name_what_does_the_work() -> None:
    revisions = {name: load_method(name).revision for name in COMPRESSORS}
    assert revisions["control:zlib"] == zlib.ZLIB_RUNTIME_VERSION
    assert revisions["control:brotli"] == brotli.__version__
    assert revisions["control:ppmd"] == f"pyppmd-{pyppmd.__version__}"
    assert revisions["control:png"].endswith(f"-zlib-{features.version('zlib')}")
    assert revisions["control:flac"].startswith(f"libsndfile-{soundfile.__libsndfile_version__}")
    assert revisions["control:flac"].split("-flac-")[1][0].isdigit()


def test_the_catalogue_has_every_method() -> None:
    assert CONTROLS == COMPRESSORS
    with pytest.raises(UnknownName, match="control:xz"):
        load_method("xz")


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("control:brotli", "brotli", "brotli"),
        ("control:ppmd", "pyppmd", "pyppmd"),
        ("control:png", "PIL", "pillow"),
        ("control:flac", "soundfile", "soundfile"),
    ],
)
def test_a_missing_library_is_named(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(ModelLoadError, match=f"{name} cannot be used.*pip install {package}"):
        load_method(name)


def test_a_library_without_the_codec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundfile, "available_formats", lambda: {"WAV": "Microsoft"})
    with pytest.raises(ModelLoadError, match="built without FLAC.*libsndfile1"):
        load_method("control:flac")
    monkeypatch.setattr(features, "check", lambda feature: False)
    with pytest.raises(ModelLoadError, match="built without zlib.*pip install pillow"):
        load_method("control:png")
