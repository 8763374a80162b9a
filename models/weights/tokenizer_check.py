"""A comparison of catalogue entries with their tokenizer.json, for files on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from models.catalogue import ModelEntry
from models.weights.checkpoint import find_tokenizer
from models.weights.hub import find_cached, is_on_hub
from models.weights.tokenizer_choice import TOKENIZER_FILE


class ReplacedTokenizer(NamedTuple):
    """A model for which tokenizer.json is used, and not the class that transformers makes."""

    model: str
    transformers: str
    used: str = TOKENIZER_FILE


def local_folder(entry: ModelEntry) -> Path | None:
    """Return the folder of a model's files on this machine, or None if there is none."""
    folder = Path(entry.location).expanduser()
    if folder.is_dir():
        return folder
    if not is_on_hub(entry):
        return None
    return find_cached(entry.location, entry.revision, entry.is_trusted)


def check_tokenizer(entry: ModelEntry, folder: Path) -> ReplacedTokenizer | None:
    """Return the entry with the replaced class, or None if transformers gives the file's tokens.

    Raise ModelLoadError or NotMeasurable if the tokenizer cannot be used.
    """
    replaced = find_tokenizer(folder, entry.location).replaced
    return ReplacedTokenizer(entry.name, replaced) if replaced else None
