"""The peers' protocols: against the peers' output, and against plain versions of their algorithms.

The golden values were made by running the peers (float32, CPU). lm-eval's run in bfloat16 is not
among the cases: it sums in bfloat16, which alone is off by up to 0.25 %. Ours sums in float32 or
better for any weights; in float32 the two agree.
"""

import json
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.settings import Settings
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import UNCHEATABLE_STARTS, get_protocol
from models.scoring.token_scorer import CausalLM
from reports.site.pages import methods
from tests.models.conftest import BatchOf, Plain
from tests.tiers import few

GOLDEN = Path(__file__).parents[3] / ".." / "shared" / "data" / "golden"

needs_golden = pytest.mark.skipif(
    not (GOLDEN / "golden.json").exists(), reason="needs ../shared/data/golden"
)

DOCUMENT_RUNS = [
    ("uncheatable", "uncheatable_eval", "chunk1024_bosFalse"),
    ("uncheatable-512", "uncheatable_eval", "chunk512_bosFalse"),
    ("uncheatable-bos-512", "uncheatable_eval", "chunk512_bosTrue"),
    ("lm-eval-512", "lm_eval_rolling", "max_length512_bs1_float32"),
    ("lm-eval-512", "lm_eval_rolling", "max_length512_bs4_float32"),
    ("lm-eval-1024", "lm_eval_rolling", "max_length1024_bs4_float32"),
    ("lm-eval-no-bos-512", "lm_eval_rolling", "max_length512_bs4_float32_add_bos_token=False"),
]
STREAM_RUNS = [
    ("opencompass-swce-256-64", "opencompass_swce", "block256_stride64_bs4"),
    ("opencompass-swce", "opencompass_swce", "block1900_stride512_bs2"),
    ("opencompass-swce", "opencompass_swce", "block1900_stride512_bs4"),
    ("opencompass-swce-256-64", "llm_compression_intelligence", "block256_stride64_bs4"),
    ("opencompass-swce", "llm_compression_intelligence", "block1900_stride512_bs1"),
    ("opencompass-swce", "llm_compression_intelligence", "block1900_stride512_bs4"),
    ("llm-compressive-512", "llm_compressive", "ctx512_strideNone_bs4"),
    ("llm-compressive-sw-512-128-4", "llm_compressive", "ctx512_stride128_bs4"),
    ("llm-compressive-sw-512-128", "llm_compressive", "ctx512_stride128_bs1"),
    ("llm-compressive-sw", "llm_compressive", "ctx2048_stride512_bs1"),
]

FIGURES = ("nll_nats", "num_tokens", "num_chars", "num_bytes")


@pytest.fixture(scope="module")
def golden_model() -> CausalLM:
    settings = Settings(device="cpu", dtype="float32")
    return CausalLM.load(str(GOLDEN / "llama"), None, settings)


@pytest.fixture(scope="module")
def scored(golden_model: CausalLM, batch_of: BatchOf) -> Callable[[str], pa.Table]:
    documents = batch_of(*(each["text"] for each in golden_documents()))

    def score(name: str) -> pa.Table:
        return pa.concat_tables(golden_model.score([documents], get_protocol(name)))

    return cache(score)


def golden_documents() -> list[dict[str, Any]]:
    lines = (GOLDEN / "docs.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def golden_run(peer: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "golden.json").read_text())
    return found["peers"][peer]["llama"][run]  # type: ignore[no-any-return]


def sums(losses: pa.Table) -> dict[str, float]:
    kept = losses.filter(pc.is_finite(losses["nll_nats"]))
    return {name: pc.sum(kept[name]).as_py() or 0 for name in FIGURES}


@needs_golden
def test_every_run_of_a_peer_that_did_not_crash_is_compared():
    peers = json.loads((GOLDEN / "golden.json").read_text())["peers"]
    ran = {
        (peer, run)
        for peer, models in peers.items()
        for run, figures in models["llama"].items()
        if "error" not in figures and "bfloat16" not in run
    }
    assert {(peer, run) for _, peer, run in DOCUMENT_RUNS + STREAM_RUNS} == ran


@needs_golden
@pytest.mark.parametrize(("protocol", "peer", "run"), DOCUMENT_RUNS)
def test_each_document_agrees_with_the_peer(protocol, peer, run, scored):
    golden = golden_run(peer, run)
    losses = scored(protocol)
    assert len(golden["per_doc"]) == len(golden_documents()) == 20
    for index, expected in enumerate(golden["per_doc"]):
        found = sums(losses.filter(pc.equal(losses["document_id"], f"d{index}")))
        assert found["nll_nats"] == pytest.approx(expected["nll"], rel=1e-5)
        assert found["num_tokens"] == expected["scored_tokens"]
        assert found["num_chars"] == expected["chars"]
        assert found["num_bytes"] == expected["bytes"]


@needs_golden
@pytest.mark.parametrize(
    ("protocol", "peer", "run"), [case for case in DOCUMENT_RUNS if case[1] == "uncheatable_eval"]
)
def test_corpus_figures_are_those_of_uncheatable(protocol, peer, run, scored):
    """Its corpus figures are means over documents; the rate is the ratio of means."""
    golden, found = golden_run(peer, run)["corpus"], sums(scored(protocol))
    count = golden["sample_count"]
    assert found["nll_nats"] / count == pytest.approx(golden["neg_log_prob_sum"], rel=1e-5)
    assert found["num_chars"] / count == golden["avg character count"]
    assert found["num_bytes"] / count == golden["avg bytes"]
    rate = found["nll_nats"] / found["num_bytes"] / math.log(2) * 12.5
    assert rate == pytest.approx(golden["compression_rate"], rel=1e-5)


@needs_golden
@pytest.mark.parametrize(
    ("protocol", "peer", "run"), [case for case in DOCUMENT_RUNS if case[1] == "lm_eval_rolling"]
)
def test_corpus_figures_are_those_of_lm_eval(protocol, peer, run, scored):
    golden, found = golden_run(peer, run)["corpus"], sums(scored(protocol))
    nats_per_byte = found["nll_nats"] / found["num_bytes"]
    words = sum(len(re.split(r"\s+", each["text"])) for each in golden_documents())
    assert found["nll_nats"] == pytest.approx(golden["nll"], rel=1e-5)
    assert nats_per_byte / math.log(2) == pytest.approx(golden["bits_per_byte"], rel=1e-5)
    assert math.exp(nats_per_byte) == pytest.approx(golden["byte_perplexity"], rel=1e-5)
    assert math.exp(found["nll_nats"] / words) == pytest.approx(golden["word_perplexity"], rel=1e-5)


@pytest.mark.long
@needs_golden
@pytest.mark.parametrize(("protocol", "peer", "run"), few(STREAM_RUNS, 8))
def test_each_stream_agrees_with_the_peer(protocol, peer, run, scored):
    golden, losses = golden_run(peer, run), scored(protocol)
    found = sums(losses)
    bits = found["nll_nats"] / math.log(2)
    assert found["nll_nats"] == pytest.approx(golden["nll"], rel=1e-5)
    assert bits / found["num_chars"] == pytest.approx(golden["bpc"], rel=1e-5)
    counts = {
        "num_tokens": golden.get("scored_tokens"),
        "num_bytes": golden.get("num_bytes"),
        "num_chars": next(
            golden[key] for key in ("num_chars", "total_chr_num", "character_num") if key in golden
        ),
    }
    for name, expected in counts.items():
        assert expected in (None, found[name]), name
    if "bpb" in golden:
        assert bits / found["num_bytes"] == pytest.approx(golden["bpb"], rel=1e-5)
        assert bits / 8 / found["num_bytes"] == pytest.approx(golden["ratio"], rel=1e-5)
    assert losses.group_by(["document_id", "chunk_index"]).aggregate([]).num_rows == len(losses)


# Of these the tests above score the documents.
SCORED = {case[0] for case in [*DOCUMENT_RUNS, *STREAM_RUNS[:8]]}


@pytest.mark.long
@needs_golden
@pytest.mark.parametrize("are_all", few([False, True], 1))
def test_the_recorded_agreement_is_what_is_measured(are_all, scored):
    """The site shows the record: ``reports/site/data/peers.csv``."""
    rows = json.loads(methods.recorded("peers"))
    chosen = [row for row in rows if are_all or row["protocol"] in SCORED]
    assert len(chosen) > 5
    for row in chosen:
        golden, losses = golden_run(row["peer"], row["setting"]), scored(row["protocol"])
        pairs = [(sums(losses), golden)]
        if "per_doc" in golden:
            parts = [losses.filter(pc.equal(losses["document_id"], f"d{i}")) for i in range(20)]
            pairs = list(zip(map(sums, parts), golden["per_doc"], strict=True))
        difference = max(abs(found["nll_nats"] / known["nll"] - 1) for found, known in pairs)
        assert float(row["difference"]) == pytest.approx(difference, abs=1e-6)


@pytest.mark.long
@needs_golden
def test_the_tail_that_opencompass_drops_is_counted_without_a_loss(scored):
    """The last tokens are in no window, but their characters count."""
    golden = golden_run("opencompass_swce", "block1900_stride512_bs4")
    losses = scored("opencompass-swce")
    assert golden["stream_tokens"] == golden["scored_tokens"] + golden["dropped_tail_tokens"] + 1
    assert sums(losses)["num_tokens"] == golden["stream_tokens"] - 1 - golden["dropped_tail_tokens"]
    assert losses["num_tokens"].to_pylist()[-1] == 0 < losses["num_chars"].to_pylist()[-1]
    assert losses["reason"].null_count == len(losses)


@pytest.mark.long
@needs_golden
def test_the_default_protocol_charges_what_a_whole_pass_charges(golden_model, batch_of):
    """Every document is shorter than a window, so sliding and rolling windows charge the same."""
    documents = batch_of(*(each["text"] for each in golden_documents()[:4]))
    totals = []
    for name in ("default", "sliding", "lm-eval-no-bos"):
        losses = pa.concat_tables(golden_model.score([documents], get_protocol(name)))
        totals.append(sums(losses)["nll_nats"])
    assert totals[1:] == pytest.approx(totals[:1] * 2, rel=1e-6)


Peer = Callable[[Plain, list[str], int, int], list[float]]


def default(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    nats = []
    for text in texts:
        ids = model.ids(text, False)
        if model.start is None:
            for begin in range(0, len(ids), context):
                nats += [math.log(len(model.tokenizer)), *model.nats(ids[begin : begin + context])]
        else:
            for begin in range(0, len(ids), context - 1):
                nats += model.nats([model.start, *ids[begin : begin + context - 1]])
    return nats


def sliding(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    nats: list[float] = []
    for text in texts:
        nats += slide(model, model.ids(text, False), context, stride)
    return nats


def slide(model: Plain, ids: list[int], context: int, stride: int) -> list[float]:
    if not ids:
        return []
    start = [] if model.start is None else [model.start]
    covered = context - len(start)
    nats = [] if start else [math.log(len(model.tokenizer))]
    nats += model.nats([*start, *ids[:covered]])
    while covered < len(ids):
        end = min(covered + stride, len(ids))
        nats += model.nats(ids[end - context : end])[-(end - covered) :]
        covered = end
    return nats


def stream(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    return slide(
        model, [token for text in texts for token in model.ids(text, False)], context, stride
    )


def uncheatable(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    nats = []
    for text in texts:
        ids = model.ids(text, True)
        for begin in range(0, len(ids), context):
            nats += model.nats(ids[begin : begin + context])
    return nats


def uncheatable_bos(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    bos = model.ids(model.tokenizer.bos_token, True)
    step = context - len(bos)
    nats = []
    for text in texts:
        ids = model.ids(text, True)
        for begin in range(0, len(ids), step):
            nats += model.nats([*bos, *ids[begin : begin + step]])[len(bos) :]
    return nats


def uncheatable_start(start: str, replaces: bool = False) -> Peer:
    """Return the algorithm of Uncheatable Eval's evaluator of late 2025 for a start-token mode."""

    def score(model: Plain, texts: list[str], chunk: int, stride: int) -> list[float]:
        first = {
            "bos": model.bos,
            "eos": model.tokenizer.eos_token_id,
            "newline": model.tokenizer.encode("\n")[0],
        }[start]
        nats = []
        for text in texts:
            ids = model.ids(text, False)
            for begin in range(0, len(ids), chunk):
                part = ids[begin : begin + chunk]
                nats += model.nats([first, *part[replaces:]])
        return nats

    return score


def lm_eval(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    return roll(model, [model.ids(text, True) for text in texts], context)


def lm_eval_no_bos(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    return roll(model, [model.ids(text, False) for text in texts], context)


def roll(model: Plain, documents: list[list[int]], context: int) -> list[float]:
    nats = []
    for ids in documents:
        read = [model.start, *ids]  # read[i] predicts ids[i]
        for begin in range(0, len(ids), context):
            end = min(begin + context, len(ids))
            first = max(0, end - context) if begin else 0
            nats += model.nats([*read[first:end], ids[end - 1]])[-(end - begin) :]
    return nats


def opencompass_swce(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    ids = [token for text in texts for token in model.ids(text, True)]
    nats: list[float] = []
    for number in range((len(ids) - context - 1) // stride + 1 if len(ids) > context else 0):
        window = model.nats(ids[number * stride : number * stride + context + 1])
        nats += window[-stride:] if number else window
    return nats


def joined(model: Plain, texts: list[str]) -> list[int]:
    pieces = [" " * (number > 0) + text for number, text in enumerate(texts)]
    return [token for piece in pieces for token in model.ids(piece, False)]


def llm_compressive(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    ids = joined(model, texts)
    pieces = [ids[begin : begin + context] for begin in range(0, len(ids), context)][:-1]
    bos = [] if model.bos is None else [model.bos]
    return [each for piece in pieces for each in model.nats([*bos, *piece][:context])]


def llm_compressive_sw(model: Plain, texts: list[str], context: int, stride: int) -> list[float]:
    ids = joined(model, texts)
    nats: list[float] = []
    for number, begin in enumerate(range(0, len(ids) - context + 1, stride)):
        window = model.nats(ids[begin : begin + context])
        nats += window if number < 3 else window[1 - stride :]
    return nats


PEERS: dict[str, Peer] = {
    "disjoint-{0}": default,
    "sliding-{0}-{1}": sliding,
    "stream-{0}-{1}": stream,
    "uncheatable-{0}": uncheatable,
    "uncheatable-bos-{0}": uncheatable_bos,
    **{
        f"uncheatable-{way}-{start}-{{0}}": uncheatable_start(start, way == "replace")
        for way in ("add", "replace")
        for start in ("bos", "eos", "newline")
    },
    "lm-eval-{0}": lm_eval,
    "lm-eval-no-bos-{0}": lm_eval_no_bos,
    "opencompass-swce-{0}-{1}": opencompass_swce,
    "llm-compressive-{0}": llm_compressive,
    "llm-compressive-sw-{0}-{1}-3": llm_compressive_sw,
}


def counted_bytes(model: Plain, texts: list[str], protocol: ScoringProtocol) -> int:
    """Return a peer's divisor in bytes; a token's letters are its bytes in these tokenizers."""
    assert protocol.context is not None
    total = len("".join(texts).encode())
    if protocol.layout == "swce":
        num_tokens = sum(len(model.ids(text, True)) for text in texts)
        return total if num_tokens > protocol.context else 0
    if protocol.layout not in ("pieces", "sliding-pieces"):
        return total
    ids, context = joined(model, texts), protocol.context
    if protocol.layout == "pieces":  # all but the last piece, and the text of its BOS
        end = (len(ids) - 1) // context * context
        dropped = 0 if model.bos is None or end <= 0 else len(model.tokenizer.bos_token)
    else:
        stride = protocol.stride or 1
        end = (len(ids) - context) // stride * stride + context if len(ids) >= context else 0
        dropped = 0
    letters = model.tokenizer.convert_ids_to_tokens(ids[: max(0, end)])
    return sum(map(len, letters)) - dropped


def lacks_start(model: Plain, protocol: ScoringProtocol) -> bool:
    tokens = {"bos": model.bos, "eos": model.tokenizer.eos_token_id, "newline": 0}
    return tokens[protocol.prefix] is None


KINDS = ["llama_folder", "gpt2_folder", "starting_folder", "startless_folder", "mamba_folder"]


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest) -> Callable[[str], tuple[CausalLM, Plain]]:
    settings = Settings(device="cpu", dtype="float64")

    def load(kind: str) -> tuple[CausalLM, Plain]:
        folder = request.getfixturevalue(kind)
        return CausalLM.load(folder, None, settings), Plain(folder)

    return cache(load)


documents = st.lists(
    st.one_of(
        st.text(st.sampled_from("ab e\u0301é早🙂\n\u2581"), max_size=12),
        st.text(max_size=6),
        st.sampled_from(["", "a", "The tide leaves a mark on the sand. ", "привет, мир! 🙂"]),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("kind", few(KINDS, 3))
@hypothesis_settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=documents, context=st.integers(4, 16), data=st.data())
@example(texts=["QQQQQQQQ"], context=8, data=None)  # each a token: a stream of just a window
@example(texts=["QQQQQQQQ", "QQQQQQQ"], context=8, data=None)  # ... of two pieces, joined
@example(texts=["QQQQQQQQQ"], context=8, data=None)  # one token more than a window
@example(texts=["a", "", "b", ""], context=4, data=None)
@example(texts=[""], context=4, data=None)
def test_every_protocol_is_its_algorithm_written_plainly(
    kind, texts, context, data, both, batch_of
):
    model, plain = both(kind)
    stride = context // 2 if data is None else data.draw(st.integers(2, context - 1))
    for template, algorithm in PEERS.items():
        protocol = get_protocol(template.format(context, stride))
        if protocol.prefix == "encoded-bos" and plain.bos is None:
            continue
        if protocol.name.startswith(UNCHEATABLE_STARTS) and lacks_start(plain, protocol):
            continue
        if protocol.layout == "rolling" and plain.start is None:
            continue
        found = sums(pa.concat_tables(model.score([batch_of(*texts)], protocol)))
        expected = algorithm(plain, texts, context, stride)
        assert found["num_tokens"] == len(expected), protocol.name
        assert found["nll_nats"] == pytest.approx(math.fsum(expected), rel=1e-9), protocol.name
        num_bytes = counted_bytes(plain, texts, protocol)
        assert found["num_bytes"] == num_bytes, protocol.name
