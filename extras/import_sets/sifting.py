"""A filter for texts of the open web, as that of CCNet (Wenzek et al. 2020, arXiv:1911.00359).

    1. Lines that come more than once in a month are cut, in all their places (``Paragraphs``).
    2. Texts that are too short after that are dropped.
    3. The language is found; texts of another than the wanted one are dropped.
    4. Texts that are mostly not letters, or repeat themselves, are dropped (``hygiene.quality``).

CCNet's last step, perplexity under a model of Wikipedia, is left out: it would choose the texts by
what is to be measured.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from core.schemas.tables import DocumentRow
from core.storage.store import explain_disk_errors
from crawlers.contract import DropReason
from crawlers.hygiene.mojibake import find_mojibake
from crawlers.hygiene.quality import low_quality, rank_languages, wrong_language
from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import ngrams, tokens_of
from crawlers.imports.repeats import Keys, key_of, repeated_of

_NUM_BUCKETS = 16  # files of hashes; one at a time is sorted in memory
_BUFFER = 2**16  # hashes of a bucket before they are written
_DIGIT = re.compile(r"\d")
_NOT_WORD = re.compile(r"[\W_]+")


class Paragraphs:
    """The lines of a month's texts; their hashes are in files of a folder, 8 bytes a line."""

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / f"lines.{bucket}" for bucket in range(_NUM_BUCKETS)]
        self._buffers = [array("Q") for _ in self._paths]
        self._repeated: Keys = np.empty(0, dtype=np.uint64)

    def add(self, text: str) -> None:
        """Count the lines of a text."""
        for line in text.split("\n"):
            key = _line_key(line)
            if key:
                bucket = key % _NUM_BUCKETS
                self._buffers[bucket].append(key)
                if len(self._buffers[bucket]) >= _BUFFER:
                    self._write(bucket)

    def end(self) -> None:
        """Find the repeated lines; call this once, after the last text."""
        found = []
        for bucket, path in enumerate(self._paths):
            self._write(bucket)
            found.append(repeated_of(np.fromfile(path, dtype=np.uint64)))
            path.unlink()
        self._repeated = np.sort(np.concatenate(found))

    def cut(self, text: str) -> str:
        """Return a text without the lines that come more than once."""
        lines = text.split("\n")
        if not len(self._repeated):
            return text
        keys = np.array([_line_key(line) for line in lines], dtype=np.uint64)
        places = np.minimum(np.searchsorted(self._repeated, keys), len(self._repeated) - 1)
        is_kept = self._repeated[places] != keys
        return "\n".join(line for line, keep in zip(lines, is_kept.tolist(), strict=True) if keep)

    def _write(self, bucket: int) -> None:
        path = self._paths[bucket]
        with explain_disk_errors(str(path)), path.open("ab") as file:
            self._buffers[bucket].tofile(file)
        self._buffers[bucket] = array("Q")


def _line_key(line: str) -> int:
    """Return a hash of a line's letters, with digits as 0, accents off; 0 if it has none."""
    plain = _NOT_WORD.sub("", unicodedata.normalize("NFKD", _DIGIT.sub("0", line.casefold())))
    return key_of(plain) if plain else 0


Verdict = tuple[DropReason, str]


def judge(rows: Sequence[DocumentRow], wanted: str | None) -> Iterator[Verdict | None]:
    """Yield for each row why it is dropped, or None; rows without a language get theirs.

    ``wanted`` is the language to keep, a BCP 47 tag; None: all.
    """
    ranks = rank_languages([row["text"] for row in rows])
    for row, found in zip(rows, ranks, strict=True):
        best = max(found, key=found.__getitem__)
        language = row["language"] or best
        row["language"] = language
        score, why = wrong_language(found, wanted or language)
        row["language_score"] = score
        tokens = tokens_of(row["text"], is_code=False)
        marks = find_mojibake(row["text"])
        if marks:
            yield "mojibake", marks
            continue
        if why:
            yield "wrong_language", why
            continue
        fault = low_quality(row["text"], tokens, ngrams(tokens.hashes, SHINGLE))
        yield ("low_quality", fault) if fault else None
