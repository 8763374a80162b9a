import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import MambaConfig, PreTrainedConfig, RwkvConfig

from core.errors import (
    MalformedInput,
    ModelLoadError,
    NotMeasurable,
    NotReproducible,
    TidemarkError,
    UsageError,
)
from core.settings import Settings
from extras.codec.coding import Compressed, decompress
from extras.codec.coding import compress as compressed
from extras.codec.file import pack, unpack
from models.catalogue import ModelEntry, entry_of_folder
from models.scoring.protocols import get_protocol
from models.scoring.token_scorer import CausalLM
from tests.models.conftest import SENTENCES, byte_level_bpe, llama_config
from tests.models.conftest import save_model as save_tiny

TEXT = " ".join(SENTENCES) * 4
TEXTS = {
    "empty": "",
    "space": " ",
    "whitespace": "\n\n \t \r\n   ",
    "one letter": "x",
    "nul": "a\0b\0\0",
    "carriage returns": "one\r\ntwo\rthree\n",
    "byte order mark": "\ufeffmarked",
    "emoji": "🙂👩‍👩‍👧‍👦🏳️‍🌈" * 9,
    "combining marks": "e\u0301 n\u0303 ạ̈" * 5 + "é ñ",
    "special tokens": "</s> and <s> are spelt out <|endoftext|>",
    "replacement": "\ufffd\ufffe\uffff\U0010ffff",
}


def save_model(folder: Path, config: PreTrainedConfig, tokenizer: Tokenizer, **special: str) -> str:
    return save_tiny(folder, config, tokenizer, scale=4, model_max_length=64, **special)


@pytest.fixture(scope="session")
def mamba_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = MambaConfig(vocab_size=400, hidden_size=32, num_hidden_layers=2, state_size=8)
    folder = tmp_path_factory.mktemp("models") / "tiny-mamba"
    return save_model(folder, config, byte_level_bpe(), bos_token="<s>")


@pytest.fixture(scope="session")
def rwkv_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    config = RwkvConfig(
        vocab_size=400, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32,
        context_length=64,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("models") / "tiny-rwkv"
    return save_model(folder, config, byte_level_bpe(), bos_token="<s>")


def sentencepiece_like(byte_fallback: bool) -> Tokenizer:
    """Make a BPE with marks for spaces, one in front; unknown characters become bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(["The tide leaves a mark on the sand."] * 9, trainer)
    plain = json.loads(tokenizer.to_str())
    plain["added_tokens"] = plain["added_tokens"][:2]  # bytes are no added tokens
    return Tokenizer.from_str(json.dumps(plain))


@pytest.fixture(scope="session")
def fallback_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "byte-fallback"
    return save_model(folder, llama_config(), sentencepiece_like(True), bos_token="<s>")


@pytest.fixture(scope="session")
def normalising_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    tokenizer = byte_level_bpe()
    tokenizer.normalizer = normalizers.NFC()
    folder = tmp_path_factory.mktemp("models") / "normalises"
    return save_model(folder, llama_config(), tokenizer, bos_token="<s>")


@pytest.fixture(scope="session")
def lettered_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    tokenizer = Tokenizer(
        models.WordLevel({"<unk>": 0, **{chr(32 + i): i + 1 for i in range(95)}}, "<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    folder = tmp_path_factory.mktemp("models") / "letters"
    return save_model(folder, llama_config(vocab_size=96), tokenizer)


def entry(folder: str | Path) -> ModelEntry:
    return entry_of_folder(Path(folder))


def compress(text: str, model: ModelEntry, settings: Settings) -> bytes:
    return compressed(text, model, settings).data


def predicted_bytes(folder: str, batch: pa.RecordBatch, settings: Settings) -> list[float]:
    scorer = CausalLM.load(folder, None, settings)
    losses = pa.concat_tables(scorer.score([batch], get_protocol("default")))
    return [nats / math.log(2) / 8 for nats in losses["nll_nats"].to_pylist()]


def repacked(data: bytes, **changes: object) -> bytes:
    file = unpack(data, "it")
    for name, value in changes.items():
        object.__setattr__(file.header, name, value)
    return pack(file)


KINDS = [
    "llama_folder", "gpt2_folder", "opt_folder", "mamba_folder", "rwkv_folder", "startless_folder",
    "starting_folder", "fallback_folder",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_texts_come_back_at_the_size_that_the_losses_say(kind, request, settings, batch_of):
    folder = request.getfixturevalue(kind)
    coded: Compressed = compressed(TEXT, entry(folder), settings)
    data = coded.data
    assert decompress(data, settings) == TEXT.encode()
    file = unpack(data, "it")
    predicted = predicted_bytes(folder, batch_of(TEXT), settings)
    assert len(predicted) == len(file.chunks) > 3
    for (code, _), expected in zip(file.chunks, predicted, strict=True):
        assert 0.999 * expected - 1 <= len(code) <= 1.001 * expected + 12
    assert coded.num_chunks == len(predicted)
    prefixes = coded.coded_bytes - sum(len(code) for code, _ in file.chunks)
    assert 2 * len(predicted) <= prefixes <= 4 * len(predicted)
    assert coded.predicted_bytes == pytest.approx(sum(predicted), rel=1e-3)
    assert coded.coded_bytes <= 1.001 * coded.predicted_bytes + 16 * len(predicted)
    assert len(data) - coded.coded_bytes < 300  # the header


@pytest.mark.parametrize("name", list(TEXTS))
@pytest.mark.parametrize("kind", ["llama_folder", "startless_folder", "fallback_folder"])
def test_odd_texts_come_back(kind, name, request, settings):
    data = compress(TEXTS[name], entry(request.getfixturevalue(kind)), settings)
    assert decompress(data, settings) == TEXTS[name].encode()


@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=120), kind=st.sampled_from(["llama_folder", "fallback_folder"]))
def test_any_text_comes_back(text, kind, request, settings):
    folder = request.getfixturevalue(kind)
    data = compress(text, entry(folder), settings)
    assert decompress(data, settings) == text.encode()


def test_the_same_text_gives_the_same_file(llama_folder, settings):
    assert compress(TEXT, entry(llama_folder), settings) == compress(
        TEXT, entry(llama_folder), settings
    )


def test_a_decoder_that_joins_letters_gives_their_text_back_and_no_other(lettered_folder, settings):
    data = compress("only letters", entry(lettered_folder), settings)
    assert unpack(data, "it").header.by_decoder
    assert decompress(data, settings) == b"only letters"
    with pytest.raises(NotMeasurable, match="does not give this text back"):
        compress("naïve", entry(lettered_folder), settings)


def test_a_text_that_the_tokenizer_changes_is_refused_before_weights_are_read(
    normalising_folder, settings, copy_of
):
    assert compress("caf\u00e9", entry(normalising_folder), settings)
    folder = copy_of(normalising_folder)
    broken = bytes(1000)
    (folder / "model.safetensors").write_bytes(broken)
    with pytest.raises(NotMeasurable, match="does not give this text back"):
        compress("cafe\u0301", entry(folder), settings)


@pytest.fixture(scope="module")
def coded(request: pytest.FixtureRequest) -> bytes:
    folder = request.getfixturevalue("llama_folder")
    return compress(SENTENCES[2], entry(folder), Settings(device="cpu"))


def test_every_flipped_byte_and_every_cut_is_told(coded):
    for position in range(len(coded)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(coded)
            damaged[position] ^= flip
            with pytest.raises(MalformedInput):
                unpack(bytes(damaged), "it")
    for end in range(len(coded)):
        with pytest.raises(MalformedInput):
            unpack(coded[:end], "it")
    with pytest.raises(MalformedInput):
        unpack(coded + b"\0", "it")


@hypothesis_settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_with_a_checksum_that_fits_are_refused(content):
    whole = b"\x89TMK\x01" + content
    with pytest.raises(MalformedInput):
        unpack(whole + hashlib.sha256(whole).digest(), "it")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_chunks": 2**61}, "is shorter than its header states"),
        ({"num_chunks": 0}, "more than the 0 chunks"),
        ({"batch": 2**30}, "groups of 1073741824 chunks"),
        ({"batch": 2}, "groups of 2 chunks, where there are 1"),
        ({"context": 2**31}, "context 2147483648 \\(here 64\\)"),
        ({"context": 3}, "a chunk of"),
        ({"threads": 10**6}, "header cannot be read"),
        ({"sha256": "00"}, "header cannot be read"),
        ({"model": "x" * 10_000}, "header cannot be read"),
        ({"num_bytes": 2**61}, "another text came out"),
        ({"sha256": "0" * 64}, "another text came out"),
        ({"digest": "0" * 16}, "nor a folder with the same files"),
        ({"probe": "0" * 16}, "gave other floats"),
        ({"keeps_state": False}, "gave other floats"),
        ({"protocol": "sliding"}, "protocol sliding"),
        ({"protocol_digest": "0" * 8}, "this tidemark decodes default"),
        ({"device": "cuda"}, "does not find here"),
        ({"device": "meta"}, "does not find here"),
        ({"dtype": "nonsense"}, "header cannot be read .*dtype"),
        ({"dtype": "float64"}, "gave other floats"),
        ({"location": "/", "model": "x"}, "name the model with --model"),
        ({"location": "~", "model": "x"}, "name the model with --model"),
        ({"location": "org/name", "model": "org/name"}, "name the model with --model"),
    ],
)
def test_a_header_that_lies_is_refused(changes, says, coded, settings):
    if torch.cuda.is_available() and changes == {"device": "cuda"}:
        pytest.skip("this machine has the device that is asked for")
    with pytest.raises(TidemarkError, match=says):
        decompress(repacked(coded, **changes), settings)


@pytest.mark.parametrize("name", ["hardware", "torch", "transformers", "tokenizers", "numpy"])
def test_other_versions_and_hardware_are_refused_by_name(name, coded, settings):
    recorded = unpack(coded, "it").header.environment
    changed = repacked(coded, environment={**recorded, name: "another"})
    with pytest.raises(NotReproducible, match=f"written with {name} another \\(here "):
        decompress(changed, settings)
    older = repacked(coded, environment={**recorded, "tidemark": "0.0.1"})
    assert decompress(older, settings) == SENTENCES[2].encode()


def test_other_weights_are_refused_though_of_the_same_name(llama_folder, settings, folder):
    data = compress(TEXT, entry(llama_folder), settings)
    assert decompress(data, settings, model=str(folder)) == TEXT.encode()
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][0, 0] += 1
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotReproducible, match="other weights or another tokenizer"):
        decompress(data, settings, model=str(folder))
    with pytest.raises(UsageError, match="unknown model"):
        decompress(data, settings, model="nobody")


def test_a_moved_model_is_asked_for(settings, folder):
    data = compress(TEXT, entry(folder), settings)
    folder.rename(folder.parent / "moved")
    with pytest.raises(UsageError, match="tiny-llama .* name the model with --model"):
        decompress(data, settings)
    assert decompress(data, settings, str(folder.parent / "moved")) == TEXT.encode()


def test_a_changed_code_with_a_checksum_that_fits_gives_no_text(coded, settings):
    file = unpack(coded, "it")
    [(code, num_tokens)] = file.chunks
    for other in (b"", b"\xff" * len(code), bytes([code[0] ^ 1]) + code[1:]):
        with pytest.raises(NotReproducible, match="another text came out"):
            decompress(pack(file._replace(chunks=[(other, num_tokens)])), settings)


def test_compressors_and_missing_models_are_refused(settings, tmp_path):
    with pytest.raises(UsageError, match="kind control"):
        compress("x", ModelEntry("control:zstd", kind="control", location="zstd"), settings)
    with pytest.raises(ModelLoadError):
        compress("x", ModelEntry("gone", location=str(tmp_path / "gone")), settings)


def test_threads_and_dtype_are_those_of_the_file(llama_folder, settings):
    torch.set_num_threads(2)
    data = compress(TEXT, entry(llama_folder), settings.model_copy(update={"dtype": "bfloat16"}))
    header = unpack(data, "it").header
    assert (header.threads, header.dtype) == (2, "bfloat16")
    torch.set_num_threads(1)
    assert decompress(data, settings) == TEXT.encode()
    assert torch.get_num_threads() == 1


@pytest.mark.slow
def test_another_process_with_other_threads_restores_it(llama_folder, settings, tmp_path):
    torch.set_num_threads(2)
    (tmp_path / "coded").write_bytes(compress(TEXT, entry(llama_folder), settings))
    script = (
        "import sys, torch\n"
        "torch.set_num_threads(1)\n"
        "from core.settings import Settings\n"
        "from extras.codec.coding import decompress\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "sys.stdout.buffer.write(decompress(data, Settings(home=sys.argv[2])))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "coded"), str(tmp_path)]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert done.stdout == TEXT.encode()
