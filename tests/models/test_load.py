import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from core.errors import ModelLoadError, UnknownName
from core.settings import Settings
from models.catalogue import ModelEntry, find_model
from models.load import load_scorer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), device="cpu")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A causal language model of 258 tokens with random weights."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(["<s>", *alphabet])}, merges=[]
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>"])
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=32,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>").save_pretrained(
        tmp_path / "tiny"
    )
    return tmp_path / "tiny"


def test_a_control_becomes_a_compressor(settings: Settings) -> None:
    scorer = load_scorer(find_model("control:zstd", settings), settings)

    assert type(scorer).__name__ == "Compressor"
    assert scorer.name == "control:zstd"


def test_a_folder_becomes_a_causal_model_under_its_name(folder: Path, settings: Settings) -> None:
    scorer = load_scorer(find_model(str(folder), settings), settings)

    assert type(scorer).__name__ == "CausalLM"
    assert scorer.name == "tiny"
    assert scorer.revision


def test_the_name_of_the_catalogue_wins_over_the_folder(folder: Path, settings: Settings) -> None:
    entry = ModelEntry(name="mine", location=str(folder))

    assert load_scorer(entry, settings).name == "mine"


def test_the_revision_is_passed_on(folder: Path, settings: Settings) -> None:
    entry = ModelEntry(name="mine", location=str(folder), revision="0123456789abcdef")

    with pytest.raises(ModelLoadError, match="0123456789abcdef"):
        load_scorer(entry, settings)


def test_a_folder_without_a_model_is_refused(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(ModelLoadError, match=r"config\.json"):
        load_scorer(find_model(str(tmp_path / "empty"), settings), settings)


def test_an_unknown_control_is_refused(settings: Settings) -> None:
    entry = ModelEntry(name="control:none", kind="control", location="none")

    with pytest.raises(UnknownName, match="control:none"):
        load_scorer(entry, settings)


def test_compressors_are_loaded_without_torch() -> None:
    code = (
        "import sys; from core.settings import Settings; from models.load import load_scorer; "
        "from models.catalogue import find_model; settings = Settings(); "
        "load_scorer(find_model('control:xz', settings), settings); "
        "sys.exit('torch' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
