import dataclasses
import math
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from safetensors.torch import load_file, save_file

from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from core.settings import Settings
from models.scoring import blocks
from models.scoring.blocks import prefetched, read_blocks
from models.scoring.passes import StreamRun
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tally
from models.scoring.token_scorer import CausalLM
from models.scoring.windows import Batches
from tests.tiers import few

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


def run_of(model: CausalLM, engine: object, protocol: ScoringProtocol) -> StreamRun:
    text_model = model.text_model
    return StreamRun(
        model=("m", "r"),
        protocol=protocol,
        context=protocol.effective_context(model.context),
        prefix=text_model.prefix(protocol),
        text_model=text_model,
        batches=Batches("m", engine, text_model.vocabulary_size, 64),  # type: ignore[arg-type]
        tally=Tally(),
    )


class Nothing:
    max_batch_tokens = None

    def losses(
        self, inputs: list[object], targets: list[np.ndarray], alphabet: object = None
    ) -> list[np.ndarray]:
        return [np.zeros(len(wanted)) for wanted in targets]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", few(["The tide leaves a mark. " * 20, "a"], 1))
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


def test_a_token_without_a_loss_spoils_its_windows_and_no_other(folder, batch_of, settings):
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
            assert before["nll_nats"] == pytest.approx(after["nll_nats"], rel=1e-6)
        assert before["num_bytes"] == after["num_bytes"]


def test_items_come_in_order_and_all_of_them():
    assert list(prefetched(range(50))) == list(range(50))
    assert list(prefetched([])) == []
    assert list(prefetched([None, False, None])) == [None, False, None]


def test_the_next_item_is_made_while_one_is_in_use_and_no_other():
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(4):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    coming = prefetched(items())
    assert next(coming) == 0
    assert second.wait(600)  # without being asked for
    assert made == [0, 1]
    assert list(coming) == [1, 2, 3]


def test_an_error_comes_after_the_items_before_it():
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):
        for item in prefetched(items()):
            seen.append(item)
    assert seen == [0, 1]


def test_who_stops_half_way_leaves_no_thread_behind():
    before = threading.active_count()
    closed = []

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(True)

    source = items()
    coming = prefetched(source)
    assert next(coming) == 0
    coming.close()
    assert threading.active_count() == before
    source.close()
    assert closed == [True]
