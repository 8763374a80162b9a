"""The peers' protocols against values that the peers themselves gave (float32, CPU)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from core.settings import Settings
from models.causal_lm import CausalLM
from models.protocols import get_protocol

GOLDEN = Path(__file__).parents[2] / ".." / "shared" / "data" / "golden"

pytestmark = pytest.mark.skipif(
    not (GOLDEN / "golden.json").exists(), reason="needs ../shared/data/golden"
)

CASES = [
    ("uncheatable", "uncheatable_eval", "chunk1024_bosFalse"),
    ("uncheatable-512", "uncheatable_eval", "chunk512_bosFalse"),
    ("lm-eval-512", "lm_eval_rolling", "max_length512_bs1_float32"),
    ("lm-eval-512", "lm_eval_rolling", "max_length512_bs4_float32"),
    ("lm-eval-1024", "lm_eval_rolling", "max_length1024_bs4_float32"),
    ("lm-eval-no-bos-512", "lm_eval_rolling", "max_length512_bs4_float32_add_bos_token=False"),
]


@pytest.fixture(scope="module")
def model() -> CausalLM:
    settings = Settings(device="cpu", dtype="float32")
    return CausalLM.load(str(GOLDEN / "llama"), None, settings)


@pytest.fixture(scope="module")
def documents(batch_of) -> pa.RecordBatch:
    lines = (GOLDEN / "docs.jsonl").read_text(encoding="utf-8").split("\n")
    return batch_of(*(json.loads(line)["text"] for line in lines if line))


@pytest.mark.parametrize(("protocol", "peer", "run"), CASES)
def test_each_document_agrees_with_the_peer(protocol, peer, run, model, documents):
    golden = json.loads((GOLDEN / "golden.json").read_text())["peers"][peer]["llama"][run]
    losses = pa.concat_tables(model.score([documents], get_protocol(protocol)))
    found = losses.group_by("document_id", use_threads=False).aggregate(
        [(name, "sum") for name in ("nll_nats", "num_tokens", "num_chars", "num_bytes")]
    )
    assert found.num_rows == len(golden["per_doc"]) == 20
    for row, expected in zip(found.to_pylist(), golden["per_doc"], strict=True):
        assert row["nll_nats_sum"] == pytest.approx(expected["nll"], rel=1e-5)
        assert row["num_tokens_sum"] == expected["scored_tokens"]
        assert row["num_chars_sum"] == expected["chars"]
        assert row["num_bytes_sum"] == expected["bytes"]


def test_the_default_protocol_charges_what_a_whole_pass_charges(model, documents):
    """Every document is shorter than a window, so sliding and rolling windows charge the same."""
    totals = [
        pa.concat_tables(model.score([documents], get_protocol(name)))["nll_nats"].to_numpy().sum()
        for name in ("default", "sliding", "lm-eval-no-bos")
    ]
    assert totals[1:] == pytest.approx(totals[:1] * 2, rel=1e-6)
