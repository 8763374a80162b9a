import dataclasses
import gzip
import io
import lzma
import math
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotMeasurable
from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from models.compression_methods import COMPRESSORS, Form, load_method
from models.compressors import Compressor, cut
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tally
from tests.models.conftest import record_batch

TEXT = "早い者勝ち – the tide leaves a mark on the sand. 🙂 " * 400


def score(name, batch, protocol="default") -> pa.Table:
    return pa.concat_tables(Compressor(name).score([batch], get_protocol(protocol)))


def size_of(name, raw, form=None, is_known=True) -> int:
    file = io.BytesIO()
    encoder = load_method(name).start(file, form or Form(), len(raw) if is_known else None)
    encoder.write(raw)
    encoder.close()
    return len(file.getvalue())


def nats(num_bytes: int):
    return pytest.approx(8 * num_bytes * math.log(2), rel=1e-15)


def media_of(*contents: bytes, width: int | None = None) -> pa.RecordBatch:
    media = pa.array(contents, pa.large_binary())
    return record_batch(
        len(contents), media=media, width=pa.array([width] * len(contents), pa.int32())
    )


def patch(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 9, (64, 128))
    return (noise + np.arange(64)[:, None]).astype(np.uint8).tobytes()


def recording(num_samples: int) -> bytes:
    return (np.sin(np.arange(num_samples) / 9) * 3000).astype("<i2").tobytes()


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("control:gzip", lambda raw: gzip.compress(raw, 9)),
        ("control:zlib", lambda raw: zlib.compress(raw, 9)),
        ("control:zstd", zstandard.ZstdCompressor(level=19).compress),
        ("control:xz", lambda raw: lzma.compress(raw, preset=6)),
    ],
)
def test_a_loss_is_the_length_of_what_the_library_makes(name, compress, batch_of):
    table = validate(score(name, batch_of("abc" * 100)), LOSSES)
    (row,) = table.to_pylist()
    assert row["nll_nats"] == nats(len(compress(b"abc" * 100)))
    assert (row["num_tokens"], row["num_chars"], row["num_bytes"]) == (300, 300, 300)
    assert (row["model"], row["protocol"], row["chunk_index"]) == (name, "default", 0)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_pieces_are_as_long_as_a_window_and_add_up(name, batch_of):
    table = validate(score(name, batch_of(TEXT, "x")), LOSSES)
    rows = table.to_pylist()
    own = [row for row in rows if row["document_id"] == "d0"]
    assert [row["chunk_index"] for row in own] == list(range(len(own)))
    assert sum(row["num_bytes"] for row in own) == len(TEXT.encode())
    assert sum(row["num_chars"] for row in own) == len(TEXT)
    assert all(8_188 < row["num_bytes"] <= 8_192 for row in own[:-1])
    pieces = cut(TEXT.encode(), 8_192)
    assert [row["nll_nats"] for row in own] == [nats(size_of(name, piece)) for piece in pieces]
    assert rows[-1]["document_id"] == "d1"
    assert {row["revision"] for row in rows} == {Compressor(name).revision}
    shorter = score(name, batch_of(TEXT), "disjoint-512")
    assert shorter.num_rows == -(-len(TEXT.encode()) // 2048)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_images_are_cut_between_rows(name):
    picture = patch(1) + patch(2)[:128]
    rows = validate(score(name, media_of(picture, width=128)), LOSSES).to_pylist()
    assert [row["num_bytes"] for row in rows] == [8192, 128]
    assert rows[0]["nll_nats"] == nats(size_of(name, picture[:8192], Form(width=128)))
    assert {row["num_chars"] for row in rows} == {0}
    # A window of 2,048 bytes holds one row of 2,000, and no row is ever broken.
    for width, expected in ((2000, 2000), (3000, 3000)):
        wide = score(name, media_of(picture[: 2 * width], width=width), "disjoint-512")
        assert wide["num_bytes"].to_pylist() == [expected] * 2


@pytest.mark.parametrize("name", COMPRESSORS)
def test_recordings_are_cut_between_samples(name):
    sound = recording(5000)
    rows = validate(score(name, media_of(sound)), LOSSES).to_pylist()
    assert [row["num_bytes"] for row in rows] == [8192, 1808]
    assert [row["num_tokens"] for row in rows] == [8192, 1808]
    assert rows[1]["nll_nats"] == nats(size_of(name, sound[8192:], Form(sample_bytes=2)))


@pytest.mark.parametrize("name", ["control:png", "control:flac"])
@pytest.mark.parametrize("width", [None, 128, 0, -1])
def test_media_without_whole_rows_or_samples_are_mere_bytes(name, width):
    odd = recording(1000)[:-1]
    (row,) = score(name, media_of(odd, width=width)).to_pylist()
    assert row["nll_nats"] == nats(size_of(name, odd, Form()))


@given(st.text(), st.integers(4, 50))
def test_cuts_lie_between_characters(text, limit):
    pieces = list(cut(text.encode(), limit))
    assert "".join(piece.decode() for piece in pieces) == text
    assert all(limit - 3 <= len(piece) <= limit for piece in pieces[:-1])
    assert all(0 < len(piece) <= limit for piece in pieces)


@pytest.mark.parametrize("protocol", ["default", "solid", "whole-document"])
@pytest.mark.parametrize("name", COMPRESSORS)
def test_scoring_again_gives_the_same_bits_however_documents_are_batched(name, protocol, batch_of):
    texts = [TEXT, "short", "é", TEXT[::-1]]
    whole = score(name, batch_of(*texts), protocol)
    single = batch_of(*texts)
    parts = [single.slice(row, 1) for row in range(4)]
    again = pa.concat_tables(Compressor(name).score(parts, get_protocol(protocol)))
    assert again.equals(whole)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_threads_do_not_meet(name, batch_of):
    compressor = Compressor(name)
    batch, default = batch_of(TEXT[:9000]), get_protocol("default")
    with ThreadPoolExecutor(4) as threads:
        calls = [
            threads.submit(lambda: pa.concat_tables(compressor.score([batch] * 3, default)))
            for _ in range(8)
        ]
        tables = [call.result() for call in calls]
    assert all(table.equals(tables[0]) for table in tables)


def test_an_empty_document_is_not_measured(batch_of):
    for batch in (batch_of(""), media_of(b"", width=128), media_of(b"")):
        for protocol in ("default", "whole-document", "first-5000-chars", "solid"):
            (row,) = validate(score("control:zstd", batch, protocol), LOSSES).to_pylist()
            assert math.isnan(row["nll_nats"])
            assert (row["reason"], row["num_bytes"]) == ("no_tokens", 0)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_partition_is_one_stream(name, batch_of):
    table = validate(score(name, batch_of(TEXT, "", TEXT, "end"), "solid"), LOSSES)
    (row,) = table.to_pylist()
    raw = (TEXT + TEXT + "end").encode()
    assert row["nll_nats"] == nats(size_of(name, raw, is_known=False))
    assert (row["document_id"], row["chunk_index"], row["source"]) == ("solid", 0, "test")
    assert row["num_tokens"] == row["num_bytes"] == len(raw)
    assert row["num_chars"] == 2 * len(TEXT) + 3
    (nothing,) = Compressor(name).score([], get_protocol("solid"))
    assert nothing.num_rows == 0


@pytest.mark.parametrize("name", COMPRESSORS)
def test_partitions_of_media_are_streams_too(name):
    pictures = [patch(seed) for seed in range(3)]
    (row,) = score(name, media_of(*pictures, width=128), "solid").to_pylist()
    size = size_of(name, b"".join(pictures), Form(width=128), is_known=False)
    assert (row["nll_nats"], row["num_bytes"], row["num_chars"]) == (nats(size), 3 * 8192, 0)
    sounds = [recording(1000), recording(3)]
    (row,) = score(name, media_of(*sounds), "solid").to_pylist()
    size = size_of(name, b"".join(sounds), Form(sample_bytes=2), is_known=False)
    assert (row["nll_nats"], row["num_bytes"]) == (nats(size), 2006)


def test_a_stream_begins_anew_only_where_the_method_sees_another_form():
    batches = [media_of(patch(1), width=128), media_of(patch(2), width=64)]
    both = patch(1) + patch(2)
    sizes = {
        "control:xz": size_of("control:xz", both, is_known=False),
        "control:png": size_of("control:png", patch(1), Form(128))
        + size_of("control:png", patch(2), Form(64)),
    }
    for name, size in sizes.items():
        table = pa.concat_tables(Compressor(name).score(batches, get_protocol("solid")))
        assert table["nll_nats"].to_pylist() == [nats(size)]
    odd = media_of(recording(100), recording(100)[:-1], recording(100))
    (row,) = score("control:flac", odd, "solid").to_pylist()
    wide = size_of("control:flac", recording(100), Form(sample_bytes=2))
    assert row["nll_nats"] == nats(2 * wide + size_of("control:flac", recording(100)[:-1]))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_whole_document_is_one_piece(name, batch_of):
    rows = score(name, batch_of(TEXT, "x"), "whole-document").to_pylist()
    assert [row["num_bytes"] for row in rows] == [len(TEXT.encode()), 1]
    assert rows[0]["nll_nats"] == nats(size_of(name, TEXT.encode()))


def test_only_the_first_characters_are_scored_and_counted(batch_of):
    rows = score("control:gzip", batch_of(TEXT, "x"), "first-5000-chars").to_pylist()
    own = [row for row in rows if row["document_id"] == "d0"]
    assert sum(row["num_chars"] for row in own) == 5000
    assert sum(row["num_bytes"] for row in own) == len(TEXT[:5000].encode())
    first = next(cut(TEXT[:5000].encode(), 8_192))
    assert own[0]["nll_nats"] == nats(size_of("control:gzip", first))
    (row,) = score("control:flac", media_of(recording(9000)), "first-5000-chars").to_pylist()
    assert row["num_bytes"] == 5000


def test_protocols_are_scored_together_as_apart(batch_of):
    compressor = Compressor("control:zstd")
    protocols = [get_protocol(name) for name in ("default", "solid", "disjoint-512")]
    tallies = [Tally() for _ in protocols]
    together = list(compressor.score_together([batch_of(TEXT, "x")], protocols, tallies))
    for protocol, tables, tally in zip(
        protocols, zip(*together, strict=True), tallies, strict=True
    ):
        table = pa.concat_tables(tables)
        assert table.equals(score("control:zstd", batch_of(TEXT, "x"), protocol.name))
        assert tally.num_tokens_read == len(TEXT.encode()) + 1
        assert tally.seconds > 0


def test_facts_name_the_library():
    facts = Compressor("control:zstd").facts
    assert facts.device.startswith("cpu: ")
    assert facts.versions["zstd"] == ".".join(map(str, zstandard.ZSTD_VERSION))
    assert (facts.batch_tokens, facts.tokenizer) == (None, None)


@pytest.mark.parametrize("protocol", ["default", "solid"])
def test_a_library_that_gives_up_leaves_a_reason(protocol, batch_of):
    def start(sink, form, num_bytes):
        raise zlib.error("out of order")

    compressor = Compressor("control:zlib")
    compressor._method = dataclasses.replace(compressor._method, start=start)
    table = pa.concat_tables(compressor.score([batch_of("ab", "cd")], get_protocol(protocol)))
    rows = validate(table, LOSSES).to_pylist()
    assert all(math.isnan(row["nll_nats"]) for row in rows)
    assert {row["reason"] for row in rows} == {"compression_failed: out of order"}
    assert sum(row["num_bytes"] for row in rows) == 4


@pytest.mark.parametrize(
    "protocol",
    ["uncheatable", "lm-eval", "lm-eval-512", "own-context", "stream", "chat", "opencompass-swce"],
)
def test_protocols_of_tokens_are_refused(protocol, batch_of):
    with pytest.raises(NotMeasurable, match="compressor has none"):
        Compressor("control:gzip").scoring_id(get_protocol(protocol))
    with pytest.raises(NotMeasurable):
        score("control:gzip", batch_of("a"), protocol)


def test_the_scoring_id_follows_the_pieces():
    zstd = Compressor("control:zstd")
    names = ("default", "disjoint-512", "first-5000-chars", "whole-document", "solid")
    assert len({zstd.scoring_id(get_protocol(name)) for name in names}) == 5
    assert zstd.scoring_id(get_protocol("default")) == zstd.scoring_id(get_protocol("sliding"))


def test_another_library_makes_another_cell():
    """File names have only the beginning of a revision, which may be equal."""
    flac, default = Compressor("control:flac"), get_protocol("default")
    known = flac.scoring_id(default)
    flac.revision += "1"
    assert flac.scoring_id(default) != known
