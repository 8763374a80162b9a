import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from core.errors import BatchTooLarge, NotMeasurable
from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from core.settings import Settings
from models.scoring import blocks
from models.scoring.forward import Forward
from models.scoring.protocol import ScoringProtocol
from models.scoring.protocols import get_protocol
from models.scoring.scorer import MILESTONES, DeviceFull, Losses, ScorerFacts, Tally, Tokens
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import CausalLM, TokenIdentity, TokenScorer
from models.weights.checkpoint import open_checkpoint
from models.weights.loading import load_weights
from tests.models.conftest import Plain, record_batch, set_template
from tests.models.scoring.test_accounting import nfkc_unigram, wordpiece

TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away. " * 6,
    "早い者勝ち 🙂",
    "x",
    "Models read what was written before them; text goes on being written.",
    "",
    "def add(a, b):\n    return a + b  # sums\n" * 5,
]
BOS = "<s>"
ORDER = [("document_id", "ascending"), ("chunk_index", "ascending")]
FIRST_CHARS = dataclasses.replace(get_protocol("first-5000-chars"), max_chars=9)
DOCUMENT_PROTOCOLS = [
    *(get_protocol(name) for name in ("default", "disjoint-7", "sliding-12-5", "whole-document")),
    *(get_protocol(name) for name in ("uncheatable-9", "uncheatable-bos-9", "lm-eval-9")),
    get_protocol("lm-eval-no-bos-9"),
    FIRST_CHARS,
]
STREAM_PROTOCOLS = [
    *(get_protocol(name) for name in ("stream-12-5", "stream-12-11", "opencompass-swce-12-5")),
    *(get_protocol(name) for name in ("llm-compressive-8", "llm-compressive-sw-12-5-2")),
]

Rows = dict[tuple[str, int], dict[str, object]]


def table_of(
    model: TokenScorer, batches: Sequence[pa.RecordBatch], protocol: ScoringProtocol
) -> pa.Table:
    return validate(pa.concat_tables(model.score(batches, protocol)), LOSSES)


def rows_of(table: pa.Table) -> Rows:
    rows = table.to_pylist()
    keyed = {(row["document_id"], row["chunk_index"]): row for row in rows}
    assert len(keyed) == len(rows)
    counts = Counter(document for document, _ in keyed)
    assert set(keyed) == {(name, index) for name, count in counts.items() for index in range(count)}
    for row in rows:
        assert math.isfinite(row["nll_nats"]) == (row["reason"] is None)
    return keyed


def identical(found: pa.Table, expected: pa.Table) -> bool:
    """Compare bit for bit; NaN equals NaN."""
    return found.drop(["nll_nats"]).equals(expected.drop(["nll_nats"])) and np.array_equal(
        found["nll_nats"], expected["nll_nats"], equal_nan=True
    )


def documents(*texts: str, first: int = 0) -> pa.RecordBatch:
    batch = record_batch(
        first + len(texts), text=pa.array([""] * first + list(texts), pa.large_string())
    )
    return batch.slice(first)


def lowering_wordpiece() -> Tokenizer:
    """As BERT's: it changes the text and adds tokens before and after it."""
    tokenizer = wordpiece()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ends = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    tokenizer.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return tokenizer


FAMILIES = {
    "byte-level": "llama_folder",
    "adds BOS": "starting_folder",
    "startless": "startless_folder",
    "byte fallback": "bytes_folder",
    "wordpiece": lowering_wordpiece,
    "nfkc": nfkc_unigram,
}
KINDS = {**FAMILIES, "gpt2": "gpt2_folder", "opt": "opt_folder", "mamba": "mamba_folder"}


@pytest.fixture(scope="module")
def load(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, llama_folder: str
) -> Callable[..., CausalLM]:
    @cache
    def folder_of(family: str) -> str:
        made = KINDS[family]
        if isinstance(made, str):
            return str(request.getfixturevalue(made))
        folder = tmp_path_factory.mktemp("families")
        for path in Path(llama_folder).glob("*model*"):
            (folder / path.name).write_bytes(path.read_bytes())
        (folder / "config.json").write_bytes((Path(llama_folder) / "config.json").read_bytes())
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=made(), bos_token=BOS)
        tokenizer.save_pretrained(folder)
        return str(folder)

    @cache
    def load(family: str, batch_tokens: int = 2048) -> CausalLM:
        settings = Settings(device="cpu", batch_tokens=batch_tokens)
        return CausalLM.load(folder_of(family), None, settings, name="m")

    return load


texts = st.lists(
    st.one_of(
        st.sampled_from(TEXTS),
        st.text(st.sampled_from("ab E\u0301é早🙂\n\u2581\ufb01\x00"), max_size=40),
        st.text(max_size=20),
    ),
    min_size=1,
    max_size=6,
)
some_time = hypothesis_settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def usable(model: TokenScorer, protocol: ScoringProtocol) -> bool:
    try:
        model.text_model.prefix(protocol)
    except NotMeasurable:
        return False
    return True


@pytest.mark.parametrize("family", FAMILIES)
@hypothesis_settings(some_time, max_examples=3)
@given(texts=texts)
@example(texts=["", "", ""])
@example(texts=["a\u0301", "  ", "\x00"])
def test_documents_keep_their_characters_and_bytes(family, texts, load):
    model = load(family)
    protocols = [each for each in DOCUMENT_PROTOCOLS if usable(model, each)]
    tables, _ = together(model, [documents(*texts)], protocols)
    for protocol, table in zip(protocols, tables, strict=True):
        rows = rows_of(table)
        for index, text in enumerate(texts):
            own = [row for (name, _), row in rows.items() if name == f"d{index}"]
            chars, size = (sum(row[name] for row in own) for name in ("num_chars", "num_bytes"))
            raw = text.encode()
            if own[0]["reason"] == "no_tokens":
                assert (len(own), chars, size) == (1, len(text), len(raw))
            elif protocol.layout == "single":
                assert size <= len(raw)
                assert chars == len(raw[:size].decode(errors="ignore"))
            else:
                scored = text[: protocol.max_chars]
                assert (chars, size) == (len(scored), len(scored.encode())), protocol.name


@pytest.mark.parametrize("family", FAMILIES)
@hypothesis_settings(some_time, max_examples=3)
@given(texts=texts)
@example(texts=["", "a", "", "b", ""])
@example(texts=["The tide leaves"] * 9)
def test_streams_keep_every_document_s_characters_and_bytes(family, texts, load):
    model = load(family)
    tables, _ = together(model, [documents(*texts)], STREAM_PROTOCOLS)
    for protocol, table in zip(STREAM_PROTOCOLS, tables, strict=True):
        rows = rows_of(table)
        left_out = 0
        for index, text in enumerate(texts):
            own = [row for (name, _), row in rows.items() if name == f"d{index}"]
            whole = (protocol.joined_by or "") * (index > 0) + text
            if own[0]["reason"] == "no_tokens":
                assert len(own) == 1
                whole = text
            assert [row["reason"] for row in own[:-1]] == [None] * (len(own) - 1)
            left_out += len(whole) - sum(row["num_chars"] for row in own)
            left_out += len(whole.encode()) - sum(row["num_bytes"] for row in own)
        # The text of BOS, which the peer takes off with the piece that it drops.
        has_bos = protocol.prefix == "bos" and model.text_model.bos_token is not None
        assert 0 <= left_out <= (2 * len(BOS) if has_bos else 0), protocol.name


@hypothesis_settings(some_time, max_examples=4)
@given(
    texts=texts,
    family=st.sampled_from(sorted(KINDS)),
    protocol=st.sampled_from(DOCUMENT_PROTOCOLS),
    order=st.randoms(use_true_random=False),
)
def test_a_document_s_losses_do_not_depend_on_what_is_scored_with_it(
    texts, family, protocol, order, load
):
    model = load(family)
    if not usable(model, protocol):
        return
    batch = documents(*texts)
    table = table_of(model, [batch], protocol)
    assert identical(table_of(model, [batch], protocol), table)  # bit for bit
    parts = [batch.slice(row, 1) for row in range(batch.num_rows)]
    assert identical(table_of(model, parts, protocol), table)
    shuffled = order.sample(range(len(texts)), len(texts))
    others = [table_of(model, [batch.take(pa.array(shuffled))], protocol)]
    others += [table_of(load(family, budget), [batch], protocol) for budget in (1, 7, 64)]
    others += [pa.concat_tables(table_of(model, [part], protocol) for part in parts)]
    expected = rows_of(table)
    for other in others:
        found = rows_of(other)
        assert set(found) == set(expected)
        for key, row in expected.items():
            assert {**found[key], "nll_nats": 0} == {**row, "nll_nats": 0}
            np.testing.assert_allclose(found[key]["nll_nats"], row["nll_nats"], rtol=1e-6)


@hypothesis_settings(some_time, max_examples=2)
@given(texts=texts, family=st.sampled_from(sorted(KINDS)), at=st.integers(0, 6))
def test_a_stream_does_not_depend_on_batches_or_budgets(texts, family, at, load):
    model, batch = load(family), documents(*texts)
    parts = [batch.slice(0, at), batch.slice(min(at, batch.num_rows))]
    for protocol in STREAM_PROTOCOLS:
        table = table_of(model, [batch], protocol)
        assert identical(table_of(model, [batch], protocol), table)
        assert identical(table_of(model, parts, protocol), table)
        for budget in (1, 7, 64):
            other = table_of(load(family, budget), [batch], protocol)
            assert other.drop(["nll_nats"]).equals(table.drop(["nll_nats"]))
            np.testing.assert_allclose(other["nll_nats"], table["nll_nats"], rtol=1e-6)


@hypothesis_settings(some_time, max_examples=3)
@given(texts=texts, family=st.sampled_from(sorted(KINDS)), block_size=st.integers(1, 300))
@example(texts=TEXTS, family="byte-level", block_size=1)
@example(texts=TEXTS, family="startless", block_size=60)
@example(texts=["a"] * 40, family="byte-level", block_size=1)
@example(texts=["", "", "a", ""], family="startless", block_size=1)
def test_several_blocks_give_what_one_gives(texts, family, block_size, load):
    model = load(family)
    protocols = [each for each in DOCUMENT_PROTOCOLS if usable(model, each)]
    protocols += STREAM_PROTOCOLS
    one, tallies = together(model, [documents(*texts)], protocols)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK_SIZE", block_size)
        several, others = together(model, [documents(*texts)], protocols)
    for before, after, tally, other in zip(one, several, tallies, others, strict=True):
        before, after = before.sort_by(ORDER), after.sort_by(ORDER)
        assert after.drop(["nll_nats"]).equals(before.drop(["nll_nats"]))
        np.testing.assert_allclose(after["nll_nats"], before["nll_nats"], rtol=1e-6)
        assert other.num_tokens_read == tally.num_tokens_read
        assert other.num_lossy_documents == tally.num_lossy_documents
        counts = [each.model_dump(exclude={"nll_nats"}) for each in tally.milestones()]
        assert [each.model_dump(exclude={"nll_nats"}) for each in other.milestones()] == counts


class Watched:
    max_batch_tokens = None

    def __init__(self, engine: Forward, room: int = 10**9) -> None:
        self._engine = engine
        self.room = room
        self.num_passes = 0

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        self.num_passes += 1
        if len(inputs) * max(map(len, inputs)) > self.room:
            raise DeviceFull("full")
        return self._engine.losses(inputs, targets, alphabet)


def watch(folder: str, batch_tokens: int = 2048, room: int = 10**9) -> tuple[TokenScorer, Watched]:
    files = open_checkpoint(folder, None, Settings(device="cpu"))
    text_model = text_model_of(files.tokenizer)
    engine = Watched(Forward(load_weights(files)), room)
    facts = ScorerFacts("cpu: here", "float32", batch_tokens, {}, text_model.facts)
    identity = TokenIdentity("m", files.revision, files.context, files.numerics)
    scorer = TokenScorer(identity, text_model, engine, facts)
    engine.num_passes = 0
    return scorer, engine


def together(
    model: TokenScorer, batches: Sequence[pa.RecordBatch], protocols: Sequence[ScoringProtocol]
) -> tuple[list[pa.Table], list[Tally]]:
    tallies = [Tally() for _ in protocols]
    tables = zip(*model.score_together(batches, protocols, tallies), strict=True)
    return [pa.concat_tables(each) for each in tables], tallies


def test_scored_together_each_protocol_has_the_bits_that_it_has_alone(llama_folder):
    protocols = [*DOCUMENT_PROTOCOLS, *STREAM_PROTOCOLS, get_protocol("own-context")]
    model, _ = watch(llama_folder, batch_tokens=100)
    batches = [documents(*TEXTS), documents(*TEXTS[::-1], first=len(TEXTS))]
    found, tallies = together(model, batches, protocols)
    for protocol, table, tally in zip(protocols, found, tallies, strict=True):
        [alone], [own] = together(model, batches, [protocol])
        assert identical(table, alone), protocol.name
        assert tally.milestones() == own.milestones()
        assert tally.num_tokens_read == own.num_tokens_read > 0
        assert tally.num_lossy_documents == own.num_lossy_documents
        assert tally.seconds > 0


@pytest.mark.parametrize("folder", ["llama_folder", "gpt2_folder"])
def test_protocols_with_the_same_windows_share_their_passes(folder, request):
    """Documents shorter than a window have equal windows in most protocols."""
    short = [text[:30] for text in TEXTS] * 3
    names = [
        "default", "own-context", "disjoint-40", "sliding-40-8", "whole-document",
        "first-5000-chars", "lm-eval-40", "lm-eval-no-bos-40", "lm-eval",
    ]  # fmt: skip
    model, engine = watch(request.getfixturevalue(folder), batch_tokens=120)
    together(model, [documents(*short)], [get_protocol("default")])
    passes = engine.num_passes
    assert passes > 2
    tables, _ = together(model, [documents(*short)], [get_protocol(name) for name in names])
    assert engine.num_passes == 2 * passes
    for table in tables[1:]:
        np.testing.assert_array_equal(table["nll_nats"], tables[0]["nll_nats"])


def test_what_was_run_is_forgotten_with_its_block(llama_folder, monkeypatch):
    """A partition may be larger than memory."""
    monkeypatch.setattr(blocks, "_BLOCK_SIZE", 10)
    model, engine = watch(llama_folder)
    together(model, [documents(*["The tide"] * 7)], [get_protocol("default")] * 2)
    assert engine.num_passes == 7


def test_a_tokenizer_that_adds_bos_shares_what_does_not_score_it(starting_folder):
    names = ["default", "lm-eval-no-bos-40", "lm-eval-40", "uncheatable-40"]
    model, engine = watch(starting_folder)
    together(model, [documents("tide", "sand")], [get_protocol(name) for name in names])
    assert engine.num_passes == 2  # to read BOS and text, and BOS and BOS and text


@pytest.mark.parametrize(
    "name", ["default", "sliding-48-16", "lm-eval-no-bos", "own-context", "disjoint-20"]
)
def test_milestones_are_sums_over_first_tokens(name, llama_folder):
    model, _ = watch(llama_folder)
    tokenizer = model.text_model.tokenizer
    protocol = get_protocol(name)
    _, [tally] = together(model, [documents(*TEXTS)], [protocol])
    tokens = tokenizer.tokenize(TEXTS)
    found = {each.milestone: each for each in tally.milestones()}
    assert list(found) == [m for m in MILESTONES if m <= max(len(each.ids) for each in tokens)]
    assert len(found) >= 4
    plain = Plain(llama_folder)
    for length, milestone in found.items():
        enough = [each for each in tokens if len(each.ids) >= length]
        assert milestone.num_documents == len(enough)
        assert milestone.num_chars == sum(each.chars[length] for each in enough)
        assert milestone.num_bytes == sum(each.bytes[length] for each in enough)
        if length <= 19:  # within the first window of all of them
            nats = [sum(plain.nats([0, *each.ids[:length].tolist()])) for each in enough]
            assert milestone.nll_nats == pytest.approx(sum(nats), rel=1e-6)


@pytest.mark.parametrize("name", ["uncheatable-20", "lm-eval-20", "stream-20-5"])
def test_protocols_that_do_not_charge_every_token_have_no_milestones(name, starting_folder):
    model, _ = watch(starting_folder)
    _, [tally] = together(model, [documents(*TEXTS)], [get_protocol(name)])
    assert tally.milestones() == ()


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"startless"}))
def test_sums_by_class_of_byte_add_up_to_those_of_the_cell(family, load):
    tables, tallies = together(load(family), [documents(*TEXTS)], DOCUMENT_PROTOCOLS)
    for protocol, table, tally in zip(DOCUMENT_PROTOCOLS, tables, tallies, strict=True):
        sums = {each.byte_class: each for each in tally.byte_classes()}
        measured = [row for row in table.to_pylist() if row["reason"] is None]
        nats = math.fsum(row["nll_nats"] for row in measured)
        assert math.fsum(each.nll_nats for each in sums.values()) == pytest.approx(nats, rel=1e-9)
        num_bytes = sum(row["num_bytes"] for row in measured)
        assert sum(each.num_bytes for each in sums.values()) == num_bytes, protocol.name
        if protocol.max_chars is None and protocol.layout != "single":
            other = sum(len(point.encode()) for point in TEXTS[1] if point not in " 🙂")
            assert sums["other_script"].num_bytes == other, protocol.name


@pytest.mark.parametrize("name", ["stream-20-5", "uncheatable-20-bf16"])
def test_streams_and_rounded_sums_have_no_sums_by_class(name, llama_folder):
    _, [tally] = together(watch(llama_folder)[0], [documents(*TEXTS)], [get_protocol(name)])
    assert tally.byte_classes() == ()


@pytest.mark.parametrize(
    ("family", "lossy"), [("byte-level", 0), ("byte fallback", 0), ("wordpiece", 4), ("nfkc", 3)]
)
def test_documents_that_a_tokenizer_does_not_give_back_are_counted(family, lossy, load):
    batches = [documents("The Tide", "ﬁne", "E\u0301 🙂", "tide  sand", "")]
    protocols = [get_protocol("default"), get_protocol("stream-12-5"), get_protocol("lm-eval-9")]
    _, tallies = together(load(family), batches, protocols)
    assert [tally.num_lossy_documents for tally in tallies] == [lossy] * 3


def test_chat_scores_the_text_given_the_template(folder):
    template = "{{ bos_token }}[{{ messages[0]['role'] }}]{{ messages[0]['content'] }}"
    tokenizer = set_template(folder, template)
    text = "The tide leaves a mark on the sand, and the next tide washes it away."
    model = CausalLM.load(str(folder), None, Settings(device="cpu"))
    table = table_of(model, [documents(text)], get_protocol("chat"))
    before = tokenizer("<s>[user]", add_special_tokens=False)["input_ids"]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    step = 64 - len(before)  # the model takes 64
    windows = [[*before, *ids[begin : begin + step]] for begin in range(0, len(ids), step)]
    plain = Plain(str(folder))
    expected = [sum(plain.nats(window)[len(before) - 1 :]) for window in windows]
    assert table["nll_nats"].to_pylist() == pytest.approx(expected, rel=1e-6)
    assert sum(table["num_bytes"].to_pylist()) == len(text)


def test_chat_without_room_or_template_is_not_measurable(llama_folder, folder):
    with pytest.raises(NotMeasurable, match="needs a chat template"):
        table_of(watch(llama_folder)[0], [documents("a")], get_protocol("chat"))
    set_template(folder, "0123456789" * 20)
    model = CausalLM.load(str(folder), None, Settings(device="cpu"))
    with pytest.raises(
        NotMeasurable, match="tokens before each window's text, and a window has 64"
    ):
        table_of(model, [documents("a")], get_protocol("chat"))


IMAGES = [bytes(range(0, 256, 4)), b"\x00\xff" * 70, b"", b"\x07"]


@pytest.mark.parametrize("kind", ["bytes_folder", "startless bytes"])
def test_bytes_are_scored_among_the_256(kind, bytes_folder, copy_of, media_of):
    folder = bytes_folder
    if kind == "startless bytes":
        folder = str(copy_of(bytes_folder))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(bytes_folder)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer).save_pretrained(
            folder
        )
    model = CausalLM.load(folder, None, Settings(device="cpu"))
    start = [] if model.text_model.start_token is None else [model.text_model.start_token]
    table = table_of(model, [media_of(*IMAGES)], get_protocol("disjoint-32"))
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    alphabet = torch.tensor(model.text_model.byte_tokens)
    step = 32 - len(start)
    expected: list[tuple[float, int]] = []
    for image in IMAGES:
        for begin in range(0, len(image), step):
            piece = list(image[begin : begin + step])
            window = torch.tensor([[*start, *alphabet[piece].tolist()]])
            with torch.no_grad():
                log = plain(input_ids=window).logits[0, :, alphabet].log_softmax(-1)
            nats = -log[:-1].gather(-1, torch.tensor(piece[1 - len(start) :])[:, None])
            unread = 0 if start else math.log(256)
            expected.append((float(nats.sum()) + unread, len(piece)))
    rows = [row for row in table.to_pylist() if row["reason"] is None]
    np.testing.assert_allclose(
        [row["nll_nats"] for row in rows], [nats for nats, _ in expected], rtol=1e-6
    )
    assert [row["num_bytes"] for row in rows] == [size for _, size in expected]
    assert {row["num_chars"] for row in rows} == {0}
    assert {row["document_id"]: row["reason"] for row in table.to_pylist()}["d2"] == "no_tokens"


@pytest.mark.parametrize("protocol", [*DOCUMENT_PROTOCOLS, *STREAM_PROTOCOLS], ids=lambda p: p.name)
def test_bytes_add_up_under_every_protocol(protocol, bytes_folder, media_of):
    model, _ = watch(bytes_folder)
    rows = rows_of(table_of(model, [media_of(*IMAGES)], protocol))
    sizes: Counter[str] = Counter()
    for (name, _), row in rows.items():
        sizes[name] += row["num_bytes"]  # type: ignore[assignment,operator]
    limit = {"first-5000-chars": 9, "whole-document": 63}.get(protocol.name, 10**6)
    assert [sizes[f"d{index}"] for index in range(4)] in (
        [min(limit, len(image)) for image in IMAGES],
        # llm-compressive takes the text of BOS off what is covered.
        [len(IMAGES[0]), len(IMAGES[1]) - 3, 0, 1] if protocol.prefix == "bos" else None,
    )


def test_bytes_without_byte_tokens_are_not_measurable_and_no_error(llama_folder, media_of):
    model, engine = watch(llama_folder)
    protocols = [get_protocol("default"), get_protocol("stream-12-5"), get_protocol("lm-eval-9")]
    tables, tallies = together(model, [media_of(*IMAGES)], protocols)
    for table, tally in zip(tables, tallies, strict=True):
        rows = list(rows_of(table).values())
        assert [row["reason"] for row in rows] == ["not_measurable"] * 4
        assert [row["num_bytes"] for row in rows] == [len(image) for image in IMAGES]
        assert {row["num_tokens"] for row in rows} == {0}
        assert tally.milestones() == ()
    assert engine.num_passes == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_none_leaves_its_neighbours_as_they_were(bad, folder):
    texts = ["The tide leaves a mark", "on the sand", "and Q the next tide " * 9, "washes it away"]
    batches = [documents(*texts)]
    protocols = [get_protocol(name) for name in ("default", "disjoint-20", "sliding-20-5")]
    sound, _ = together(watch(str(folder))[0], batches, protocols)
    weights = load_file(folder / "model.safetensors")
    [letter] = PreTrainedTokenizerFast.from_pretrained(folder)("Q")["input_ids"]
    weights["model.embed_tokens.weight"][letter] = bad
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    found, tallies = together(watch(str(folder))[0], batches, protocols)
    for before, after in zip(map(rows_of, sound), map(rows_of, found), strict=True):
        assert set(before) == set(after)
        spoilt = {key for key, row in after.items() if row["reason"] == "non_finite"}
        assert spoilt
        assert {name for name, _ in spoilt} == {"d2"}
        for key, row in after.items():
            counts = ("num_tokens", "num_chars", "num_bytes")
            assert [row[name] for name in counts] == [before[key][name] for name in counts]
            if key not in spoilt:
                assert {**row, "revision": ""} == {**before[key], "revision": ""}
    assert all(math.isfinite(each.nll_nats) for tally in tallies for each in tally.milestones())


def test_padding_brings_no_other_token_s_nan_into_a_row(bytes_folder, copy_of):
    """A short row is padded; a NaN embedding of the pad token would reach its neighbours."""
    folder = copy_of(bytes_folder)
    weights = load_file(folder / "model.safetensors")
    text = "The tide"
    [used] = [PreTrainedTokenizerFast.from_pretrained(folder)(text)["input_ids"]]
    for unused in set(range(400)) - {*used, 1}:
        weights["model.embed_tokens.weight"][unused] = math.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    table = table_of(watch(str(folder))[0], [documents(text, text[:-1])], get_protocol("default"))
    assert table["reason"].null_count == 2


def test_a_full_device_has_the_cell_scored_again_with_the_bits_of_a_smaller_budget(llama_folder):
    model, engine = watch(llama_folder, batch_tokens=512, room=200)
    batches = [documents(*TEXTS * 3)]
    protocols = [get_protocol("disjoint-24"), get_protocol("sliding-24-8")]
    budgets = []
    while True:
        try:
            found, tallies = together(model, batches, protocols)
        except BatchTooLarge:
            budgets.append(model.facts.batch_tokens)
        else:
            break
    assert budgets
    assert budgets == sorted(set(budgets), reverse=True)
    assert model.facts.batch_tokens == budgets[-1] <= 200
    assert all(2 * after <= before for before, after in zip([512, *budgets], budgets, strict=False))
    small, other = watch(llama_folder, batch_tokens=budgets[-1])
    expected, expected_tallies = together(small, batches, protocols)
    for table, same in zip(found, expected, strict=True):
        assert identical(table, same)
    assert [tally.milestones() for tally in tallies] == [
        tally.milestones() for tally in expected_tallies
    ]
    assert [t.num_tokens_read for t in tallies] == [t.num_tokens_read for t in expected_tallies]
    engine.room = 20
    other.room = 20
    with pytest.raises(NotMeasurable, match="a window of 23 tokens does not fit"):
        while True:
            try:
                together(small, batches, protocols)
            except BatchTooLarge:
                continue


def test_no_documents_are_no_rows(llama_folder):
    model, engine = watch(llama_folder)
    for protocol in (*DOCUMENT_PROTOCOLS, *STREAM_PROTOCOLS):
        table = table_of(model, [], protocol)
        assert (table.num_rows, table.schema) == (0, LOSSES)
        assert table_of(model, [documents()], protocol).num_rows == 0
    assert engine.num_passes == 0


def test_a_protocol_that_the_model_is_too_short_for_is_refused_before_anything_runs(gpt2_folder):
    model, engine = watch(gpt2_folder)
    protocols = [get_protocol("default"), get_protocol("uncheatable")]
    with pytest.raises(NotMeasurable, match="--context 48"):
        together(model, [documents(*TEXTS)], protocols)
    assert engine.num_passes == 0
    with pytest.raises(NotMeasurable, match="--context 48"):
        model.scoring_id(protocols[1])
