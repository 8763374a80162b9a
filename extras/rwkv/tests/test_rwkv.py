import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional
from transformers import RwkvConfig, RwkvForCausalLM

from core.errors import ModelLoadError, UsageError
from core.settings import Settings
from extras.rwkv.engine import RwkvEngine, RwkvFiles, load_rwkv_generator, open_rwkv
from extras.rwkv.tokenizer import WorldTokenizer, package_folder, parse_world
from models.backends import identify, kind_of, load_scorer
from models.catalogue import ModelEntry, find_model, list_shipped
from models.generation import Decoding, GenerationRequest
from models.options.scoring import OptionScorer, TextPrompt
from models.scoring.protocols import get_protocol
from models.scoring.scorer import DeviceFull, Engine, Losses
from models.scoring.token_scorer import TokenScorer
from tests.models.conftest import BatchOf, record_batch
from tests.models.test_kinds import go_through_all_instruments

pytest.importorskip("rwkv", reason="the extra rwkv is not installed")

TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away.",
    "Ein naïver Café-Besuch kostet 3,50 € – 早い者勝ち。 Ещё раз: привет, мир! 🙂",
    "def add(a, b):\n    return a + b  # sums\n\n\nprint(add(1, 2))",
    "x",
]

VERSIONS = ("4", "5.0", "5.1", "5.2", "6", "7")
HIDDEN = 16
HEADS = 2
LAYERS = 2
WIDE = 32
RANK = 4
NUM_ROWS = 320  # of the embedding
NUM_TOKENS = 300  # of the small World vocabulary, ids from 1 on

Weights = dict[str, torch.Tensor]


def write_world(folder: Path, num_tokens: int = NUM_TOKENS) -> Path:
    """Write the first tokens of the World vocabulary (bytes first) beside a checkpoint."""
    whole = (package_folder() / "rwkv_vocab_v20230424.txt").read_text(encoding="utf-8")
    path = folder / "rwkv_vocab_v20230424.txt"
    path.write_text("\n".join(whole.split("\n")[:num_tokens]) + "\n", encoding="utf-8")
    return path


def random_weights(version: str, num_rows: int = NUM_ROWS) -> Weights:
    generator = torch.Generator().manual_seed(11)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.5

    weights: Weights = {"emb.weight": draw(num_rows, HIDDEN)}
    for layer in range(LAYERS):
        names = ["ln0", "ln1", "ln2"] if layer == 0 else ["ln1", "ln2"]
        for name in names:
            weights |= _norm(f"blocks.{layer}.{name}", draw)
        own = dict(_block(version, draw))
        weights |= {f"blocks.{layer}.{name}": tensor for name, tensor in own.items()}
    weights |= _norm("ln_out", draw)
    return weights | {"head.weight": draw(num_rows, HIDDEN)}


def _norm(name: str, draw: Callable[..., torch.Tensor]) -> Weights:
    return {f"{name}.weight": 1 + draw(HIDDEN) / 5, f"{name}.bias": draw(HIDDEN) / 5}


def _block(version: str, draw: Callable[..., torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    size = HIDDEN // HEADS
    mixes = {"4": "kvr", "5.0": "kvr", "5.1": "kvrg", "5.2": "kvrg", "6": "xwkvrg", "7": "rwkvag"}
    prefix = {"6": "time_maa_", "7": "x_"}.get(version, "time_mix_")
    for letter in mixes[version]:
        yield f"att.{prefix}{letter}", draw(1, 1, HIDDEN).sigmoid()
    if version == "7":
        yield from _low_ranks(draw)
        yield "att.r_k", draw(HEADS, size)
    elif version == "6":
        yield "att.time_maa_w1", draw(HIDDEN, 5 * RANK)
        yield "att.time_maa_w2", draw(5, RANK, HIDDEN)
        yield "att.time_decay", draw(1, 1, HIDDEN)
        yield "att.time_decay_w1", draw(HIDDEN, RANK)
        yield "att.time_decay_w2", draw(RANK, HIDDEN)
        yield "att.time_faaaa", draw(HEADS, size)
    else:
        decays = {"4": (HIDDEN,), "5.2": (HEADS, size)}.get(version, (HEADS,))
        yield "att.time_decay", draw(*decays)
        yield f"att.time_{'faaaa' if version == '5.2' else 'first'}", draw(*decays)
    gates = ["gate"] if version in ("5.1", "5.2", "6") else []
    for name in ["receptance", "key", "value", "output", *gates]:
        yield f"att.{name}.weight", draw(HIDDEN, HIDDEN)
    if version != "4":
        yield from _norm("att.ln_x", draw).items()
    ffn = {"6": "time_maa_k time_maa_r", "7": "x_k"}.get(version, "time_mix_k time_mix_r")
    for name in ffn.split():
        yield f"ffn.{name}", draw(1, 1, HIDDEN).sigmoid()
    yield "ffn.key.weight", draw(WIDE, HIDDEN)
    if version != "7":
        yield "ffn.receptance.weight", draw(HIDDEN, HIDDEN)
    yield "ffn.value.weight", draw(HIDDEN, WIDE)


def _low_ranks(draw: Callable[..., torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for letter in "wavg":
        if letter != "g":
            yield f"att.{letter}0", draw(1, 1, HIDDEN)
        yield f"att.{letter}1", draw(HIDDEN, RANK)
        yield f"att.{letter}2", draw(RANK, HIDDEN)
    yield "att.k_k", draw(1, 1, HIDDEN)
    yield "att.k_a", draw(1, 1, HIDDEN)


def write_checkpoint(folder: Path, version: str, **changes: torch.Tensor) -> Path:
    folder.mkdir(exist_ok=True)
    write_world(folder)
    path = folder / f"RWKV-x{version}.pth"
    torch.save(random_weights(version) | changes, path)
    return path


def entry_of(path: Path, **fields: Any) -> ModelEntry:
    return ModelEntry(name="tiny-rwkv", kind="rwkv", location=str(path), **fields)


def load(path: Path, **changes: Any) -> Any:
    return load_scorer(entry_of(path), Settings(**{"device": "cpu", **changes}))


def identity_of(path: Path, **fields: Any) -> Any:
    return identify(entry_of(path, **fields), Settings(device="cpu"))


def opened(path: Path, **changes: Any) -> RwkvFiles:
    return open_rwkv(entry_of(path), Settings(**{"device": "cpu", **changes}))


def engine_of(path: Path, **changes: Any) -> RwkvEngine:
    return RwkvEngine(opened(path, **changes))


def losses_of(engine: Engine, row: np.ndarray[Any, Any]) -> Losses:
    """Return -ln p of each token but the first, in one pass."""
    return engine.losses([row[:-1]], [row[1:]])[0]


def rows_of(scorer: TokenScorer, *batches: pa.RecordBatch, protocol: str = "default") -> list[Any]:
    tables = list(scorer.score(batches, get_protocol(protocol)))
    return pa.concat_tables(tables).to_pylist()


def random_rows(*lengths: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    generator = np.random.default_rng(5)
    return [generator.integers(1, NUM_TOKENS, size=length) for length in lengths]


def stepwise(engine: RwkvEngine, ids: np.ndarray[Any, Any]) -> Losses:
    """Return -ln p of each token but the first, by passes of one token."""
    state = None
    nats = []
    for token, following in zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True):
        logits, state = engine._model.forward([token], state)
        nats.append(-float(functional.log_softmax(logits.double(), dim=-1)[following]))
    return np.array(nats)


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def checkpoint(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("rwkv") / "folder", version)


@pytest.fixture(scope="module")
def engine(checkpoint: Path) -> RwkvEngine:
    return engine_of(checkpoint)


@pytest.fixture
def fourth(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "one", "4")


@pytest.mark.smoke
def test_losses_are_those_of_a_stepwise_pass(engine: RwkvEngine) -> None:
    rows = random_rows(2, 40, 257, 600)  # within a slice, one token more, and several slices
    found = engine.losses([row[:-1] for row in rows], [row[1:] for row in rows])
    for row, losses in zip(rows, found, strict=True):
        assert losses.dtype == np.float64
        np.testing.assert_allclose(losses, stepwise(engine, row), rtol=2e-5, atol=2e-5)
    assert np.std(found[2]) > 0.1  # the model has opinions


def test_context_before_the_scored_tokens_is_read(engine: RwkvEngine) -> None:
    (row,) = random_rows(600)
    whole = losses_of(engine, row)
    for scored in (1, 5, 300):
        part = engine.losses([row[:-1]], [row[-scored:]])[0]
        np.testing.assert_allclose(part, whole[-scored:], rtol=1e-6)
    alone = engine.losses([row[-6:-1]], [row[-5:]])[0]
    assert np.abs(alone - whole[-5:]).max() > 1e-3


def test_rows_do_not_depend_on_their_batch(engine: RwkvEngine) -> None:
    rows = random_rows(7, 90, 300)
    together = engine.losses([row[:-1] for row in rows], [row[1:] for row in rows])
    for row, losses in zip(rows, together, strict=True):
        alone = losses_of(engine, row)
        assert losses.tolist() == pytest.approx(alone.tolist(), rel=1e-6)


def test_full_host_memory_is_told(engine: RwkvEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine._model, "forward", lambda *_, **__: torch.empty(2**50))
    with pytest.raises(DeviceFull, match="allocate memory"):
        engine.losses([np.arange(3)], [np.arange(3)])


def test_the_softmax_can_be_over_an_alphabet(engine: RwkvEngine) -> None:
    (row,) = random_rows(50)
    row = row % 256 + 1
    alphabet = np.arange(1, 257)
    (found,) = engine.losses([row[:-1]], [row[1:]], alphabet)
    logits, _ = engine._model.forward(row[:-1].tolist(), None, full_output=True)
    expected = functional.cross_entropy(
        logits[:, 1:257].double(), torch.from_numpy(row[1:] - 1), reduction="none"
    )
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)


def test_it_writes_the_most_likely_tokens(checkpoint: Path, settings: Settings) -> None:
    writer = load_rwkv_generator(entry_of(checkpoint), settings)
    asked = [GenerationRequest("a", "The tide " * 40, 1), GenerationRequest("b", "x", 2)]
    written = {each.key: each.text for each in writer.generate(asked, Decoding(5))}
    files = opened(checkpoint)
    model = RwkvEngine(files)._model
    for request in asked:
        (tokens,) = files.tokenizer.text_model.tokenizer.tokenize([request.prompt])
        ids = tokens.ids.tolist()
        start = len(tokens.ids)
        while len(ids) < start + 5:  # the whole text again for each token
            logits, _ = model.forward(ids, None)
            ids.append(int(logits.argmax()))
        own = ids[start:]
        end = own.index(0) if 0 in own else 5
        assert written[request.key] == files.tokenizer.decode(own[:end])
    assert writer.revision == files.revision


def test_documents_are_scored_to_the_last_byte(checkpoint: Path, batch_of: BatchOf) -> None:
    scorer = load(checkpoint)
    rows = rows_of(scorer, batch_of(*TEXTS))
    assert [row["document_id"] for row in rows] == ["d0", "d1", "d2", "d3"]
    assert [row["num_bytes"] for row in rows] == [len(text.encode()) for text in TEXTS]
    assert [row["num_chars"] for row in rows] == [len(text) for text in TEXTS]
    assert all(row["reason"] is None for row in rows)
    tokenizer = scorer.text_model.tokenizer
    for row, tokens in zip(rows, tokenizer.tokenize(TEXTS), strict=True):
        ids = np.concatenate([[0], tokens.ids])  # the end of a text stands before it
        engine = scorer._batches.engine
        assert isinstance(engine, RwkvEngine)
        assert row["num_tokens"] == len(tokens.ids)
        assert row["nll_nats"] == pytest.approx(stepwise(engine, ids).sum(), rel=1e-5)


def test_bytes_of_media_are_scored_by_the_worlds_byte_tokens(checkpoint: Path) -> None:
    scorer = load(checkpoint)
    media = bytes(range(256))
    rows = rows_of(scorer, record_batch(1, media=pa.array([media], pa.large_binary())))
    ids = np.concatenate([[0], np.arange(1, 257)])
    engine = scorer._batches.engine
    (expected,) = engine.losses([ids[:-1]], [ids[1:]], np.arange(1, 257))
    assert (len(rows), rows[0]["num_bytes"], rows[0]["num_tokens"]) == (1, 256, 256)
    assert rows[0]["nll_nats"] == pytest.approx(expected.sum(), rel=1e-9)


def test_windows_add_up_and_start_from_an_empty_state(checkpoint: Path, batch_of: BatchOf) -> None:
    scorer = load(checkpoint)
    text = TEXTS[1] * 5
    rows = rows_of(scorer, batch_of(text), protocol="disjoint-64")
    assert len(rows) > 2
    assert sum(row["num_bytes"] for row in rows) == len(text.encode())
    assert sum(row["num_chars"] for row in rows) == len(text)
    (tokens,) = scorer.text_model.tokenizer.tokenize([text])
    second = np.concatenate([[0], tokens.ids[63:126]])
    engine = scorer._batches.engine
    assert isinstance(engine, RwkvEngine)
    assert rows[1]["nll_nats"] == pytest.approx(stepwise(engine, second).sum(), rel=1e-5)


def test_weights_that_are_not_finite_give_chunks_without_a_loss(
    tmp_path: Path, version: str, batch_of: BatchOf
) -> None:
    head = torch.zeros(NUM_ROWS, HIDDEN)
    head[5] = math.nan
    path = write_checkpoint(tmp_path / "nan", version, **{"head.weight": head})
    rows = rows_of(load(path), batch_of(TEXTS[0]))
    assert all(math.isnan(row["nll_nats"]) and row["reason"] == "non_finite" for row in rows)
    assert sum(row["num_bytes"] for row in rows) == len(TEXTS[0])


def test_version_4_agrees_with_transformers(fourth: Path) -> None:
    config = RwkvConfig(
        vocab_size=NUM_ROWS, context_length=128, hidden_size=HIDDEN, num_hidden_layers=LAYERS,
        attention_hidden_size=HIDDEN, intermediate_size=WIDE, rescale_every=0,
    )  # fmt: skip
    model = RwkvForCausalLM(config).eval()
    names = {
        "emb.": "embeddings.", ".ln0.": ".pre_ln.", ".att.": ".attention.",
        ".ffn.": ".feed_forward.", "time_mix_k": "time_mix_key", "time_mix_v": "time_mix_value",
        "time_mix_r": "time_mix_receptance",
    }  # fmt: skip
    converted: Weights = {}
    for name, tensor in random_weights("4").items():
        for old, new in names.items():
            name = name.replace(old, new)
        converted[name if name.startswith("head.") else f"rwkv.{name}"] = tensor
    model.load_state_dict(converted)
    (row,) = random_rows(100)
    found = losses_of(engine_of(fourth), row)
    with torch.inference_mode():
        logits = model(torch.from_numpy(row[None, :-1])).logits[0]
    expected = functional.cross_entropy(
        logits.double(), torch.from_numpy(row[1:]), reduction="none"
    )
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)


def test_models_of_several_versions_and_types_live_together(tmp_path: Path) -> None:
    """The package's globals hold type and device of version 7."""
    seventh, fourth = (write_checkpoint(tmp_path / name, name) for name in ("7", "4"))
    (row,) = random_rows(30)
    exact = engine_of(seventh)
    before = losses_of(exact, row)
    coarse = engine_of(seventh, dtype="bfloat16")
    other = engine_of(fourth)
    assert losses_of(exact, row).tolist() == pytest.approx(before.tolist(), rel=1e-6)
    rounded = losses_of(coarse, row)
    assert 1e-6 < np.abs(rounded - before).max() < 0.3
    assert np.abs(losses_of(other, row) - before).max() > 0.1


def test_the_package_changes_nothing_around_it(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matmul = torch.backends.cuda.matmul
    cudnn = torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, torch.jit.script)
    engine_of(checkpoint)
    assert (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark, torch.jit.script) == before
    assert capsys.readouterr().out == ""


def test_the_environment_does_not_decide_figures(
    fourth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = random_rows(30)
    expected = losses_of(engine_of(fourth), row)
    monkeypatch.setenv("RWKV_RESCALE_LAYER", "1")
    monkeypatch.setenv("RWKV_V7_ON", "1")
    monkeypatch.setenv("RWKV_CUDA_ON", "1")
    found = losses_of(engine_of(fourth), row)
    assert found.tolist() == expected.tolist()


class Intruder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("with_tensors", [True, False])
@pytest.mark.parametrize("is_forced", [True, False])
def test_a_pickle_with_code_is_refused_and_not_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    with_tensors: bool,
    is_forced: bool,
) -> None:
    path = write_checkpoint(tmp_path / "evil", "7")
    mark = tmp_path / "it-ran"
    if with_tensors:
        torch.save({**random_weights("7"), "extra": Intruder(mark)}, path)
    else:
        path.write_bytes(pickle.dumps(Intruder(mark)))
    if is_forced:  # torch then loads anything, unless it is told not to
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    for attempt in (identity_of, load):
        with pytest.raises(ModelLoadError, match="a pickle with code in it is never loaded"):
            attempt(path)
    assert not mark.exists()


@pytest.mark.parametrize("version", ["4", "7"])
def test_the_package_loads_tensors_only_whatever_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """As if the file were replaced between the check and the package's own reading."""
    path = write_checkpoint(tmp_path / "swapped", version)
    files = opened(path)
    mark = tmp_path / "it-ran"
    torch.save({**random_weights(version), "extra": Intruder(mark)}, path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(ModelLoadError, match="cannot run"):
        RwkvEngine(files)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "emb.weight"),
        ({"emb.weight": torch.zeros(3, 4), "blocks.0.ln1.weight": torch.zeros(4)}, "tokenizer"),
        ({**random_weights("4"), "_strategy": "cpu fp32"}, "converted"),
        ([torch.zeros(3)], "tensors by name"),
        ({k: v for k, v in random_weights("6").items() if "receptance" not in k}, "cannot run"),
        (random_weights("4") | {"head.weight": torch.zeros(320, 15)}, "cannot run"),
    ],
)
def test_files_that_are_no_checkpoint_are_refused(fourth: Path, content: Any, message: str) -> None:
    torch.save(content, fourth)
    with pytest.raises(ModelLoadError, match=message) as caught:
        load(fourth)
    assert str(fourth) in str(caught.value)


def test_truncated_and_missing_files_are_refused(fourth: Path) -> None:
    fourth.write_bytes(fourth.read_bytes()[:-2000])
    with pytest.raises(ModelLoadError, match="not a file of tensors"):
        load(fourth)
    fourth.unlink()
    with pytest.raises(ModelLoadError, match=r"no such \.pth file"):
        load(fourth)
    with pytest.raises(ModelLoadError, match="found 0"):
        load(fourth.parent)


def test_a_folder_with_one_checkpoint_is_a_location(fourth: Path) -> None:
    by_folder = identity_of(fourth.parent)
    assert by_folder == identity_of(fourth)
    torch.save({}, fourth.parent / "another.pth")
    with pytest.raises(ModelLoadError, match="found 2"):
        identity_of(fourth.parent)


def test_a_path_is_found_without_an_entry(tmp_path: Path, settings: Settings) -> None:
    path = write_checkpoint(tmp_path / "one", "6")
    by_file = find_model(str(path), settings)
    by_folder = find_model(str(path.parent), settings)
    assert (by_file.name, by_file.kind, by_file.location) == ("RWKV-x6", "rwkv", str(path))
    assert (by_folder.name, by_folder.kind) == ("one", "rwkv")
    protocol = get_protocol("default")
    scorer = load_scorer(by_file, settings)
    assert scorer.scoring_id(protocol) == identify(by_folder, settings).scoring_id(protocol)
    (path.parent / "config.json").write_text("{}", encoding="utf-8")
    assert find_model(str(path.parent), settings).kind == "causal_lm"


def test_the_revision_follows_weights_and_vocabulary(fourth: Path) -> None:
    first = identity_of(fourth)
    assert len(first.revision) == 16
    assert identity_of(fourth, revision=first.revision) == first
    write_world(fourth.parent, NUM_TOKENS - 1)
    second = identity_of(fourth)
    torch.save(random_weights("5.2"), fourth)
    third = identity_of(fourth)
    assert len({first.revision, second.revision, third.revision}) == 3
    with pytest.raises(ModelLoadError, match=f"expected {first.revision}"):
        identity_of(fourth, revision=first.revision)


def test_windows_of_any_length_unless_the_catalogue_limits_them(fourth: Path) -> None:
    assert identity_of(fourth).context is None
    assert identity_of(fourth, context=1024).context == 1024


def test_types_that_the_package_does_not_have_are_refused(fourth: Path) -> None:
    with pytest.raises(UsageError, match="TIDEMARK_DTYPE"):
        load(fourth, dtype="float64")


def save_pile(folder: Path, num_tokens: int) -> None:
    names = ["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    names += [f"<extra{index}>" for index in range(num_tokens - len(names))]
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "20B_tokenizer.json"))


def test_a_pile_tokenizer_beside_the_weights_is_used(fourth: Path, batch_of: BatchOf) -> None:
    (fourth.parent / "rwkv_vocab_v20230424.txt").unlink()
    save_pile(fourth.parent, NUM_ROWS)
    scorer = load(fourth)
    rows = rows_of(scorer, batch_of(*TEXTS))
    assert scorer.text_model.start_token == 0
    assert scorer.text_model.start_text == "<|endoftext|>"
    assert [row["num_tokens"] for row in rows] == [len(text.encode()) for text in TEXTS]
    assert [row["num_chars"] for row in rows] == [len(text) for text in TEXTS]


def test_the_embedding_decides_between_two_tokenizers(fourth: Path) -> None:
    save_pile(fourth.parent, 2000)  # more than the embedding has
    scorer = load(fourth)
    assert isinstance(scorer.text_model.tokenizer, WorldTokenizer)
    save_pile(fourth.parent, NUM_ROWS)
    with pytest.raises(ModelLoadError, match="several tokenizers fit.*20B_tokenizer.json"):
        load(fourth)


def test_without_a_file_the_world_vocabulary_is_for_world_models(fourth: Path) -> None:
    (fourth.parent / "rwkv_vocab_v20230424.txt").unlink()
    with pytest.raises(ModelLoadError, match=r"no tokenizer fits.*Pile models \(50,277 rows\)"):
        load(fourth)
    torch.save(random_weights("4", num_rows=65536), fourth)
    scorer = load(fourth)
    assert scorer.text_model.vocabulary_size == 65530
    assert scorer.text_model.start_token == 0
    assert scorer.text_model.byte_tokens is not None
    assert scorer.text_model.byte_tokens.tolist() == list(range(1, 257))


def test_the_world_tokenizer_takes_the_longest_tokens() -> None:
    whole = (package_folder() / "rwkv_vocab_v20230424.txt").read_bytes()
    vocabulary = parse_world(whole, "shipped")
    tokenizer = WorldTokenizer(vocabulary)
    tokens_of = {index: token for token, index in vocabulary.items()}
    assert len(tokens_of) == 65529
    for text, tokens in zip(TEXTS, tokenizer.tokenize(TEXTS), strict=True):
        raw = text.encode()
        place = 0
        for number, index in enumerate(tokens.ids.tolist()):
            fitting = (size for size in range(1, 129) if raw[place : place + size] in vocabulary)
            size = min(max(fitting), len(raw) - place)
            assert tokens_of[index] == raw[place : place + size]
            place += size
            assert tokens.bytes[number + 1] == place
            whole_text = raw[:place].decode(errors="ignore")
            assert tokens.chars[number + 1] == len(whole_text)
        assert place == len(raw)


ALL_BYTES = "\n".join(f"{byte + 1} {bytes([byte])!r} 1" for byte in range(256))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("257 __import__('os').mkdir('x') 1", "expected an id"),
        ("257 'a' + 'b' 2", "no literal"),
        ("257 ('ab', 'cd') 2", "expected an id"),
        ("257 'ab' if True else 'c' 2", "no literal"),
        ("257 'ab' 3", "no token of 3 bytes"),
        ("257 '' 0", "no token of 0 bytes"),
        ("257 'ab 2", "no literal|expected an id"),
        ("257 '\\ud800' 3", "no literal"),
        ("257 '" + "a" * 5000 + "' 5000", "expected an id"),
        ("257 b'a' 1", "there twice"),
        ("256 'ab' 2", "same id"),
        ("0 'ab' 2", "end of a text"),
        ("-7 'ab' 2", "expected an id"),
        ("rubbish", "expected an id"),
    ],
)
def test_a_broken_vocabulary_is_refused(lines: str, message: str) -> None:
    with pytest.raises(ModelLoadError, match=message) as caught:
        parse_world(f"{ALL_BYTES}\n{lines}\n".encode(), "vocabulary.txt")
    assert str(caught.value).startswith("vocabulary.txt")


def test_a_vocabulary_without_a_byte_is_refused() -> None:
    lines = [line for line in ALL_BYTES.split("\n") if not line.startswith("66 ")]
    with pytest.raises(ModelLoadError, match="1 single bytes have no token, the first is 0x41"):
        parse_world("\n".join(lines).encode(), "vocabulary.txt")
    with pytest.raises(ModelLoadError, match="not UTF-8"):
        parse_world(b"\xff", "vocabulary.txt")


def test_a_broken_pile_tokenizer_is_refused(fourth: Path) -> None:
    (fourth.parent / "20B_tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelLoadError, match="20B_tokenizer.json: not a file of the tokenizers"):
        load(fourth)


def test_without_the_package_the_extra_is_named(
    fourth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rwkv", None)  # as if it were not installed
    for attempt in (identity_of, load):
        with pytest.raises(ModelLoadError, match=r"pip install -c constraints.txt -e '\.\[rwkv\]'"):
            attempt(fourth)


def test_options_have_the_likelihood_of_a_stepwise_pass(checkpoint: Path) -> None:
    scorer = load(checkpoint)
    engine = scorer.engine
    assert isinstance(engine, RwkvEngine)
    prompt = TextPrompt(TEXTS[0], (" yes", " yes, by June", " 早い者勝ち"))
    options = OptionScorer("rwkv", scorer.text_model, engine, None, budget=256)
    (scores,) = options.score([prompt])
    before = scorer.text_model.tokenizer.tokenize([prompt.text])[0].ids
    for option, score in zip(prompt.continuations, scores, strict=True):
        (whole,) = scorer.text_model.tokenizer.tokenize([prompt.text + option])
        nats = stepwise(engine, whole.ids)[len(before) - 1 :]
        assert score.num_tokens == len(nats)
        assert score.log_probability == pytest.approx(-nats.sum(), rel=1e-5)


def test_a_checkpoint_goes_through_all_instruments(tmp_path: Path, settings: Settings) -> None:
    file = write_checkpoint(tmp_path / "model", "7")
    go_through_all_instruments(ModelEntry("tiny", "rwkv", str(file)), settings)


def test_a_suffix_and_the_catalogue_name_the_kind() -> None:
    assert kind_of("RWKV-x070.pth") == "rwkv"
    assert "rwkv-7" in {entry.family for entry in list_shipped() if entry.kind == "rwkv"}
