import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from core.errors import ModelLoadError
from models.weights.checkpoint import find_tokenizer
from models.weights.files import (
    choose_files,
    examine_weights,
    folder_digest,
    is_whole,
    read_base,
)

CONFIG = ["config.json", "tokenizer.json"]
SHARDS = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)] + ["model.safetensors.index.json"]


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (["model.safetensors"], ["model.safetensors"]),
        (SHARDS, sorted(SHARDS)),
        (["model.safetensors", *SHARDS], ["model.safetensors"]),  # as transformers prefers it
        (["model.safetensors", "model.fp16.safetensors"], ["model.safetensors"]),
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["model.safetensors", "consolidated.safetensors", "x.gguf"], ["model.safetensors"]),
        (["model.safetensors", "../model.safetensors", "a/b.safetensors"], ["model.safetensors"]),
        (["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"],
         ["adapter_config.json", "adapter_model.safetensors"]),
    ],
)  # fmt: skip
def test_one_set_of_weights_is_chosen(names, weights):
    extra = ["README.md", ".gitattributes", "onnx/model.onnx", "generation_config.json"]
    chosen = choose_files([*names, *extra, *CONFIG], "m", is_trusted=False)
    assert sorted(chosen) == sorted([*CONFIG, "generation_config.json", *weights])


def test_pickles_are_chosen_only_where_allowed():
    names = [*CONFIG, "pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"]
    assert choose_files(names, "m", is_trusted=True)[2:] == sorted(names[2:])
    with pytest.raises(ModelLoadError, match=r"m: its weights are pickles only"):
        choose_files(names, "m", is_trusted=False)
    adapter = ["adapter_config.json", "adapter_model.bin"]
    assert choose_files(adapter, "m", is_trusted=True) == adapter
    with pytest.raises(ModelLoadError, match="pickles only"):
        choose_files(adapter, "m", is_trusted=False)


@pytest.mark.parametrize("names", [[], CONFIG, [*CONFIG, "model.gguf"], ["adapter_config.json"]])
def test_a_model_without_weights_is_refused(names):
    with pytest.raises(ModelLoadError, match="m: has no weights"):
        choose_files(names, "m", is_trusted=True)


def test_weights_are_counted_by_their_headers(llama_folder):
    weights = examine_weights(Path(llama_folder), "m", is_trusted=False)
    path = Path(llama_folder) / "model.safetensors"
    assert weights.num_bytes == path.stat().st_size
    assert weights.num_tensors == 2 * 9 + 3
    # Embedding and head, and in each layer four projections, three of the MLP, and two norms.
    per_layer = 4 * 32 * 32 + 3 * 32 * 48 + 2 * 32
    assert weights.num_elements == 2 * 400 * 32 + 2 * per_layer + 32


def test_a_folder_is_whole_when_its_index_says_so(llama_folder, copy_of):
    folder = copy_of(llama_folder)
    assert is_whole(folder, is_trusted=False)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')
    assert is_whole(folder, is_trusted=False)
    index.write_text(
        '{"weight_map": {"a": "model-00001-of-00002.safetensors",'
        ' "b": "model-00002-of-00002.safetensors"}}'
    )
    assert not is_whole(folder, is_trusted=False)


def test_the_digest_follows_names_and_contents(llama_folder, copy_of):
    folder = copy_of(llama_folder)
    before = folder_digest(folder)
    (folder / "README.md").write_text("nothing of the model's")
    assert folder_digest(folder) == before
    (folder / "vocab.txt").write_text("more")
    after = folder_digest(folder)
    assert after != before
    (folder / "vocab.txt").rename(folder / "vocab.json")
    assert folder_digest(folder) not in {before, after}


def test_asking_the_hub_needs_no_torch():
    code = "import models.weights.hub, models.weights.cache, sys; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/status"])  # one has no size
def test_a_file_without_end_is_refused(tmp_path, target):
    (tmp_path / "model.safetensors").symlink_to(target)
    with pytest.raises(ModelLoadError, match="model.safetensors is not a regular file"):
        folder_digest(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_that_would_be_read_for_hours_is_refused(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ModelLoadError, match=f"{name}.*get the file again"):
        folder_digest(tmp_path)
    (tmp_path / name).rename(tmp_path / "adapter_config.json")
    with pytest.raises(ModelLoadError, match=r"adapter_config.*get the file again"):
        read_base(tmp_path, "m")


def test_weights_of_holes_are_refused(tmp_path):
    header = json.dumps({"t": {"dtype": "U8", "shape": [2**40], "data_offsets": [0, 2**40]}})
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header.encode())
        file.truncate(8 + len(header) + 2**40)
    with pytest.raises(ModelLoadError, match="holes"):
        folder_digest(tmp_path)


def _precompiled(length: int) -> dict[str, str]:
    """Return a normalizer that replaces "a" by a text of this length."""
    units = np.zeros(1024, np.uint32)  # a trie as a double array: offset, has a leaf, label
    units[0] = 256 << 10
    units[256 ^ ord("a")] = (256 ^ ord("a") ^ 512) << 10 | 1 << 8 | ord("a")
    units[512] = 1 << 31  # the leaf: the first replacement
    table = (4096).to_bytes(4, "little") + units.tobytes() + b"x" * length + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}


def _replacing(pattern: dict[str, str]) -> dict[str, object]:
    step = {"type": "Replace", "pattern": pattern, "content": "a" * 100}
    return {"type": "Sequence", "normalizers": [step] * 5}


def test_the_table_of_replacements_is_one():
    normalizer = Tokenizer.from_str(_tokenizer(normalizer=_precompiled(3))).normalizer
    assert normalizer.normalize_str("aab") == "xxxxxxb"


def _tokenizer(model: dict[str, object] | None = None, **parts: object) -> str:
    words = {"type": "WordPiece", "unk_token": "x", "continuing_subword_prefix": "",
             "max_input_chars_per_word": 100, "vocab": {"x": 0}}  # fmt: skip
    rest = dict.fromkeys(["normalizer", "pre_tokenizer", "post_processor", "decoder"])
    head = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    return json.dumps({**head, **rest, "model": words | (model or {}), **parts})


_TWICE = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
          "pair": [], "special_tokens": {}}  # fmt: skip
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (_tokenizer(normalizer={"type": "Prepend", "prepend": "x" * 100}), "101 times"),
        (_tokenizer(normalizer=_replacing({"String": "a"})), "1e+10 times"),
        (_tokenizer(normalizer=_replacing({"Regex": ""})), "1e+10 times"),
        (_tokenizer(normalizer=_precompiled(1000)), "1e+03 times"),
        (_tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "ByteLevel"}] * 9}),
         "512 times"),
        (_tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [_BYTES] * 9}),
         "512 times"),
        (_tokenizer(post_processor={"type": "Sequence", "processors": [_TWICE] * 9}), "512 times"),
        (_tokenizer({"max_input_chars_per_word": 10**6}), "pieces of 1,000,000 characters"),
        (_tokenizer({"type": "Unigram", "vocab": [["<unk>", 0], ["a" * 2000, -1]]}), "2,000"),
        (_tokenizer({"vocab": {"x": 2**31}}), "token ids up to 2,147,483,648"),
        (_tokenizer(normalizer=_precompiled(3) | {"precompiled_charsmap": ""}),
         "missing or broken"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_no_text_needs_is_refused(tmp_path, content, why):
    Tokenizer.from_str(_tokenizer())  # else the library would refuse each content
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelLoadError, match=re.escape(why)):
        find_tokenizer(tmp_path, "m")


def test_a_tokenizer_made_from_other_files_is_checked(tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").write_text("[UNK]\na\nb\nc\n")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}')
    find_tokenizer(tmp_path, "m")
    monkeypatch.setattr("models.weights.tokenizer_files._MAX_LENGTH", 99)
    with pytest.raises(ModelLoadError, match="pieces of 100 characters"):
        find_tokenizer(tmp_path, "m")
