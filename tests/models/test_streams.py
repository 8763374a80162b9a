"""Streams in blocks give what they give in one, and hold no more than a block and a window."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from core.schemas import LOSSES, validate
from core.settings import Settings
from models import blocks
from models.batches import Batches
from models.blocks import read_blocks
from models.causal_lm import CausalLM
from models.protocols import ScoringProtocol, get_protocol
from models.streams import StreamRun
from models.tally import Tally

NAMES = [
    "stream-12-5", "stream-12-11", "stream-12-1", "opencompass-swce-12-5", "opencompass-swce-9-8",
    "llm-compressive-8", "llm-compressive-sw-12-5", "llm-compressive-sw-12-5-3",
    "llm-compressive-sw-9-8-2",
]  # fmt: skip
TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away.",
    "",
    "早い者勝ち 🙂",
    "x",
    "Models read what was written before them; text goes on being written. " * 3,
]
KINDS = ["llama_folder", "startless_folder", "mamba_folder"]


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest) -> dict[str, CausalLM]:
    settings = Settings(device="cpu", dtype="float64")
    return {kind: CausalLM.load(request.getfixturevalue(kind), None, settings) for kind in KINDS}


def scored(model: CausalLM, batch: pa.RecordBatch, protocol: ScoringProtocol) -> pa.Table:
    table = validate(pa.concat_tables(model.score([batch], protocol)), LOSSES)
    return table.sort_by([("document_id", "ascending"), ("chunk_index", "ascending")])


@hypothesis_settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    texts=st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=15)), max_size=8),
    kind=st.sampled_from(KINDS),
    block_size=st.integers(1, 60),
)
@example(texts=TEXTS, kind="llama_folder", block_size=1)
@example(texts=["a"] * 40, kind="llama_folder", block_size=1)
@example(texts=["", "", "a", ""], kind="startless_folder", block_size=1)
def test_several_blocks_give_what_one_gives(texts, kind, block_size, loaded, batch_of):
    model = loaded[kind]
    for protocol in map(get_protocol, NAMES):
        one = scored(model, batch_of(*texts), protocol)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, "_BLOCK_SIZE", block_size)
            several = scored(model, batch_of(*texts), protocol)
        assert several.drop(["nll_nats"]).equals(one.drop(["nll_nats"])), protocol.name
        np.testing.assert_allclose(several["nll_nats"], one["nll_nats"], rtol=1e-9)


def run_of(model: CausalLM, backend: object, protocol: ScoringProtocol) -> StreamRun:
    text_model = model.text_model
    return StreamRun(
        model=("m", "r"),
        protocol=protocol,
        context=protocol.effective_context(model.context),
        prefix=text_model.prefix(protocol),
        text_model=text_model,
        batches=Batches("m", backend, text_model.vocabulary_size, 64),  # type: ignore[arg-type]
        tally=Tally(),
    )


class Nothing:
    """A backend that is never surprised."""

    max_batch_tokens = None

    def losses(
        self, inputs: list[object], targets: list[np.ndarray], alphabet: object = None
    ) -> list[np.ndarray]:
        return [np.zeros(len(wanted)) for wanted in targets]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["The tide leaves a mark. " * 20, "a"])
def test_a_long_stream_holds_a_block_and_a_window(name, text, loaded, batch_of, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_SIZE", 600)
    model, protocol = loaded["llama_folder"], get_protocol(name)
    run = run_of(model, Nothing(), protocol)
    batches = (batch_of(*[text] * max(1, 600 // len(text))) for _ in range(60))
    held, num_rows = [], 0
    for block in read_blocks(batches, model.text_model, [protocol]):
        num_rows += run.take(block).num_rows
        run.batches.forget()
        held.append((len(run._ids), len(run._members), len(run._held)))
    num_rows += run.finish().num_rows
    context = protocol.context or 0
    assert len(held) > 40
    assert num_rows > 1000
    assert max(ids for ids, _, _ in held) <= 2 * context + 1
    assert max(members for _, members, _ in held) <= 2 * context + 1
    assert max(rows for _, _, rows in held) <= context + 1


def test_scoring_a_stream_takes_no_more_memory_the_longer_it_is(loaded, batch_of, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_SIZE", 2000)
    model, protocol = loaded["llama_folder"], get_protocol("opencompass-swce-48-24")

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            yield batch_of("The tide leaves a mark on the sand. " * 50)

    peaks = []
    tables = model.score(batches(), protocol)
    tracemalloc.start()
    try:
        for _ in range(3):
            for _table in islice(tables, 12):
                pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
        tables.close()
    assert peaks[2] < 1.2 * peaks[1] + 2**16


def test_rows_are_what_each_window_has_of_each_document(loaded, batch_of):
    """Windows of two documents' tokens, written out; Q is a token each."""
    model = loaded["llama_folder"]

    def rows(name: str) -> list[tuple[object, ...]]:
        table = pa.concat_tables(model.score([batch_of("QQQ", "QQQQ", "QQQ")], get_protocol(name)))
        return [
            (r["document_id"], r["chunk_index"], r["num_tokens"], r["num_bytes"], r["reason"])
            for r in table.to_pylist()
        ]

    assert rows("stream-5-3") == [  # start QQQ Q / QQQ / QQQ
        ("d0", 0, 3, 3, None), ("d1", 0, 1, 1, None), ("d1", 1, 3, 3, None), ("d2", 0, 3, 3, None),
    ]  # fmt: skip
    assert rows("opencompass-swce-5-3") == [  # QQQ QQQ (the first not scored) / Q QQ, Q is the tail
        ("d0", 0, 2, 3, None), ("d1", 0, 3, 3, None), ("d1", 1, 1, 1, None), ("d2", 0, 2, 2, None),
        ("d2", 1, 0, 1, None),
    ]  # fmt: skip
    assert rows("opencompass-swce-12-3") == [
        ("d0", 0, 0, 3, "dropped"), ("d1", 0, 0, 4, "dropped"), ("d2", 0, 0, 3, "dropped"),
    ]  # fmt: skip
    # QQQ_QQ QQ_QQQ: of each piece of 6 BOS pushes the last token out; the second is dropped, and
    # the three letters of BOS are not counted, from the end on.
    assert rows("llm-compressive-6") == [
        ("d0", 0, 3, 3, None), ("d1", 0, 2, 0, None), ("d1", 1, 0, 0, None),
        ("d1", 2, 0, 2, "dropped"), ("d2", 0, 0, 4, "dropped"),
    ]  # fmt: skip
    # QQQ_QQ, then Q QQ QQ_QQQ: a window reads 6, moves on by 4, and scores 3 of these.
    assert rows("llm-compressive-sw-6-4") == [
        ("d0", 0, 2, 3, None), ("d1", 0, 3, 3, None), ("d1", 1, 1, 2, None), ("d2", 0, 2, 2, None),
        ("d2", 1, 0, 2, "dropped"),
    ]  # fmt: skip


def test_a_stream_ends_before_the_document_that_is_too_much(loaded, batch_of):
    model = loaded["llama_folder"]
    for limit, kept in ((9, 1), (10, 2), (11, 2), (10**6, 3)):
        protocol = dataclasses.replace(
            get_protocol("llm-compressive-sw-4-2"), max_stream_bytes=limit
        )
        # With the spaces: 5, 10, 12.
        table = scored(model, batch_of("QQQQQ", "QQQQ", "Q"), protocol)
        whole = [row for row in table.to_pylist() if row["chunk_index"] == 0]
        assert [row["reason"] for row in whole] == [None] * kept + ["dropped"] * (3 - kept)
        assert sum(table["num_bytes"].to_pylist()) == 10 + kept - 1  # the spaces of those kept
    assert get_protocol("llm-compressive").max_stream_bytes == 8 * 2**20


def test_a_document_after_the_end_does_not_come_back_in(loaded, batch_of):
    protocol = dataclasses.replace(get_protocol("llm-compressive-sw-4-2"), max_stream_bytes=8)
    table = scored(loaded["llama_folder"], batch_of("QQQQQ", "Q" * 50, "Q", ""), protocol)
    reasons = {
        row["document_id"]: row["reason"] for row in table.to_pylist() if row["chunk_index"] == 0
    }
    assert reasons == {"d0": None, "d1": "dropped", "d2": "dropped", "d3": "dropped"}


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_too_short_for_a_window_says_so_and_is_no_zero(name, loaded, batch_of):
    table = scored(loaded["llama_folder"], batch_of("Q", "Q"), get_protocol(name))
    rows = table.to_pylist()
    if name.startswith("stream"):  # takes what there is
        assert [row["reason"] for row in rows] == [None, None]
    else:
        assert [row["reason"] for row in rows] == ["dropped", "dropped"]
        assert all(math.isnan(row["nll_nats"]) for row in rows)


def test_a_token_without_a_loss_spoils_its_windows_and_no_other(
    llama_folder, copy_of, batch_of, settings
):
    folder = copy_of(llama_folder)
    weights = load_file(folder / "model.safetensors")
    model = CausalLM.load(str(folder), None, settings)
    [letter] = model.text_model.tokenizer.tokenize(["Z"])[0].ids
    batch = batch_of(*["Q" * 20] * 4, "Z", *["Q" * 20] * 4)
    sound = scored(model, batch, get_protocol("stream-12-5")).to_pylist()
    weights["model.embed_tokens.weight"][int(letter)] = math.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    broken = CausalLM.load(str(folder), None, settings)
    found = scored(broken, batch, get_protocol("stream-12-5")).to_pylist()
    spoilt = {row["document_id"] for row in found if row["reason"] == "non_finite"}
    assert "d5" in spoilt <= {"d3", "d4", "d5"}
    for before, after in zip(sound, found, strict=True):
        if after["reason"] is None:
            assert before["nll_nats"] == after["nll_nats"]
        assert before["num_bytes"] == after["num_bytes"]


@pytest.mark.parametrize("kind", ["llama_folder", "gpt2_folder"])
def test_a_stream_longer_than_the_model_s_context_needs_windows_that_fit(
    kind, request, settings, batch_of: Callable[..., pa.RecordBatch]
):
    model = CausalLM.load(request.getfixturevalue(kind), None, settings)
    context = model.context
    assert context is not None
    for name in ("stream", "opencompass-swce", "llm-compressive-sw"):
        found = scored(
            model, batch_of(*TEXTS * 4), get_protocol(f"{name}-{context}-{context // 2}")
        )
        assert set(found["reason"].to_pylist()) <= {None, "no_tokens", "dropped"}
