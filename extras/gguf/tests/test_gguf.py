import hashlib
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from transformers import PreTrainedModel

from core.environment import environment_with
from core.errors import ModelLoadError, NotMeasurable
from core.settings import Settings
from extras.gguf.header import BLOCKS, read_gguf_header
from extras.gguf.tests.files import (
    TOKENS,
    make_model,
    metadata_of,
    round_to_q8,
    tensors_of,
    write_gguf,
)
from models.backends import identify, kind_of, load_scorer
from models.catalogue import ModelEntry, find_model
from models.scoring.protocols import get_protocol
from tests.models.conftest import BatchOf

pytest.importorskip("gguf", reason="the extra gguf is not installed")

TEXTS = ["the tide the tides", "tide é 早", "x"]
# A real file, and a folder with the same weights; read before tests change the variables.
_GIVEN = environment_with({})
REAL = _GIVEN.get("TIDEMARK_REAL_GGUF"), _GIVEN.get("TIDEMARK_REAL_FOLDER")


def entry_of(path: Path, **fields: Any) -> ModelEntry:
    return ModelEntry(name="tiny", kind="gguf", location=str(path), **fields)


def write_model(folder: Path, kind: str = "llama", **changes: Any) -> Path:
    tensors = tensors_of(make_model(kind), kind)
    return write_gguf(folder / f"{kind}.gguf", metadata_of(kind, **changes), tensors)


def losses_of(scorer: Any, batch: pa.RecordBatch) -> list[float]:
    table = pa.concat_tables(scorer.score([batch], get_protocol("default")))
    losses: list[float] = table["nll_nats"].to_pylist()
    return losses


@torch.no_grad()
def plain_loss(model: PreTrainedModel, start: int, ids: list[int]) -> float:
    """Return the loss of tokens after a start token, token by token."""
    total = 0.0
    for place, token in enumerate(ids):
        logits = model(torch.tensor([[start, *ids[:place]]])).logits[0, -1].double()
        total -= float(torch.log_softmax(logits, dim=0)[token])
    return total


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kind", "is_quantised"), [("llama", False), ("llama", True), ("gemma3", False)]
)
def test_losses_are_those_of_the_weights(
    kind: str, is_quantised: bool, tmp_path: Path, settings: Settings, batch_of: BatchOf
) -> None:
    """A plain loop runs the model that was written, or the one that its blocks stand for."""
    model = make_model(kind)
    tensors = tensors_of(model, kind)
    packed = {}
    if is_quantised:
        state = model.state_dict()
        for name in ("token_embd.weight", "output.weight", "blk.1.ffn_down.weight"):
            packed[name], tensors[name] = round_to_q8(tensors[name])
        own = {"token_embd": "model.embed_tokens", "output": "lm_head",
               "blk.1.ffn_down": "model.layers.1.mlp.down_proj"}  # fmt: skip
        for name, other in own.items():
            state[f"{other}.weight"].copy_(torch.from_numpy(tensors[f"{name}.weight"]))
    path = write_gguf(tmp_path / "tiny.gguf", metadata_of(kind), tensors, packed)
    scorer = load_scorer(entry_of(path), settings)
    found = losses_of(scorer, batch_of(*TEXTS))
    expected = []
    for text in TEXTS:
        (tokens,) = scorer.text_model.tokenizer.tokenize([text])
        expected.append(plain_loss(model, {"llama": 1, "gemma3": 2}[kind], tokens.ids.tolist()))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_tokens_are_those_of_the_vocabulary(tmp_path: Path, settings: Settings) -> None:
    """Merges follow the scores; what the vocabulary lacks is spelled in bytes."""
    scorer = load_scorer(entry_of(write_model(tmp_path)), settings)
    (tokens,) = scorer.text_model.tokenizer.tokenize(["the tide é"])
    spelled = [TOKENS[each] for each in tokens.ids]
    assert spelled == ["▁the", "▁tide", "▁", "<0xC3>", "<0xA9>"]
    assert scorer.text_model.start_token == 1


def test_a_file_is_found_by_its_suffix(tmp_path: Path, settings: Settings) -> None:
    path = write_model(tmp_path)
    assert kind_of(str(path)) == kind_of(str(tmp_path)) == "gguf"
    entry = find_model(str(path), settings)
    assert (entry.kind, entry.name) == ("gguf", "llama")


def test_the_identity_is_the_digest_of_the_file(tmp_path: Path, settings: Settings) -> None:
    path = write_model(tmp_path)
    first = identify(entry_of(path), settings)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert (first.revision, first.context) == (digest, 128)
    with pytest.raises(ModelLoadError, match="expected 0000000000000000; it changed"):
        identify(entry_of(path, revision="0" * 16), settings)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert identify(entry_of(path), settings).revision != digest


def test_a_sparse_file_is_not_read_to_its_end(tmp_path: Path, settings: Settings) -> None:
    path = write_model(tmp_path)
    with path.open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(ModelLoadError, match=r"llama\.gguf has 1,099,511,627,776 bytes"):
        identify(entry_of(path), settings)


def test_files_beside_it_are_not_read(tmp_path: Path, settings: Settings) -> None:
    path = write_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert identify(entry_of(path), settings).files.config.model_type == "llama"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "architecture": ({"general.architecture": "rwkv7"}, "'rwkv7' is not one that transformers"),
    "scaled positions": ({"llama.rope.scaling.type": "yarn"}, "rope.scaling.type = yarn"),
    "layers": ({"llama.block_count": 4_000_000_000}, "num_hidden_layers = 4,000,000,000"),
    "sizes": ({"llama.vocab_size": 2_000_000_000}, "the header describes a model of"),
    "no heads": ({"llama.attention.head_count": 0}, "header"),
    "token": ({"tokenizer.ggml.bos_token_id": 5000}, "no tokenizer of the header"),
    "tokenizer": ({"tokenizer.ggml.model": "magic"}, "no tokenizer of the header .*magic"),
    "long token": ({"tokenizer.ggml.tokens": ["x" * 2000]}, "2,000 bytes; expected at most 1,024"),
    "no vocabulary": ({"tokenizer.ggml.tokens": 3}, "no vocabulary"),
    "factor": ({"llama.rope.scaling.factor": 4.0}, "rope.scaling.factor = 4.0"),
    "linear": ({"llama.rope.scale_linear": 2.0}, "rope.scale_linear = 2.0"),
    "no base": ({"llama.rope.freq_base": 0.0}, "rope.freq_base = 0.0, which no model has"),
    "endless base": ({"llama.rope.freq_base": float("inf")}, "rope.freq_base = inf"),
    "NaN": ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "epsilon = nan"),
    "negative": ({"llama.attention.layer_norm_rms_epsilon": -1.0}, "epsilon = -1.0"),
    "scores": ({"tokenizer.ggml.scores": [0.0, 1.0]}, "scores has 2 entries for 273 tokens"),
    "types": ({"tokenizer.ggml.token_type": [1]}, "token_type has 1 entries for 273 tokens"),
    "part": ({"split.count": 2}, "one of 2 parts of a model; merge them"),
    "not causal": ({"llama.attention.causal": False}, "attention is not causal"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_named(case: str, tmp_path: Path, settings: Settings) -> None:
    changes, message = REFUSED[case]
    path = write_model(tmp_path, **changes)
    with pytest.raises((ModelLoadError, NotMeasurable), match=message):
        load_scorer(entry_of(path), settings)


def test_factors_of_one_and_no_scaling_change_no_loss(
    tmp_path: Path, settings: Settings, batch_of: BatchOf
) -> None:
    batch = batch_of(*TEXTS)
    expected = losses_of(load_scorer(entry_of(write_model(tmp_path)), settings), batch)
    plain = {"llama.rope.scaling.factor": 1.0, "llama.rope.scale_linear": 0.0, "split.count": 1}
    unused = {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}
    for changes in (plain, unused):
        scorer = load_scorer(entry_of(write_model(tmp_path, **changes)), settings)
        assert losses_of(scorer, batch) == pytest.approx(expected, rel=1e-6)


def test_tensors_without_a_place_are_named(tmp_path: Path, settings: Settings) -> None:
    """transformers passes over the factors of Llama 3's positions."""
    tensors = tensors_of(make_model("llama"), "llama")
    more = tensors | {"rope_freqs.weight": tensors["output_norm.weight"]}
    path = write_gguf(tmp_path / "more.gguf", metadata_of("llama"), more)
    with pytest.raises(ModelLoadError, match=r"no place for 1 tensors .* rope_freqs\.weight"):
        load_scorer(entry_of(path), settings)
    fewer = {name: each for name, each in tensors.items() if name != "blk.0.attn_k.weight"}
    path = write_gguf(tmp_path / "fewer.gguf", metadata_of("llama"), fewer)
    with pytest.raises(ModelLoadError, match=r"1 tensors are missing .*k_proj"):
        load_scorer(entry_of(path), settings)


@pytest.mark.parametrize(("number", "name"), [(15, "Q8_K"), (28, "F64"), (99, "99")])
def test_types_that_are_not_read_are_named(number: int, name: str, tmp_path: Path) -> None:
    tensors = tensors_of(make_model("llama"), "llama")
    packed = {"output.weight": b"\0" * 8}
    path = write_gguf(tmp_path / "t.gguf", metadata_of("llama"), tensors, packed, number)
    with pytest.raises(ModelLoadError, match=f"'output.weight' has the type {name}, which"):
        read_gguf_header(path)


def test_blocks_are_those_of_the_library() -> None:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    for number, (name, num_bytes, num_elements) in BLOCKS.items():
        kind = GGMLQuantizationType(number)
        assert (kind.name, GGML_QUANT_SIZES[kind]) == (name, (num_elements, num_bytes))


def test_an_empty_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.touch()
    with pytest.raises(ModelLoadError, match=r"the GGUF file is empty; get the file again"):
        read_gguf_header(path)


def test_damaged_headers_are_refused_without_large_allocations(tmp_path: Path) -> None:
    """Cut a file anywhere, and put other numbers in the place of counts and lengths."""
    whole = write_model(tmp_path).read_bytes()
    random.seed(0)
    cut = [whole[:size] for size in range(0, len(whole) - 64, 997)]
    mutated = []
    for _ in range(300):
        place = random.randrange(4, 6000)
        number = random.choice([0, 1, 255, 2**20, 2**31, 2**40, 2**63, 2**64 - 1])
        mutated.append(whole[:place] + struct.pack("<Q", number) + whole[place + 8 :])
    path = tmp_path / "damaged.gguf"
    refused = 0
    tracemalloc.start()
    for content in [*cut, *mutated]:
        path.write_bytes(content)
        try:
            read_gguf_header(path)
        except ModelLoadError:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused >= len(cut) + len(mutated) // 2
    assert peak < 20e6


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_is_scored_or_refused(seed: int, tmp_path: Path, settings: Settings) -> None:
    whole = write_model(tmp_path).read_bytes()
    random.seed(seed)
    place = random.randrange(24, 900)
    path = tmp_path / "damaged.gguf"
    path.write_bytes(whole[:place] + random.randbytes(2) + whole[place + 2 :])
    try:
        load_scorer(entry_of(path), settings)
    except (ModelLoadError, NotMeasurable) as error:
        assert str(path) in str(error) or "tiny" in str(error)


@pytest.mark.slow
@pytest.mark.skipif(not all(REAL), reason="TIDEMARK_REAL_GGUF and TIDEMARK_REAL_FOLDER not set")
def test_a_real_file_has_the_losses_of_its_folder(settings: Settings, batch_of: BatchOf) -> None:
    texts = ["The capital of France is Paris. The capital of Germany is Berlin.", *TEXTS]
    by_kind = [find_model(str(place), settings) for place in REAL]
    found, expected = (losses_of(load_scorer(each, settings), batch_of(*texts)) for each in by_kind)
    assert found == pytest.approx(expected, rel=1e-6)
