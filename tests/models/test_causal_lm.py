import math
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    Qwen2Config,
    T5Config,
    XLNetConfig,
)

from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import folder_digest
from tests.models.conftest import SENTENCES, cut_off, edit_json


def test_a_uniform_model_charges_the_vocabulary_s_logarithm(settings, folder, batch_of):
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model = CausalLM.load(str(folder), None, settings)
    batch = batch_of("x", *(each * 6 for each in SENTENCES))
    table = pa.concat_tables(model.score([batch], get_protocol("default")))
    for row in table.to_pylist():
        assert row["nll_nats"] == pytest.approx(row["num_tokens"] * math.log(400), rel=1e-6)


def test_the_revision_of_a_folder_follows_its_files(llama_folder, settings, folder):
    revision = CausalLM.load(str(folder), None, settings).revision
    assert revision == folder_digest(Path(llama_folder))
    assert len(revision) == 16
    (folder / "notes.md").write_text("not part of the model")
    assert CausalLM.load(str(folder), revision, settings).revision == revision
    path = folder / "tokenizer.json"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ModelLoadError, match=f"expected {revision}"):
        CausalLM.load(str(folder), revision, settings)


def enlarge_tokenizer(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<more>"])
    tokenizer.save_pretrained(folder)


BREAKAGES = {
    "a larger tokenizer": (enlarge_tokenizer, "up to 400 and the embedding 400 rows"),
    "an adapter": (lambda f: (f / "adapter_config.json").write_text("{}"), "holds an adapter"),
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "one folder too high": (
        lambda f: [
            shutil.copytree(f, f.parent / "step"),
            shutil.copytree(f.parent / "step", f / "step-10"),
            shutil.move(f.parent / "step", f / "step-9"),
            (f / "config.json").unlink(),
        ],
        "no config.json.*; give its folder step-10, which has one",
    ),
    "config cut off": (lambda f: (f / "config.json").write_text("{"), "config.json"),
    "unknown kind": (lambda f: edit_json(f / "config.json", model_type="zzz"), "zzz"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "weights"),
    "weights cut off": (lambda f: cut_off(f / "model.safetensors", 999), "cannot be loaded"),
    "a layer missing": (
        lambda f: edit_json(f / "config.json", num_hidden_layers=3),
        r"tensors are missing.*model\.layers\.2",
    ),
    "shapes differ": (lambda f: edit_json(f / "config.json", hidden_size=64), "weights"),
    "no tokenizer": (
        lambda f: [(f / n).unlink() for n in ("tokenizer.json", "tokenizer_config.json")],
        "the tokenizer is missing: none of its files is there",
    ),
    "tokenizer cut off": (lambda f: (f / "tokenizer.json").write_text("{"), "missing or broken"),
    "tokenizer of another kind": (
        lambda f: (f / "tokenizer.json").write_text('{"model": 5}'),
        "missing or broken",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_broken_folders_are_refused_by_what_is_wrong(breakage, settings, folder):
    spoil, says = BREAKAGES[breakage]
    spoil(folder)
    with pytest.raises(ModelLoadError, match=says) as caught:
        CausalLM.load(str(folder), None, settings)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("config", [GPT2Config, LlamaConfig, Qwen2Config, Gemma2Config])
def test_a_folder_without_tokenizer_gets_one_sentence(config, settings, folder):
    """transformers makes a tokenizer of special tokens alone for some kinds, without an error."""
    config(vocab_size=400).save_pretrained(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelLoadError, match="tokenizer is missing"):
        CausalLM.identify(str(folder), None, settings)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (BertConfig(vocab_size=400, hidden_size=32, num_attention_heads=2), "masked"),
        (T5Config(vocab_size=400, d_model=32, num_heads=2), "encoder-decoder"),
    ],
)
def test_models_that_are_not_causal_are_refused(config, says, settings, folder):
    config.save_pretrained(folder)
    with pytest.raises(NotMeasurable, match=says):
        CausalLM.load(str(folder), None, settings)


def test_a_causal_config_does_not_hide_a_model_that_looks_ahead(settings, folder):
    """XLNet's class counts as causal; without a permutation it reads the whole text."""
    config = XLNetConfig(vocab_size=400, d_model=32, n_layer=2, n_head=2, d_inner=48)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    with pytest.raises(NotMeasurable, match="later tokens"):
        CausalLM.load(str(folder), None, settings)


@pytest.mark.parametrize("location", ["/no/such/folder", "./nowhere", "a/b/c"])
def test_folders_that_are_not_there_are_not_looked_for_elsewhere(location, settings):
    with pytest.raises(ModelLoadError, match="no such folder"):
        CausalLM.load(location, None, settings)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


@pytest.mark.parametrize("location", ["someone/absent", "absent", "not a name/!"])
def test_a_hub_id_that_cannot_be_had_is_refused_with_what_to_do(hub, location, settings):
    with pytest.raises(ModelLoadError, match=r"check the name, the revision, the network"):
        CausalLM.load(location, "v9", settings)


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"device": "toaster"}, "toaster"), ({"device": "cpu", "dtype": "int4"}, "int4")],
)
def test_settings_that_cannot_be_met_are_refused(changes, says, llama_folder):
    with pytest.raises(UsageError, match=says):
        CausalLM.load(llama_folder, None, Settings(**changes))
