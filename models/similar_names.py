"""Names of models that people would take for each other."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping

from core.errors import UsageError

_NUM_SUGGESTIONS = 3
_LEAST_SIMILAR = 0.5  # ratio of difflib


def folded(name: str) -> str:
    """Return a name without differences of letter case, Unicode form and blanks."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def refuse_twin(name: str, known: Iterable[str]) -> None:
    """Raise UsageError if ``name`` is not known and looks like a known name."""
    # Otherwise the losses of one model would be stored under two names.
    names = {folded(each): each for each in known}
    twin = names.get(folded(name))
    if twin is None or name in names.values():
        return
    raise UsageError(
        f"{name!r} differs from the known model {twin!r} in letter case, Unicode form or blanks "
        f"alone, so the losses of one model would be those of two; write {twin!r}, or add the "
        "model under a name of its own (`tidemark models add`)"
    )


def suggest(name: str, places: Mapping[str, str]) -> list[str]:
    """Return the names of similar models; ``places`` has the location of each name."""
    names = {known.lower(): known for known in places}
    names |= {place.rsplit("/", 1)[-1].lower(): known for known, place in places.items()}
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    close = difflib.get_close_matches(last, names, n=2 * _NUM_SUGGESTIONS, cutoff=_LEAST_SIMILAR)
    return list(dict.fromkeys(names[match] for match in close))[:_NUM_SUGGESTIONS]
