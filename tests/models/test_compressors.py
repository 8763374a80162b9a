from __future__ import annotations

import gzip
import lzma
import math

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from core.errors import NotMeasurable, UnknownName
from core.schemas import LOSSES, validate
from models.compressors import COMPRESSORS, Compressor, cut
from models.protocols import get_protocol

TEXT = "早い者勝ち – the tide leaves a mark on the sand. 🙂 " * 400


def score(name, batch, protocol="default") -> pa.Table:
    return pa.concat_tables(Compressor(name).score([batch], get_protocol(protocol)))


@pytest.mark.parametrize(
    ("name", "decompress"),
    [
        ("control:gzip", gzip.decompress),
        ("control:zstd", lambda data: zstandard.ZstdDecompressor().decompress(data)),
        ("control:xz", lzma.decompress),
    ],
)
def test_a_loss_is_the_length_of_what_decompresses_to_the_text(name, decompress, batch_of):
    table = validate(score(name, batch_of("abc" * 100)), LOSSES)
    squeezed = {
        "control:gzip": lambda raw: gzip.compress(raw, 9),
        "control:zstd": zstandard.ZstdCompressor(level=19).compress,
        "control:xz": lambda raw: lzma.compress(raw, preset=6),
    }[name](b"abc" * 100)
    assert decompress(squeezed) == b"abc" * 100
    (row,) = table.to_pylist()
    assert row["nll_nats"] == pytest.approx(8 * len(squeezed) * math.log(2), rel=1e-15)
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
    assert rows[-1]["document_id"] == "d1"
    assert {row["revision"] for row in rows} == {Compressor(name).revision}
    shorter = score(name, batch_of(TEXT), "disjoint-512")
    assert shorter.num_rows == -(-len(TEXT.encode()) // 2048)


@given(st.text(), st.integers(4, 50))
def test_cuts_lie_between_characters(text, limit):
    pieces = list(cut(text.encode(), limit))
    assert "".join(piece.decode() for piece in pieces) == text
    assert all(limit - 3 <= len(piece) <= limit for piece in pieces[:-1])
    assert all(0 < len(piece) <= limit for piece in pieces)


def test_scoring_again_gives_the_same_bits_however_documents_are_batched(batch_of):
    texts = [TEXT, "short", TEXT[::-1]]
    for name in COMPRESSORS:
        whole = score(name, batch_of(*texts))
        single = batch_of(*texts)
        parts = [single.slice(row, 1) for row in range(3)]
        again = pa.concat_tables(Compressor(name).score(parts, get_protocol("default")))
        assert again.equals(whole)


def test_an_empty_text_is_not_measured(batch_of):
    (row,) = validate(score("control:zstd", batch_of("")), LOSSES).to_pylist()
    assert math.isnan(row["nll_nats"])
    assert (row["reason"], row["num_bytes"]) == ("no_tokens", 0)


@pytest.mark.parametrize("protocol", ["uncheatable", "lm-eval", "lm-eval-512"])
def test_protocols_of_tokens_are_refused(protocol, batch_of):
    with pytest.raises(NotMeasurable, match="compressor has none"):
        Compressor("control:gzip").scoring_id(get_protocol(protocol))
    with pytest.raises(NotMeasurable):
        score("control:gzip", batch_of("a"), protocol)


def test_the_scoring_id_follows_the_pieces():
    zstd = Compressor("control:zstd")
    ids = {zstd.scoring_id(get_protocol(name)) for name in ("default", "disjoint-512")}
    assert len(ids) == 2
    with pytest.raises(UnknownName, match="control:xz"):
        Compressor("zstd")
