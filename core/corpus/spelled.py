"""Search of sealed texts that spell one of some words, such as a tokenizer's control tokens.

Planning searches each partition, so results are cached under ``work/spelled/``, in one small file
per set of words. If this file is lost or damaged, the texts are searched again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping

from core.errors import StorageError
from core.storage.store import Store

_log = logging.getLogger(__name__)

_FOLDER = "work/spelled"
Texts = Callable[[], Iterable[str]]


def find_spelled(
    store: Store, sealed: Mapping[str, Texts], words: frozenset[str]
) -> frozenset[str]:
    """Return the digests of sealed texts that contain one of the words.

    ``sealed`` maps each digest to a function that reads the texts. An unreadable text counts as
    one without the words; scoring it reports the error.
    """
    if not words:
        return frozenset()
    name = hashlib.sha256(json.dumps(sorted(words)).encode()).hexdigest()[:16]
    path = f"{_FOLDER}/{name}.json"
    known = _read_cached(store, path)
    new = [digest for digest in sealed if digest not in known]
    if new:
        _log.info("looking for %d spellings of control tokens in %d parts", len(words), len(new))
        pattern = re.compile("|".join(map(re.escape, sorted(words))))
        for digest in new:
            try:
                known[digest] = any(pattern.search(text) for text in sealed[digest]())
            except StorageError:
                continue
        store.write_bytes(path, json.dumps(known, sort_keys=True).encode())
    return frozenset(digest for digest in sealed if known.get(digest, False))


def _read_cached(store: Store, path: str) -> dict[str, bool]:
    try:
        known = json.loads(store.read_bytes(path)) if store.exists(path) else {}
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}
