"""Choice between a model's tokenizer.json and what transformers makes of it.

Version 5 of transformers rebuilds the tokenizers of some classes (GPT2Tokenizer, Qwen2Tokenizer
and others): it takes vocabulary and merges from tokenizer.json, and normalizer and pre-tokenizer
from its own code. A model whose file splits digits or contractions otherwise then reads tokens that
it was not trained on. So the ids of both are compared on fixed texts, and the file decides.

A folder without tokenizer.json may have a model of SentencePiece. Then the pieces that the library
of that name makes decide. Without either, the tokens of a text, decoded and tokenized again, must
be the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from core.errors import ModelLoadError

TOKENIZER_FILE = "tokenizer.json"
# Names of models of SentencePiece, in the order in which they are looked for.
_PIECES_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model")
_BLANKS = (" a", "a  b", "\n\nx")
# Texts on which the rules of normalizers and pre-tokenizers differ.
_TEXTS = (
    "The tide leaves a mark on the sand, and the next tide washes it away.",
    # digits and years
    "On 2024-03-17 at 09:41:05, 1,234,567.89 of 20000 (3.14159%) in 1999, 2001 and 2026.",
    "0 12 345 6789 01234 567890 1234567 89012345 x86_64 3rd 20th v1.2.3 \u0663\u0664 \u00bd \u00b2",
    # line breaks and runs of blanks
    "a\nb\n\nc\n\n\nd\r\ne\rf\n    def g(x):\n\treturn x\n\t\t# h\n ",
    " one  two   three    four     five\u00a0six\u3000seven \u2028eight",
    # contractions, capitals and apostrophes
    "I'm he's she'll we've they'd can't it's I'M HE'S CAN'T WE'VE don\u2019t o'clock 'tis 'S's",
    # punctuation and symbols
    "(a[b]{c}) <d> e/f \\g #h @i &j *k _l_ --m ---n ... \u2026 !? ?! \u201cq\u201d \u2018r\u2019",
    "https://example.org/a_b?c=d&e=%20#f user.name+tag@example.org CamelCaseWord snake_case_word",
    # other scripts, characters composed and decomposed, full width and ligatures
    "\u65e9\u3044\u8005\u52dd\u3061\u3002\u6c49\u5b57\u548c\u6570\u5b57\uff11\uff12\uff13 "
    "\ud55c\uad6d\uc5b4 \u041f\u0440\u0438\u0432\u0435\u0442 \u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a"
    "\u0e14\u0e35 na\u00efve nai\u0308ve \u00c5ngstr\u00f6m A\u030angstro\u0308m \ufb01n \uff21",
    # emoji with joiners and modifiers
    "\U0001f642 \U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
)
# All rows of three of these: rules differ in what they make of neighbours, such as "\n\n9".
_UNITS = (
    "a", "B", "\u00e9", "\u65e9", "\U0001f642", "7", " ", "\n", "\t", "'s", ".", "-", "_", "<", "/",
    "\u00a0", "\u200d", "\u0301",
)  # fmt: skip
_ROWS = tuple("".join(map("".join, product((first,), _UNITS, _UNITS))) for first in _UNITS)
_NUM_WORDS = 2048  # maximum number of words of the vocabulary that are compared


class ChosenTokenizer(NamedTuple):
    """A tokenizer, and the class whose tokens were not those of the model's own file.

    ``replaced`` is empty if the class of transformers gives the tokens of the file, or if there is
    no file.
    """

    tokenizer: PreTrainedTokenizerFast
    replaced: str = ""


def choose_tokenizer(
    tokenizer: PreTrainedTokenizerFast, folder: Path, location: str
) -> ChosenTokenizer:
    """Return the tokenizer of the model's own file if the given one has other tokens.

    Raise ModelLoadError if transformers makes other tokens than SentencePiece. Also raise it if
    there is no file, and the tokens of a text do not restore themselves.
    """
    path = folder / TOKENIZER_FILE
    if not path.is_file():
        pieces = _read_pieces(folder)
        if pieces is not None:
            return _choose_by_pieces(tokenizer, pieces, folder, location)
        require_stable(tokenizer, location)
        return ChosenTokenizer(tokenizer)
    from_file = Tokenizer.from_file(str(path))
    is_random = _remove_dropout(from_file)
    texts = [*_TEXTS, *_ROWS, *_added_tokens(from_file), *_words(from_file)]
    if not is_random and _agree(tokenizer, from_file, texts):
        return ChosenTokenizer(tokenizer)
    replaced = type(tokenizer).__name__
    plain = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    # tokenizer_config.json may change added tokens.
    if is_random or not _agree(plain, from_file, texts):
        plain = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=from_file,
            chat_template=plain.chat_template,
            model_max_length=plain.model_max_length,
            **_named_tokens(plain),
        )
    return ChosenTokenizer(plain, replaced)


def own_file(folder: Path) -> str:
    """Return the name of the file that decides on the tokens of a folder's model."""
    if (folder / TOKENIZER_FILE).is_file():
        return TOKENIZER_FILE
    return next((name for name in _PIECES_FILES if (folder / name).is_file()), TOKENIZER_FILE)


def _read_pieces(folder: Path) -> SentencePieceProcessor | None:
    """Read a folder's model of SentencePiece; return None without one."""
    path = folder / own_file(folder)
    if not path.is_file():
        return None
    try:
        return SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError):
        return None  # a file of tiktoken may have this name


def _choose_by_pieces(
    tokenizer: PreTrainedTokenizerFast, pieces: SentencePieceProcessor, folder: Path, location: str
) -> ChosenTokenizer:
    """Return the given tokenizer, or one without the rules of its class, if its pieces agree."""
    if _other_pieces(tokenizer, pieces) is None:
        return ChosenTokenizer(tokenizer)
    plain = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    text = _other_pieces(plain, pieces)
    # Some classes also give the pieces other ids, which the model was trained with.
    if text is not None or not _same_numbers(tokenizer, plain):
        raise ModelLoadError(
            f"{location}: has no {TOKENIZER_FILE}, and of {own_file(folder)} transformers makes a "
            f"{type(tokenizer).__name__}, whose tokens are not those of SentencePiece; save the "
            "tokenizer with the library that the model was trained with, so that the folder has "
            "the file"
        )
    return ChosenTokenizer(plain, type(tokenizer).__name__)


def _same_numbers(tokenizer: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast) -> bool:
    """Return True if two tokenizers give the tokens that both have the same ids."""
    ids = other.get_vocab()
    return all(ids.get(token, number) == number for token, number in tokenizer.get_vocab().items())


def _other_pieces(tokenizer: PreTrainedTokenizerFast, pieces: SentencePieceProcessor) -> str | None:
    """Return a text of which SentencePiece makes other pieces, or None without one."""
    texts = [*_TEXTS, *_BLANKS]
    backend = tokenizer.backend_tokenizer
    for text, ids in zip(texts, _ids(backend, texts), strict=True):
        expected = [pieces.id_to_piece(piece) for piece in pieces.encode(text)]
        if [backend.id_to_token(each) for each in ids] != expected:
            return text
    return None


def _remove_dropout(tokenizer: Tokenizer) -> bool:
    """Leave no merge out at random, as training may do; return True if the file asks for it."""
    if not getattr(tokenizer.model, "dropout", None):
        return False
    tokenizer.model.dropout = None
    return True


def _named_tokens(tokenizer: PreTrainedTokenizerFast) -> dict[str, str]:
    """Return the special tokens by name, without a padding token that is a character of texts."""
    named = dict(tokenizer.special_tokens_map)
    if len(named.get("pad_token", "")) == 1:
        del named["pad_token"]
    return named


def _added_tokens(tokenizer: Tokenizer) -> list[str]:
    """Return texts that spell the tokens that were added to the vocabulary."""
    added = tokenizer.get_added_tokens_decoder().values()
    return [f"a{each.content}b {each.content} c" for each in added]


def _words(tokenizer: Tokenizer) -> list[str]:
    """Return the texts of tokens at equal distances in the vocabulary."""
    # They show missing merges, and words that are taken without merges (``ignore_merges``).
    ids = sorted(tokenizer.get_vocab(with_added_tokens=False).values())
    step = max(1, len(ids) // _NUM_WORDS)
    words = tokenizer.decode_batch([[each] for each in ids[::step]], skip_special_tokens=False)
    return [word for word in words if word and "\ufffd" not in word]


def _agree(tokenizer: PreTrainedTokenizerFast, other: Tokenizer, texts: Sequence[str]) -> bool:
    """Return True if two tokenizers give the same ids, without special tokens around the text."""
    own = tokenizer.backend_tokenizer
    other.encode_special_tokens = own.encode_special_tokens
    return _ids(own, texts) == _ids(other, texts)


def _ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of each text, without special tokens, cuts or padding."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def require_stable(tokenizer: PreTrainedTokenizerFast, location: str) -> None:
    """Raise ModelLoadError if a text's tokens, decoded and tokenized again, are other tokens."""
    backend = tokenizer.backend_tokenizer
    unknown = tokenizer.unk_token_id
    for text, ids in zip(_TEXTS, _ids(backend, _TEXTS), strict=True):
        restored = backend.decode(ids, skip_special_tokens=False)
        if restored in (text, f" {text}") or unknown in ids:
            continue
        again = _ids(backend, [restored])[0]
        if again != ids:
            raise ModelLoadError(
                f"{location}: has no {TOKENIZER_FILE}, and the {type(tokenizer).__name__} that "
                f"transformers makes of the other files is not stable: {text[:40]!r} has "
                f"{len(ids)} tokens, and {len(again)} after decoding; save the tokenizer with the "
                "library that the model was trained with, so that the folder has the file"
            )
