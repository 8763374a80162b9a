"""Checks of a tokenizer.json before the tokenizers library reads it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from core.errors import ModelLoadError

_HAS_PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"[^"]')
_REWRITING = ("normalizer", "pre_tokenizer", "decoder")  # parts of tokenizer.json
_STEPS = ("normalizers", "pretokenizers", "decoders")  # keys of the steps of a sequence
_MAX_GROWTH = 32


def refuse_growing_tokenizer(folder: Path, location: str) -> None:
    """Raise ModelLoadError for a tokenizer.json whose replacements make a text much longer.

    Five steps that replace a letter by 100 letters would make 10 GB of each letter.
    """
    try:
        document = json.loads((folder / "tokenizer.json").read_bytes())
        growth = math.prod(_growth(document.get(part)) for part in _REWRITING)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # another format, which loading the tokenizer rejects
    if growth > _MAX_GROWTH:
        raise ModelLoadError(
            f"{location}: the replacements of tokenizer.json make a text up to {growth:.3g} times "
            f"as long; expected at most {_MAX_GROWTH}. It was not made for text: get another model"
        )


def _growth(step: object) -> float:
    """Return how many characters a step of a tokenizer, with its parts, makes of one at most."""
    if isinstance(step, list):
        return math.prod(map(_growth, step))
    if not isinstance(step, dict):
        return 1.0
    own = 1.0
    if step.get("type") == "Replace":
        replaced = step["pattern"].get("String")  # a regular expression may match no character
        own = max(1.0, len(step["content"]) / len(replaced) if replaced else len(step["content"]))
    if step.get("type") == "Prepend":  # before each text, which may have one character
        own = 1.0 + len(step["prepend"])
    return own * math.prod(_growth(step.get(parts)) for parts in _STEPS)


def refuse_fatal_tokenizer(folder: Path, location: str) -> None:
    """Raise ModelLoadError for a tokenizer.json that would abort the process.

    Version 0.23 of the tokenizers library removes a prefix from the second half of every merge. If
    there is no prefix, the library aborts, and the error cannot be caught.
    """
    path = folder / "tokenizer.json"
    if not path.is_file() or not _HAS_PREFIX.search(content := path.read_bytes()):
        return
    try:
        model = json.loads(content)["model"]
        prefix, merges = model["continuing_subword_prefix"], model.get("merges", [])
        seconds = [(merge.split(" ") if isinstance(merge, str) else merge)[1] for merge in merges]
        is_well = model.get("type") == "WordPiece" or all(s.startswith(prefix) for s in seconds)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # another format, which loading the tokenizer rejects
    if not is_well:
        raise ModelLoadError(
            f"{location}: the tokenizer is missing or broken: tokenizer.json has merges without "
            f"their continuing_subword_prefix {prefix!r}; get the file again"
        )
