"""Checks of a tokenizer.json before the tokenizers library reads it."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path

from core.errors import ModelLoadError
from core.json import JsonObject

_HAS_PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"[^"]')
_REWRITING = ("normalizer", "pre_tokenizer", "post_processor", "decoder")  # parts of the file
_STEPS = ("normalizers", "pretokenizers", "processors", "decoders")  # keys of a sequence's steps
_MAX_GROWTH = 64  # times as many characters; byte-level BPE alone counts for 8
_MAX_LENGTH = 1000  # the time for a word grows with the square or cube of this length


def is_panic(error: BaseException) -> bool:
    """Return True for a panic of the tokenizers library, which is no Exception."""
    return type(error).__name__ == "PanicException"


def refuse_costly_tokenizer(content: str | bytes, location: str) -> None:
    """Raise ModelLoadError for a tokenizer.json that makes of a text far more, or takes hours."""
    # Five steps that replace a letter by 100 letters would make 10 GB of each letter.
    try:
        document = json.loads(content)
        growth = math.prod(_growth(document.get(part)) for part in _REWRITING)
        longest = _longest(document["model"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # another format, which loading the tokenizer rejects
    if growth > _MAX_GROWTH:
        raise ModelLoadError(
            f"{location}: the replacements of tokenizer.json make a text up to {growth:.3g} times "
            f"as long; expected at most {_MAX_GROWTH}. It was not made for text: get another model"
        )
    if longest > _MAX_LENGTH:
        raise ModelLoadError(
            f"{location}: tokenizer.json has words or pieces of {longest:,} characters; expected "
            f"at most {_MAX_LENGTH:,}, because longer ones take hours: get another model"
        )


def _growth(step: object) -> float:
    """Return how many characters a step of a tokenizer, with its parts, makes of one at most."""
    if isinstance(step, list):
        return math.prod(map(_growth, step))
    if not isinstance(step, dict):
        return 1.0
    own = 1.0
    kind = step.get("type")
    if kind == "Replace":
        replaced = step["pattern"].get("String")  # a regular expression may match no character
        own = max(1.0, len(step["content"]) / len(replaced) if replaced else len(step["content"]))
    if kind == "Prepend":  # before each text, which may have one character
        own = 1.0 + len(step["prepend"])
    if kind == "ByteLevel":
        own = 2.0  # characters for a byte beyond ASCII; a second step doubles them again
    if kind == "Precompiled":  # a trie, and after it the replacements, each ended by a zero
        table = base64.b64decode(step["precompiled_charsmap"])
        replacements = table[4 + int.from_bytes(table[:4], "little") :].split(b"\0")
        own = max(1.0, *(len(each.decode(errors="replace")) for each in replacements))
    if kind == "TemplateProcessing":
        own = max(1.0, sum("Sequence" in piece for piece in step["single"]))
    return own * math.prod(_growth(step.get(parts)) for parts in _STEPS)


def _longest(model: JsonObject) -> int:
    """Return the length of the longest word or piece that a model looks up part by part."""
    if isinstance(model["vocab"], list):  # Unigram
        return max(len(piece) for piece, _ in model["vocab"])
    return int(model.get("max_input_chars_per_word", 0))  # WordPiece


def refuse_fatal_tokenizer(folder: Path, location: str) -> None:
    """Raise ModelLoadError for a tokenizer.json that would abort the process."""
    # Version 0.23 of the tokenizers library removes a prefix from the second half of every merge.
    # If there is no prefix, the library aborts, and the error cannot be caught.
    path = folder / "tokenizer.json"
    content = path.read_bytes() if path.is_file() else b""
    if not _HAS_PREFIX.search(content):
        return
    try:
        model = json.loads(content)["model"]
        prefix = model["continuing_subword_prefix"]
        merges = model.get("merges", [])
        # The second half of each merge, which is a list or a text with a space.
        seconds = [(merge.split(" ") if isinstance(merge, str) else merge)[1] for merge in merges]
        is_well = model.get("type") == "WordPiece" or all(s.startswith(prefix) for s in seconds)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # another format, which loading the tokenizer rejects
    if not is_well:
        raise ModelLoadError(
            f"{location}: the tokenizer is missing or broken: tokenizer.json has merges without "
            f"their continuing_subword_prefix {prefix!r}; get the file again"
        )
