"""Tokens are those of tokenizer.json, whatever class of transformers a folder names."""

import io
import json
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from core.errors import ModelLoadError
from models.scoring.protocols import get_protocol
from models.scoring.text_model import text_model_of
from models.scoring.token_scorer import CausalLM
from models.weights.checkpoint import find_tokenizer
from models.weights.tokenizer_choice import choose_tokenizer
from tests.models.conftest import (
    SENTENCES,
    Plain,
    byte_level_bpe,
    edit_json,
    llama_config,
    nats,
    random_model,
    save_model,
)

TEXT = "In 2024 and 1999, 20000 of 1234567 didn't: it's 31.12.2025.\n\n\n    nai\u0308ve  x"
# Classes that transformers 5 builds with a pre-tokenizer of its own.
CLASSES = (
    "GPT2Tokenizer",
    "GPT2TokenizerFast",
    "CodeGenTokenizer",
    "GPTNeoXTokenizer",
    "GPTNeoXTokenizerFast",
    "CohereTokenizer",
    "CohereTokenizerFast",
    "Qwen2Tokenizer",
    "Qwen2TokenizerFast",
)
_BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
PRE_TOKENIZERS = {
    "single digits": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    ),
    "three digits": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\d{1,3}| ?\D+"), "isolated"), _BYTES]
    ),
    "whole contractions": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r" ?[\w']+|\s+|[^\w\s]"), "isolated"), _BYTES]
    ),
    "line breaks apart": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\n| ?[^\s]+| +"), "isolated"), _BYTES]
    ),
    "no words": _BYTES,
}


def bpe_of(pre_tokenizer: pre_tokenizers.PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, *SENTENCES] * 4, trainer)
    return tokenizer


def save_tokenizer(folder: Path, tokenizer: Tokenizer, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    facts = {"tokenizer_class": name, "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    return folder


def ids_of_file(folder: Path, text: str = TEXT) -> list[int]:
    """Return the ids of tokenizer.json by the library that defines the format."""
    file = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return file.encode(text, add_special_tokens=False).ids  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", PRE_TOKENIZERS)
@pytest.mark.parametrize("name", CLASSES)
def test_the_file_decides_which_tokens_a_model_reads(name, kind, tmp_path):
    folder = save_tokenizer(tmp_path / "t", bpe_of(PRE_TOKENIZERS[kind]), name)
    chosen = find_tokenizer(folder, "here")
    found = chosen.tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert found == ids_of_file(folder)
    by_class = AutoTokenizer.from_pretrained(folder)(TEXT, add_special_tokens=False)["input_ids"]
    if by_class != found:
        assert chosen.replaced.removesuffix("Fast") in name or chosen.replaced == "GPT2Tokenizer"
    assert (chosen.tokenizer.bos_token_id, chosen.tokenizer.eos_token_id) == (0, 1)


def test_single_digits_are_one_token_each(tmp_path):
    """The vocabulary has merges of digits, which this file never uses."""
    merging = bpe_of(PRE_TOKENIZERS["no words"])
    merging.pre_tokenizer = PRE_TOKENIZERS["single digits"]
    folder = save_tokenizer(tmp_path / "t", merging, "GPT2Tokenizer")
    tokenizer, replaced = find_tokenizer(folder, "here")
    assert tokenizer.tokenize("2024") == ["2", "0", "2", "4"]
    assert replaced == "GPT2Tokenizer"


OTHER_PARTS = {
    "normalizer": lambda t: setattr(t, "normalizer", normalizers.Lowercase()),
    "no normalizer": lambda t: setattr(t, "normalizer", None),
    "prefix space": lambda t: setattr(
        t, "pre_tokenizer", pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "whole words": lambda t: setattr(t.model, "ignore_merges", True),
}


# Rules that differ from those of a class in what they make of neighbours alone.
NEIGHBOURS = {
    "digits apart": (pre_tokenizers.Digits(individual_digits=False), "one\n\n9 two"),
    "punctuation apart": (pre_tokenizers.Punctuation(), "one\t-two, three\n\n'x"),
    "symbols apart": (pre_tokenizers.Split(Regex("[<>/]"), "isolated"), "one </two />\n\n<three"),
}


@pytest.mark.parametrize("kind", NEIGHBOURS)
@pytest.mark.parametrize("name", ["GPT2Tokenizer", "RobertaTokenizer", "WhisperTokenizer"])
def test_the_file_decides_between_neighbours_of_all_kinds(name, kind, tmp_path):
    first, text = NEIGHBOURS[kind]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [first, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, text, *SENTENCES] * 4, trainer)
    folder = save_tokenizer(tmp_path / "t", tokenizer, name)
    found = find_tokenizer(folder, "here").tokenizer
    for each in (text, TEXT):
        assert found(each, add_special_tokens=False)["input_ids"] == ids_of_file(folder, each)


@pytest.mark.parametrize("part", OTHER_PARTS)
@pytest.mark.parametrize("name", CLASSES)
def test_other_parts_of_the_file_are_kept_too(name, part, tmp_path):
    tokenizer = byte_level_bpe()
    OTHER_PARTS[part](tokenizer)
    folder = save_tokenizer(tmp_path / "t", tokenizer, name)
    found = find_tokenizer(folder, "here").tokenizer
    for text in (TEXT, *SENTENCES):
        assert found(text, add_special_tokens=False)["input_ids"] == ids_of_file(folder, text)


def test_words_that_only_the_vocabulary_has_are_taken_whole(tmp_path):
    """With ``ignore_merges``, a word of the vocabulary needs no merges."""
    content = json.loads(byte_level_bpe().to_str())
    vocabulary = content["model"]["vocab"]
    word = "\u0120quux"
    vocabulary[word] = len(vocabulary)
    content["model"]["ignore_merges"] = True
    folder = save_tokenizer(
        tmp_path / "t", Tokenizer.from_str(json.dumps(content)), "GPT2Tokenizer"
    )
    tokenizer, replaced = find_tokenizer(folder, "here")
    assert tokenizer(" quux", add_special_tokens=False)["input_ids"] == [vocabulary[word]]
    assert replaced == "GPT2Tokenizer"


def test_added_tokens_keep_the_flags_of_the_file(tmp_path):
    content = json.loads(byte_level_bpe().to_str())
    content["added_tokens"][1] |= {"rstrip": True}
    folder = save_tokenizer(
        tmp_path / "t", Tokenizer.from_str(json.dumps(content)), "GPT2Tokenizer"
    )
    flags = {"content": "</s>", "rstrip": False, "lstrip": True, "special": True,
             "normalized": False, "single_word": False}  # fmt: skip
    edit_json(folder / "tokenizer_config.json", added_tokens_decoder={"1": flags})
    text = "mark </s> sand"
    found = find_tokenizer(folder, "here").tokenizer
    assert found(text, add_special_tokens=False)["input_ids"] == ids_of_file(folder, text)


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "GPT2Tokenizer"])
def test_a_class_with_the_file_s_ids_is_kept(name, tmp_path):
    folder = save_tokenizer(tmp_path / "t", byte_level_bpe(), name)
    assert find_tokenizer(folder, "here").replaced == ""


def test_losses_do_not_depend_on_the_class(tmp_path, settings, batch_of):
    """Only the cells of a model whose tokens change have another identity."""
    tokenizer = bpe_of(PRE_TOKENIZERS["no words"])
    tokenizer.pre_tokenizer = PRE_TOKENIZERS["single digits"]
    folders = {}
    for name in ("PreTrainedTokenizerFast", "GPT2Tokenizer"):
        folder = folders[name] = tmp_path / name
        random_model(llama_config()).save_pretrained(folder)
        save_tokenizer(folder, tokenizer, name)
    whole, rebuilt = (CausalLM.load(str(each), None, settings) for each in folders.values())
    plain = Plain(str(folders["PreTrainedTokenizerFast"]))
    ids = ids_of_file(folders["GPT2Tokenizer"])
    expected = sum(plain.nats([0, *ids[:31]])) + sum(plain.nats([0, *ids[31:62]]))
    assert len(ids) > 31
    rows = nats(rebuilt, batch_of(TEXT))
    assert sum(rows[:2]) == pytest.approx(expected, rel=1e-5)
    assert rows == pytest.approx(nats(whole, batch_of(TEXT)), rel=1e-6)
    protocol = get_protocol("default")
    assert rebuilt.scoring_id(protocol) != whole.scoring_id(protocol)
    assert rebuilt.facts.versions["tokenizer"] == "tokenizer.json in place of GPT2Tokenizer"
    assert "tokenizer" not in whole.facts.versions


def test_the_identity_of_other_models_is_as_before(llama_folder, settings):
    identity = CausalLM.identify(llama_folder, None, settings)
    assert identity.numerics in ("torch.float32 sdpa", "torch.float32 sdpa onednn")


def test_files_without_tokenizer_json_must_restore_their_tokens(tmp_path):
    folder = tmp_path / "t"
    save_model(folder, llama_config(), byte_level_bpe(), bos_token="<s>", eos_token="</s>")
    tokenizer = byte_level_bpe()
    tokenizer.model.save(str(folder))  # vocab.json and merges.txt
    (folder / "tokenizer.json").unlink()
    edit_json(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    found, replaced = find_tokenizer(folder, "here")
    assert replaced == ""
    expected = tokenizer.encode(TEXT, add_special_tokens=False).ids
    assert found(TEXT, add_special_tokens=False)["input_ids"] == expected


def test_files_whose_tokens_do_not_restore_themselves_are_refused(tmp_path):
    tokenizer = byte_level_bpe()
    tokenizer.decoder = decoders.Fuse()  # shows a blank as a letter, which has two tokens
    loaded = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    with pytest.raises(ModelLoadError, match=r"no tokenizer\.json.*not stable: 'The tide"):
        choose_tokenizer(loaded, tmp_path, "here")


def test_no_merge_is_left_out_at_random(tmp_path):
    tokenizer = byte_level_bpe()
    expected = tokenizer.encode(TEXT, add_special_tokens=False).ids
    for name in ("PreTrainedTokenizerFast", "GPT2Tokenizer"):
        content = json.loads(tokenizer.to_str())
        content["model"]["dropout"] = 0.9
        random = Tokenizer.from_str(json.dumps(content))
        folder = save_tokenizer(tmp_path / name, random, name)
        found = find_tokenizer(folder, "here")
        assert found.tokenizer(TEXT, add_special_tokens=False)["input_ids"] == expected
        assert found.replaced


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "GPT2Tokenizer"])
@pytest.mark.parametrize("sign", ["!", ",", "\u010a"])  # the last is a line break in the file
def test_a_character_that_is_named_for_padding_stays_in_texts(name, sign, tmp_path):
    tokenizer = bpe_of(pre_tokenizers.ByteLevel(add_prefix_space=False))
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT, "Stop !! Now !!\n\nThen, or !? then,, "] * 9, trainer)
    folder = save_tokenizer(tmp_path / "t", tokenizer, name)
    edit_json(folder / "tokenizer_config.json", pad_token=sign)
    text_model = text_model_of(find_tokenizer(folder, "here").tokenizer)
    text = "Stop !! Now!\n\nThen, then,, or !?"
    [tokens] = text_model.tokenizer.tokenize([text], as_text=True)
    assert tokens.ids.tolist() == ids_of_file(folder, text)
    assert tokens.is_lossless


@pytest.mark.parametrize(("sign", "is_other"), [("!", True), ("<pad>", False)])
def test_cells_without_a_character_are_scored_again(sign, is_other, tmp_path, settings):
    """The stated numerics are part of a cell's identity."""
    random_model(llama_config()).save_pretrained(tmp_path / "t")
    folder = save_tokenizer(tmp_path / "t", byte_level_bpe(), "PreTrainedTokenizerFast")
    edit_json(folder / "tokenizer_config.json", pad_token=sign)
    identity = CausalLM.identify(str(folder), None, settings)
    assert identity.numerics.endswith(" signs") == is_other


def _pieces(folder: Path, **options: object) -> SentencePieceProcessor:
    """Train a model of SentencePiece into a folder without tokenizer.json."""
    made = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=made,
        vocab_size=350,
        hard_vocab_limit=False,
        byte_fallback=True,
        minloglevel=2,
        **options,
    )
    (folder / "tokenizer.model").write_bytes(made.getvalue())
    return SentencePieceProcessor(model_proto=made.getvalue())


@pytest.mark.parametrize("name", ["LlamaTokenizer", "GemmaTokenizer", "T5Tokenizer"])
@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "bpe", "normalization_rule_name": "identity", "split_digits": True,
         "remove_extra_whitespaces": False},  # as Llama 2
        {"model_type": "bpe"},
        {"model_type": "unigram"},
    ],
)  # fmt: skip
def test_pieces_of_sentencepiece_decide_without_tokenizer_json(name, options, tmp_path):
    """transformers 5 has rules of its own for blanks, line breaks and digits of each class."""
    pieces = _pieces(tmp_path, **options)
    config = {"tokenizer_class": name, "unk_token": "<unk>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    texts = [TEXT, " a leading blank", "The tide  leaves 1999 marks.\n\n x", "x"]
    try:
        read = text_model_of(find_tokenizer(tmp_path, "here").tokenizer).tokenizer
    except ModelLoadError as error:
        assert name != "LlamaTokenizer"
        assert f"{name}, whose tokens are not those of SentencePiece" in str(error)
        return
    found = [each.ids.tolist() for each in read.tokenize(texts)]
    assert found == [pieces.encode(text) for text in texts]


def test_a_class_with_other_numbers_for_pieces_is_refused(tmp_path):
    """XLM-R moves all ids by one, so its tokenizer cannot be replaced by the file's ids."""
    _pieces(tmp_path, model_type="bpe")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    with pytest.raises(ModelLoadError, match="XLMRobertaTokenizer, whose tokens are not those of"):
        find_tokenizer(tmp_path, "here")
