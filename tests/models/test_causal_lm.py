from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, BertConfig, T5Config, XLNetConfig

from core.errors import BatchTooLarge, ModelLoadError, NotMeasurable, UsageError
from core.schemas import LOSSES, validate
from core.settings import Settings
from models.causal_lm import CausalLM
from models.checkpoint import folder_digest
from models.protocols import get_protocol

TEXTS = [
    "The tide leaves a mark on the sand, and the next tide washes it away. " * 6,
    "早い者勝ち 🙂",
    "x",
    "Models read what was written before them; text goes on being written.",
    "def add(a, b):\n    return a + b  # sums\n" * 5,
]


def nats(model: CausalLM, batch: pa.RecordBatch, protocol: str) -> list[float]:
    table = pa.concat_tables(model.score([batch], get_protocol(protocol)))
    return validate(table, LOSSES)["nll_nats"].to_pylist()


def plain_loop(folder: str, text: str, context: int) -> list[float]:
    """Disjoint windows after the start token, all logits, float64, one window at a time."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    sums = []
    for begin in range(0, len(ids), context - 1):
        window = torch.tensor([[start, *ids[begin : begin + context - 1]]])
        with torch.no_grad():
            logits = model(input_ids=window).logits[0, :-1]
        chosen = logits.log_softmax(-1).gather(-1, window[0, 1:, None])
        sums.append(-float(chosen.sum()))
    return sums


@pytest.mark.parametrize("kind", ["llama_folder", "gpt2_folder", "opt_folder", "mamba_folder"])
def test_losses_are_those_of_a_plain_loop_in_float64(kind, request, settings, batch_of):
    folder = request.getfixturevalue(kind)
    model = CausalLM.load(folder, None, settings)
    expected = [value for text in TEXTS for value in plain_loop(folder, text, 32)]
    assert nats(model, batch_of(*TEXTS), "disjoint-32") == pytest.approx(expected, rel=1e-6)


def test_a_uniform_model_charges_the_vocabulary_s_logarithm(
    llama_folder, settings, copy_of, batch_of
):
    folder = copy_of(llama_folder)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"].zero_()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model = CausalLM.load(str(folder), None, settings)
    table = pa.concat_tables(model.score([batch_of(*TEXTS)], get_protocol("default")))
    for row in table.to_pylist():
        assert row["nll_nats"] == pytest.approx(row["num_tokens"] * math.log(400), rel=1e-6)


def test_sliding_scores_each_token_given_its_own_window(llama_folder, settings, batch_of):
    model = CausalLM.load(llama_folder, None, settings)
    plain = AutoModelForCausalLM.from_pretrained(llama_folder, dtype=torch.float64).eval()
    ids = AutoTokenizer.from_pretrained(llama_folder)(TEXTS[0])["input_ids"]
    expected = []
    for begin, first, end, start in [(0, 0, 15, [0]), *slides(len(ids), 16, 4)]:
        window = torch.tensor([[*start, *ids[begin:end]]])
        with torch.no_grad():
            logits = plain(input_ids=window).logits[0]
        losses = -logits[:-1].log_softmax(-1).gather(-1, window[0, 1:, None])[:, 0]
        expected.append(float(losses[-(end - first) :].sum()))
    assert nats(model, batch_of(TEXTS[0]), "sliding-16-4") == pytest.approx(expected, rel=1e-6)


def slides(n: int, context: int, stride: int) -> list[tuple[int, int, int, list[int]]]:
    firsts = range(context - 1, n, stride)
    return [(min(f + stride, n) - context, f, min(f + stride, n), []) for f in firsts]


def test_the_default_protocol_takes_the_model_s_context_and_others_refuse(
    gpt2_folder, settings, batch_of
):
    model = CausalLM.load(gpt2_folder, None, settings)
    assert (model.context, model.text_model.start_token) == (48, 1)  # EOS, for want of BOS
    table = pa.concat_tables(model.score([batch_of(TEXTS[0])], get_protocol("default")))
    assert table["num_tokens"].to_pylist()[0] == 47
    with pytest.raises(NotMeasurable, match="--context 48"):
        nats(model, batch_of("a"), "uncheatable")
    with pytest.raises(NotMeasurable, match="--context 48"):
        model.scoring_id(get_protocol("sliding"))


def test_without_a_start_token_a_window_s_first_token_costs_the_vocabulary(
    startless_folder, settings, batch_of
):
    model = CausalLM.load(startless_folder, None, settings)
    assert model.text_model.start_token is None
    assert nats(model, batch_of("x"), "default") == [pytest.approx(math.log(400))]
    table = pa.concat_tables(model.score([batch_of(TEXTS[0])], get_protocol("disjoint-16")))
    assert table["num_tokens"].to_pylist()[0] == 16
    with pytest.raises(NotMeasurable, match="needs a start token and the tokenizer has none"):
        nats(model, batch_of("x"), "lm-eval")


def test_a_tokenizer_s_own_start_token_is_text_of_the_peers_protocols_only(
    starting_folder, settings, batch_of
):
    model = CausalLM.load(starting_folder, None, settings)

    def tokens(name: str) -> int:
        table = pa.concat_tables(model.score([batch_of("abc")], get_protocol(name)))
        return int(table["num_tokens"].to_numpy().sum())

    assert tokens("default") == tokens("lm-eval-no-bos") == 3
    assert tokens("lm-eval") == 4  # BOS given BOS
    assert tokens("uncheatable-16") == 3  # BOS is the chunk's first token


def test_texts_without_tokens_keep_their_bytes_and_say_so(llama_folder, settings, batch_of):
    model = CausalLM.load(llama_folder, None, settings)
    table = pa.concat_tables(model.score([batch_of("", "ab", "")], get_protocol("default")))
    rows = validate(table, LOSSES).to_pylist()
    assert [row["reason"] for row in rows] == ["no_tokens", None, "no_tokens"]
    assert math.isnan(rows[0]["nll_nats"])


def test_non_finite_losses_are_nan_with_a_reason(llama_folder, settings, copy_of, batch_of):
    folder = copy_of(llama_folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"].fill_(math.nan)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model = CausalLM.load(str(folder), None, settings)
    table = pa.concat_tables(model.score([batch_of("abc")], get_protocol("default")))
    (row,) = validate(table, LOSSES).to_pylist()
    assert math.isnan(row["nll_nats"])
    assert (row["reason"], row["num_bytes"]) == ("non_finite", 3)


def gpu_is_full() -> None:
    raise torch.OutOfMemoryError("full")


def host_is_full() -> None:
    torch.empty(2**50)


@pytest.mark.parametrize("fill", [gpu_is_full, host_is_full])
def test_full_memory_halves_the_budget_for_another_go(fill, llama_folder, settings, batch_of):
    model = CausalLM.load(llama_folder, None, settings)
    expected = nats(model, batch_of(*TEXTS), "disjoint-32")
    passes: list[int] = []
    room = 70

    def refuse(_module: object, _args: object, options: dict[str, torch.Tensor]) -> None:
        passes.append(options["input_ids"].numel())
        if passes[-1] > room:
            fill()

    body = model._batches.backend._model.base_model
    body.register_forward_pre_hook(refuse, with_kwargs=True)
    assert model.facts.batch_tokens == 1024
    budgets = []
    while not budgets or budgets[-1] > room:
        with pytest.raises(BatchTooLarge, match="score again"):
            nats(model, batch_of(*TEXTS), "disjoint-32")
        budgets.append(model.facts.batch_tokens)
        assert 1 <= budgets[-1] <= passes[-1] // 2
    assert nats(model, batch_of(*TEXTS), "disjoint-32") == pytest.approx(expected, rel=1e-6)
    assert max(passes) > room >= passes[-1]
    room = 2
    with pytest.raises(NotMeasurable, match="does not fit"):
        nats(model, batch_of("abc"), "default")


def test_half_precision_weights_are_summed_in_float32(llama_folder, batch_of):
    exact = CausalLM.load(llama_folder, None, Settings(device="cpu", dtype="float32"))
    rough = CausalLM.load(llama_folder, None, Settings(device="cpu", dtype="bfloat16"))
    protocol = get_protocol("default")
    assert exact.scoring_id(protocol) != rough.scoring_id(protocol)
    assert nats(rough, batch_of(*TEXTS), "default") == pytest.approx(
        nats(exact, batch_of(*TEXTS), "default"), rel=2e-2
    )


def test_quantised_weights_are_other_cells(llama_folder, settings, copy_of):
    folder = copy_of(llama_folder)
    plain = CausalLM.identify(str(folder), None, settings)
    edit_json(folder / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    quantised = CausalLM.identify(str(folder), None, settings)
    protocol = get_protocol("default")
    assert plain.scoring_id(protocol) != quantised.scoring_id(protocol)


def test_the_revision_of_a_folder_follows_its_files(llama_folder, settings, copy_of):
    folder = copy_of(llama_folder)
    revision = CausalLM.load(str(folder), None, settings).revision
    assert revision == folder_digest(Path(llama_folder))
    assert len(revision) == 16
    (folder / "notes.md").write_text("not part of the model")
    assert CausalLM.load(str(folder), revision, settings).revision == revision
    path = folder / "tokenizer.json"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ModelLoadError, match=f"expected {revision}"):
        CausalLM.load(str(folder), revision, settings)


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:999])


BREAKAGES = {
    "an adapter": (lambda f: (f / "adapter_config.json").write_text("{}"), "holds an adapter"),
    "no config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "config cut off": (lambda f: (f / "config.json").write_text("{"), "config.json"),
    "unknown kind": (lambda f: edit_json(f / "config.json", model_type="zzz"), "zzz"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "weights"),
    "weights cut off": (
        lambda f: (f / "model.safetensors").write_bytes(
            (f / "model.safetensors").read_bytes()[:999]
        ),
        "weights cannot be loaded",
    ),
    "a layer missing": (
        lambda f: edit_json(f / "config.json", num_hidden_layers=3),
        r"tensors are missing.*model\.layers\.2",
    ),
    "shapes differ": (lambda f: edit_json(f / "config.json", hidden_size=64), "weights"),
    "no tokenizer": (
        lambda f: [(f / n).unlink() for n in ("tokenizer.json", "tokenizer_config.json")],
        "tokenizer is missing or broken",
    ),
    "tokenizer cut off": (lambda f: (f / "tokenizer.json").write_text("{"), "missing or broken"),
    "tokenizer of another kind": (
        lambda f: (f / "tokenizer.json").write_text('{"model": 5}'),
        "missing or broken",
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_broken_folders_are_refused_by_what_is_wrong(breakage, llama_folder, settings, copy_of):
    spoil, says = BREAKAGES[breakage]
    folder = copy_of(llama_folder)
    spoil(folder)
    with pytest.raises(ModelLoadError, match=says) as caught:
        CausalLM.load(str(folder), None, settings)
    assert str(folder) in str(caught.value)


def test_a_tokenizer_larger_than_the_embedding_is_refused(llama_folder, settings, copy_of):
    folder = copy_of(llama_folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<more>"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ModelLoadError, match=r"up to 400 and the embedding 400 rows"):
        CausalLM.load(str(folder), None, settings)


def test_pickled_weights_need_to_be_allowed(llama_folder, copy_of, batch_of):
    folder = copy_of(llama_folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelLoadError, match="allow_pickle_weights"):
        CausalLM.load(str(folder), None, Settings(device="cpu"))
    allowed = Settings(device="cpu", allow_pickle_weights=True)
    model = CausalLM.load(str(folder), None, allowed)
    original = CausalLM.load(llama_folder, None, allowed)
    assert nats(model, batch_of("abc"), "default") == nats(original, batch_of("abc"), "default")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (BertConfig(vocab_size=400, hidden_size=32, num_attention_heads=2), "masked"),
        (T5Config(vocab_size=400, d_model=32, num_heads=2), "encoder-decoder"),
    ],
)
def test_models_that_are_not_causal_are_refused(config, says, llama_folder, settings, copy_of):
    folder = copy_of(llama_folder)
    config.save_pretrained(folder)
    with pytest.raises(NotMeasurable, match=says):
        CausalLM.load(str(folder), None, settings)


def test_a_causal_config_does_not_hide_a_model_that_looks_ahead(llama_folder, settings, copy_of):
    """XLNet counts as causal by its class; without a permutation it sees the whole text."""
    folder = copy_of(llama_folder)
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
    """An empty hub cache, and no way to the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def test_a_hub_id_is_loaded_at_its_commit(hub, llama_folder, settings, batch_of):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = hub / "models--someone--tiny"
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    for path in Path(llama_folder).iterdir():
        (snapshot / path.name).write_bytes(path.read_bytes())
    model = CausalLM.load("someone/tiny", None, settings)
    assert (model.name, model.revision) == ("someone/tiny", commit)
    local = CausalLM.load(llama_folder, None, settings, name="twin")
    assert local.name == "twin"
    assert nats(local, batch_of("abc"), "default") == nats(model, batch_of("abc"), "default")


@pytest.mark.parametrize("location", ["someone/absent", "absent", "not a name/!"])
def test_a_hub_id_that_cannot_be_had_is_refused_with_what_to_do(hub, location, settings):
    with pytest.raises(ModelLoadError, match=r"check the name, the revision, the network"):
        CausalLM.load(location, "v9", settings)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"device": "toaster"}, "toaster"),
        ({"device": "cpu", "dtype": "int4"}, "int4"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(changes, says, llama_folder):
    with pytest.raises(UsageError, match=says):
        CausalLM.load(llama_folder, None, Settings(**changes))
