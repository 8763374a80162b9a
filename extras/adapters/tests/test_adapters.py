import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from core.errors import ModelLoadError, NotMeasurable
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import open_checkpoint
from models.weights.files import EVERYTHING, folder_digest, read_base
from tests.models.conftest import cut_off, edit_json, nats

# Of peft, about what transformers has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")

TEXTS = ("The tide leaves a mark on the sand.", "Models read what was written.", "早い者勝ち 🙂")
WEIGHTS = "adapter_model.safetensors"
TARGETS = ["q_proj", "v_proj", "up_proj", "down_proj"]
LORA = {"r": 4, "target_modules": TARGETS, "task_type": "CAUSAL_LM"}
DORA = {"r": 2, "target_modules": "all-linear", "use_rslora": True, "use_dora": True}
IA3 = {"target_modules": ["k_proj", "down_proj"], "feedforward_modules": ["down_proj"]}
WHOLE = {"r": 2, "target_modules": ["q_proj"], "modules_to_save": ["lm_head", "embed_tokens"]}


def save_adapter(
    base: str,
    folder: Path,
    kind: str = "LoraConfig",
    given: dict[str, object] = LORA,
    named: str | None = None,
) -> Path:
    """Write an adapter with large changes, as peft does; ``named`` is the stated base."""
    import peft  # which takes a second, and each process imports this module

    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    wrapped = peft.get_peft_model(model, getattr(peft, kind)(**given))
    with torch.no_grad():
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.5)
    wrapped.save_pretrained(folder)
    edit_json(folder / "adapter_config.json", base_model_name_or_path=named or base)
    return folder


@pytest.fixture
def adapter(llama_folder, tmp_path) -> Path:
    return save_adapter(llama_folder, tmp_path / "adapter")


def merged_by_peft(base: str, adapter: Path, folder: Path) -> str:
    from peft import PeftModel

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    PeftModel.from_pretrained(model, adapter).merge_and_unload().save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("LoraConfig", LORA),
        ("LoraConfig", DORA),
        ("LoraConfig", WHOLE),
        ("IA3Config", IA3),
    ],
    ids=["lora", "dora", "with whole modules", "ia3"],
)
def test_an_adapter_is_scored_as_the_merged_model(
    kind, given, llama_folder, settings, tmp_path, batch_of
):
    adapter = save_adapter(llama_folder, tmp_path / "adapter", kind, given)
    merged = merged_by_peft(llama_folder, adapter, tmp_path / "merged")
    found = nats(CausalLM.load(str(adapter), None, settings), batch_of(*TEXTS))
    expected = nats(CausalLM.load(merged, None, settings), batch_of(*TEXTS))
    assert found == pytest.approx(expected, rel=1e-6)
    base = nats(CausalLM.load(llama_folder, None, settings), batch_of(*TEXTS))
    assert all(abs(a - b) > 1e-3 * b for a, b in zip(found, base, strict=True))


def test_the_revision_names_the_adapter_s_files_and_the_base_s(
    adapter, llama_folder, settings, copy_of
):
    own_base = copy_of(llama_folder)
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(own_base))
    revision = CausalLM.load(str(adapter), None, settings).revision
    digest, own, base = revision.split("+")
    assert base == CausalLM.load(str(own_base), None, settings).revision
    assert len({digest, own, base}) == 3
    assert CausalLM.load(str(adapter), revision, settings).revision == revision
    assert CausalLM.load(str(adapter), own, settings).revision == revision
    edit_json(own_base / "config.json", rope_theta=9999.0)
    changed = CausalLM.load(str(adapter), None, settings).revision
    assert changed[:12] != revision[:12]
    with pytest.raises(ModelLoadError, match=f"expected {base}"):
        CausalLM.load(str(adapter), revision, settings)
    edit_json(adapter / "adapter_config.json", lora_alpha=5)
    with pytest.raises(ModelLoadError, match=f"expected {own}"):
        CausalLM.load(str(adapter), own, settings)


@pytest.mark.smoke
def test_a_relative_base_counts_from_the_adapter(llama_folder, settings, copy_of, tmp_path):
    base = copy_of(llama_folder)
    adapter = save_adapter(llama_folder, tmp_path / "mine" / "adapter", named=f"../../{base.name}")
    assert read_base(adapter, "x") == (str(base), None)
    model = CausalLM.load(str(adapter), None, settings)
    assert model.name == "adapter"


def test_adapter_and_base_come_from_the_hub_at_their_revisions(
    hub, near, llama_folder, tmp_path, batch_of
):
    adapter = save_adapter(llama_folder, tmp_path / "adapter", named="base/model")
    edit_json(adapter / "adapter_config.json", revision="v1")
    pinned = hub.site.add("base/model", Path(llama_folder), revision="v1")
    own = hub.site.add("someone/adapter", adapter)
    model = CausalLM.load("someone/adapter", None, near)
    assert model.revision.endswith(f"+{own}+{pinned}")
    local = CausalLM.load(str(save_adapter(llama_folder, tmp_path / "local")), None, near)
    assert nats(model, batch_of("abc")) == pytest.approx(nats(local, batch_of("abc")), rel=1e-6)
    assert CausalLM.load("someone/adapter", model.revision, near).revision == model.revision


def test_its_own_tokenizer_is_used_where_it_has_one(
    adapter, llama_folder, starting_folder, settings
):
    assert CausalLM.load(str(adapter), None, settings)
    for path in Path(starting_folder).glob("tokenizer*"):
        (adapter / path.name).write_bytes(path.read_bytes())
    files = CausalLM.identify(str(adapter), None, settings).files
    assert files.tokenizer("a")["input_ids"][0] == files.tokenizer.bos_token_id
    tokenizer = AutoTokenizer.from_pretrained(adapter)
    tokenizer.add_tokens(["<more>"])
    tokenizer.save_pretrained(adapter)
    with pytest.raises(ModelLoadError, match="up to 400 and the embedding 400 rows"):
        CausalLM.load(str(adapter), None, settings)


def test_without_the_library_the_extra_is_named(adapter, settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelLoadError, match=r"pip install -c constraints.txt -e '\.\[peft\]'"):
        CausalLM.load(str(adapter), None, settings)


def test_pickled_adapters_need_trust(adapter, settings):
    path = adapter / WEIGHTS
    torch.save(load_file(path), adapter / "adapter_model.bin")
    path.unlink()
    with pytest.raises(ModelLoadError, match="adapter_model.bin.*--trust code"):
        CausalLM.load(str(adapter), None, settings)
    own = folder_digest(adapter, EVERYTHING)  # pins the adapter, not its base
    with pytest.raises(ModelLoadError, match=f"has revision .*, expected {own}") as caught:
        open_checkpoint(str(adapter), own, settings, is_trusted=True)
    whole = str(caught.value).partition("has revision ")[2].partition(",")[0]
    assert open_checkpoint(str(adapter), whole, settings, is_trusted=True).adapter == adapter


def rename_tensors(folder: Path) -> None:
    path = folder / WEIGHTS
    tensors = load_file(path)
    save_file({name.replace("q_proj", "z_proj"): t for name, t in tensors.items()}, path)


def config_of(**changes: object):
    return lambda folder: edit_json(folder / "adapter_config.json", **changes)


BREAKAGES = {
    "no base": (config_of(base_model_name_or_path=None), "names None"),
    "no such base": (config_of(base_model_name_or_path="./absent"), r"an adapter of \./absent"),
    "broken config": (
        lambda f: (f / "adapter_config.json").write_text("{"),
        "does not say for which model",
    ),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "without weights"),
    "weights cut off": (lambda f: cut_off(f / WEIGHTS, 500), "cannot be put on"),
    "tensors of another model": (rename_tensors, "have no place"),
    "fewer layers than stated": (config_of(target_modules=["q_proj"]), "have no place"),
    "more layers than stated": (config_of(target_modules=[*TARGETS, "k_proj"]), "missing from"),
    "a module that is not there": (config_of(target_modules=["nowhere"]), "cannot be put on"),
    "another rank": (config_of(r=8), "cannot be put on"),
    "a rank that fills the memory": (config_of(r=10**9), "cannot be put on"),
    "rank of nothing": (config_of(r=0), "cannot be put on"),
    "unknown kind": (config_of(peft_type="ZZZ"), "cannot be put on"),
    "a module to import": (
        config_of(megatron_config={"a": 1}, megatron_core="antigravity"),
        "bring their own code",
    ),
    "a start that changes the base": (config_of(init_lora_weights="pissa"), "changed base"),
    "not a number": (
        lambda f: save_file(
            {n: t * torch.nan for n, t in load_file(f / WEIGHTS).items()}, f / WEIGHTS
        ),
        "cannot be merged",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_broken_adapters_are_refused_by_what_is_wrong(breakage, adapter, settings):
    spoil, says = BREAKAGES[breakage]
    spoil(adapter)
    with pytest.raises(ModelLoadError, match=says) as caught:
        CausalLM.load(str(adapter), None, settings)
    assert str(adapter) in str(caught.value)


def test_an_adapter_of_quantised_weights_is_refused(adapter, llama_folder, settings, copy_of):
    quantised = copy_of(llama_folder)
    how = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
    edit_json(quantised / "config.json", quantization_config=how)
    edit_json(adapter / "adapter_config.json", base_model_name_or_path=str(quantised))
    with pytest.raises(ModelLoadError, match=r"are quantised \(compressed-tensors\)"):
        open_checkpoint(str(adapter), None, settings)


def test_an_adapter_of_an_adapter_is_refused(adapter, llama_folder, settings, tmp_path):
    second = save_adapter(llama_folder, tmp_path / "second", named=str(adapter))
    with pytest.raises(ModelLoadError, match="an adapter itself"):
        CausalLM.load(str(second), None, settings)


def test_adapters_that_change_no_weights_are_refused(llama_folder, settings, tmp_path):
    prompt = {"num_virtual_tokens": 4, "task_type": "CAUSAL_LM"}
    folder = save_adapter(llama_folder, tmp_path / "prompt", "PromptTuningConfig", prompt)
    with pytest.raises(NotMeasurable, match="PROMPT_TUNING adapter"):
        CausalLM.load(str(folder), None, settings)


def test_adapters_for_another_task_are_refused(adapter, settings):
    edit_json(adapter / "adapter_config.json", task_type="SEQ_CLS")
    with pytest.raises(NotMeasurable, match="trained for SEQ_CLS"):
        CausalLM.load(str(adapter), None, settings)
