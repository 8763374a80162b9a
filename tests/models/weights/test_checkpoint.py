import copy
import json
import logging
import re
from pathlib import Path

import pytest
import torch
from accelerate import dispatch_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Mamba2Config, MambaConfig, RwkvConfig

from core.errors import ModelLoadError
from core.settings import Settings
from models.scoring.forward import Forward
from models.scoring.token_scorer import CausalLM
from models.weights.cache import fetch
from models.weights.checkpoint import open_checkpoint
from models.weights.loading import load_weights
from tests.models.conftest import (
    Plain,
    adapter_of,
    byte_level_bpe,
    cut_off,
    edit_json,
    nats,
    save_model,
)

TEXTS = ("The tide leaves a mark on the sand. " * 4, "早い者勝ち 🙂", "x")


def load(folder: Path) -> Forward:
    return Forward(load_weights(open_checkpoint(str(folder), None, Settings(device="cpu"))))


@pytest.fixture
def sharded(llama_folder, tmp_path) -> Path:
    folder = tmp_path / "sharded"
    model = AutoModelForCausalLM.from_pretrained(llama_folder, dtype=torch.float32)
    model.save_pretrained(folder, max_shard_size="60KB")
    AutoTokenizer.from_pretrained(llama_folder).save_pretrained(folder)
    assert len(list(folder.glob("model-*.safetensors"))) >= 3
    return folder


def first_shard(folder: Path) -> Path:
    return min(folder.glob("model-*.safetensors"))


def point_index_at(name: object):
    def spoil(folder: Path) -> None:
        index = folder / "model.safetensors.index.json"
        weights = json.loads(index.read_text())["weight_map"]
        edit_json(index, weight_map=weights | {next(iter(weights)): name})

    return spoil


def index_of(text: str):
    return lambda folder: (folder / "model.safetensors.index.json").write_text(text)


SHARD_BREAKAGES = {
    "cut off": (lambda f: cut_off(first_shard(f), -10), "model-00001-of-.* is cut off or damaged"),
    "not safetensors": (lambda f: first_shard(f).write_bytes(b"oops" * 99), "model-00001.*damaged"),
    "empty": (lambda f: first_shard(f).write_bytes(b""), "model-00001.*damaged"),
    "a pointer": (
        lambda f: first_shard(f).write_text("version https://git-lfs.github.com/spec/v1\nsize 9\n"),
        "model-00001-of-.* is a pointer of git LFS and not the weights; `git lfs pull`",
    ),
    "index as pointer": (
        index_of("version https://git-lfs.github.com/spec/v1\nsize 9\n"),
        "model.safetensors.index.json is a pointer of git LFS",
    ),
    "tokenizer as pointer": (
        lambda f: (f / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\n"),
        "tokenizer.json is a pointer of git LFS and not the file; `git lfs pull`",
    ),
    "missing": (lambda f: first_shard(f).unlink(), "model-00001-of-.* is missing, one of"),
    "of another model": (
        lambda f: save_file({"other": torch.zeros(3)}, first_shard(f), {"format": "pt"}),
        "tensors are missing",
    ),
    "outside": (point_index_at("../elsewhere.safetensors"), r"names '\.\./elsewhere"),
    "absolute": (point_index_at("/etc/passwd"), "no file of the model's folder"),
    "a folder": (point_index_at(".."), "no file of the model's folder"),
    "no name": (point_index_at(""), "no file of the model's folder"),
    "a number": (point_index_at(5), "no index of weights|no file of the model's folder"),
    "index cut off": (index_of('{"weight_map": {'), "is no index of weights"),
    "index of another form": (index_of("[]"), "is no index of weights"),
    "index too deep": (index_of("[" * 100_000), "is no index of weights"),
    "index of nothing": (index_of('{"weight_map": {}}'), "names no files"),
}


@pytest.mark.parametrize("breakage", SHARD_BREAKAGES)
def test_broken_shards_are_refused_by_what_is_wrong(breakage, sharded):
    assert load(sharded)
    spoil, says = SHARD_BREAKAGES[breakage]
    spoil(sharded)
    with pytest.raises(ModelLoadError, match=says) as caught:
        load(sharded)
    assert str(sharded) in str(caught.value)


def test_shards_give_what_one_file_gives(sharded, llama_folder, settings, batch_of):
    whole = nats(CausalLM.load(llama_folder, None, settings), batch_of(*TEXTS))
    assert nats(CausalLM.load(str(sharded), None, settings), batch_of(*TEXTS)) == pytest.approx(
        whole, rel=1e-6
    )


LIES = {
    "a vocabulary of billions": {"vocab_size": 10**12},
    "layers by the million": {"num_hidden_layers": 10**6},
    "wide layers": {"intermediate_size": 10**10},
    "everything": {"hidden_size": 2**30, "vocab_size": 2**30},
    "more than fits a number": {"hidden_size": 2**62, "vocab_size": 2**62},
    "less than nothing": {"vocab_size": -1},
    "no heads": {"num_attention_heads": 0},
    "a word": {"hidden_size": "huge"},
    "a config that is none": {"text_config": 5},
    "an unknown activation": {"hidden_act": "zzz"},
    "code": {"auto_map": {"AutoConfig": "evil.Config"}, "model_type": "evil"},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_config_that_lies_is_refused_before_it_takes_memory(lie, folder):
    edit_json(folder / "config.json", **LIES[lie])
    with pytest.raises(ModelLoadError) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


def test_experts_by_the_million_are_refused(tmp_path):
    from transformers import MixtralConfig

    config = MixtralConfig(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, num_local_experts=2,
        output_router_logits=True,  # unused here, and placed before the logits
    )  # fmt: skip
    folder = Path(save_model(tmp_path / "moe", config, byte_level_bpe(), bos_token="<s>"))
    assert load(folder)
    edit_json(folder / "config.json", num_local_experts=10**7)
    with pytest.raises(ModelLoadError, match="num_local_experts = 10,000,000"):
        load(folder)


def test_a_tokenizer_that_would_end_the_process_is_refused(folder):
    record = json.loads((folder / "tokenizer.json").read_text())
    record["model"]["continuing_subword_prefix"] = "##"
    (folder / "tokenizer.json").write_text(json.dumps(record))
    with pytest.raises(ModelLoadError, match="continuing_subword_prefix '##'"):
        load(folder)


def test_a_shard_damaged_in_the_cache_is_named(hub, near, sharded):
    hub.site.add("someone/sharded", sharded)
    folder = fetch("someone/sharded", None, near).folder
    cut_off(first_shard(folder).resolve(), -10)
    with pytest.raises(ModelLoadError, match=r"someone/sharded.*model-00001.*damaged"):
        load_weights(open_checkpoint("someone/sharded", None, near))


SMALL = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2}
STATE_SPACE = {
    "mamba": MambaConfig(**SMALL, state_size=4),
    "mamba2": Mamba2Config(
        **SMALL, num_heads=4, head_dim=16, state_size=8, n_groups=2, chunk_size=16
    ),
    "rwkv": RwkvConfig(**SMALL, attention_hidden_size=32, intermediate_size=48, context_length=64),
}


@pytest.mark.parametrize("kind", STATE_SPACE)
def test_models_without_attention_are_scored_as_by_a_plain_loop(kind, tmp_path, settings, batch_of):
    config = copy.deepcopy(STATE_SPACE[kind])
    folder = save_model(tmp_path / kind, config, byte_level_bpe(), bos_token="<s>")
    model = CausalLM.load(folder, None, settings)
    plain = Plain(folder)
    ids = [plain.ids(text, special=False) for text in TEXTS]
    pieces = [own[begin : begin + 31] for own in ids for begin in range(0, len(own), 31)]
    expected = [sum(plain.nats([plain.start, *piece])) for piece in pieces]
    assert nats(model, batch_of(*TEXTS)) == pytest.approx(expected, rel=1e-5)


def quantised_copy(folder: Path) -> None:
    """Turn linear layers into 8-bit integers; also write ``dequantised.safetensors``."""
    packed: dict[str, torch.Tensor] = {}
    plain: dict[str, torch.Tensor] = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        packed[name] = plain[name] = weight
        if name.endswith("proj.weight"):
            scale = weight.abs().amax(1, keepdim=True) / 127
            levels = (weight / scale).round()
            del packed[name]
            # Four numbers an int32, each from 0 to 255.
            packed[f"{name}_packed"] = (levels + 128).to(torch.uint8).view(torch.int32)
            packed[f"{name}_shape"] = torch.tensor(weight.shape)
            packed[f"{name}_scale"] = scale
            plain[name] = levels * scale
    save_file(packed, folder / "model.safetensors", {"format": "pt"})
    save_file(plain, folder / "dequantised.safetensors", {"format": "pt"})
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    edit_json(
        folder / "config.json",
        quantization_config={
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "quantization_status": "compressed",
            "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        },
    )


@pytest.fixture
def quantised(folder) -> Path:
    quantised_copy(folder)
    return folder


def test_quantised_weights_are_scored_as_what_they_stand_for(
    quantised, llama_folder, settings, batch_of, tmp_path
):
    files = open_checkpoint(str(quantised), None, settings)
    assert files.quantisation == "compressed-tensors"
    plain_files = open_checkpoint(llama_folder, None, settings)
    assert plain_files.numerics == "torch.float32 sdpa onednn"
    assert files.numerics == "torch.float32 sdpa compressed-tensors onednn"
    found = nats(CausalLM.load(str(quantised), None, settings), batch_of(*TEXTS))
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in Path(llama_folder).iterdir():
        (plain / path.name).write_bytes(path.read_bytes())
    (quantised / "dequantised.safetensors").rename(plain / "model.safetensors")
    expected = nats(CausalLM.load(str(plain), None, settings), batch_of(*TEXTS))
    assert found == pytest.approx(expected, rel=1e-5)
    assert found != nats(CausalLM.load(llama_folder, None, settings), batch_of(*TEXTS))


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("gptq", "gptq weights.*(gptqmodel|optimum)"),
        ("hqq", "hqq weights.*hqq"),
        ("aqlm", "aqlm weights.*aqlm"),
        ("zzz", "zzz"),
    ],
)
def test_an_unknown_or_missing_way_of_quantising_is_named(method, says, quantised, settings):
    quantised_by = {"quant_method": method, "bits": 4, "group_size": 8}
    edit_json(quantised / "config.json", quantization_config=quantised_by)
    with pytest.raises(ModelLoadError, match=says):
        load_weights(open_checkpoint(str(quantised), None, settings))


def test_without_the_extra_an_adapter_is_refused(folder, tmp_path, settings, monkeypatch):
    monkeypatch.setattr("models.weights.files.import_parts", lambda part: ())
    adapter = adapter_of(str(folder), tmp_path / "adapter")
    with pytest.raises(ModelLoadError, match="holds an adapter, which extras/adapters merges"):
        open_checkpoint(str(adapter), None, settings)


def leaf_modules(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    return [(n, m) for n, m in model.named_modules() if n and not list(m.children())]


@pytest.mark.parametrize("kind", ["llama_folder", "gpt2_folder", "opt_folder"])
def test_a_model_spread_over_devices_is_scored_as_on_one(kind, request, settings, tmp_path):
    files = open_checkpoint(request.getfixturevalue(kind), None, settings)
    ids = [torch.arange(length).numpy() % 400 for length in (5, 30, 17)]
    targets = [row[1:] for row in ids]
    expected = Forward(load_weights(files)).losses(ids, targets)
    model = load_weights(files)
    places = dict.fromkeys([name for name, _ in leaf_modules(model)], "cpu")
    layers = [name for name in places if re.search(r"\.[01]\.", name)]
    places |= dict.fromkeys([*layers, "lm_head"], "disk")
    spread = dispatch_model(
        model, places, main_device="cpu", offload_dir=tmp_path, force_hooks=True
    )
    assert any(parameter.is_meta for parameter in spread.parameters())
    forward = Forward(spread)
    alone = Forward(load_weights(files)).max_batch_tokens
    assert forward.max_batch_tokens == alone, "the head is run at other positions, too"
    for found, wanted in zip(forward.losses(ids, targets), expected, strict=True):
        assert found == pytest.approx(wanted, rel=1e-6)


def test_nothing_of_transformers_own_is_said(folder, caplog):
    weights = load_file(folder / "model.safetensors")
    save_file(
        weights | {"extra.weight": torch.zeros(2)},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    logger = logging.getLogger("transformers")  # does not propagate
    logger.addHandler(caplog.handler)
    try:
        load(folder)
    finally:
        logger.removeHandler(caplog.handler)
    assert not caplog.records


def test_a_large_vocabulary_of_a_config_must_be_that_of_the_weights(folder):
    edit_json(folder / "config.json", vocab_size=500)
    with pytest.raises(
        ModelLoadError,
        match=r"2 tensors.*lm_head.weight: it has shape \(400, 32\), expected \(500, 32\)",
    ):
        load(folder)
