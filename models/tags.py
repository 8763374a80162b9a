"""Tags of models, derived from the facts of their entries, for choosing many models by one word.

    tiny, small, medium, large   below 0.5, 2 and 8 billion parameters, and above
    open                         the licence is one of ``OPEN_LICENCES``
    tiny-open, small-open, …     both
    thermometer, known-cutoff    the role
    pythia, …                    the family

A fact that is not known gives no tag. Models that cost money have no tags, and controls neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.errors import UsageError

if TYPE_CHECKING:  # prevents a circular import: catalogue imports choice, which imports this
    from models.catalogue import ModelEntry

PREFIX = "tag:"
# As on the hub; licences that everybody may use the weights under, for any purpose.
OPEN_LICENCES = {"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0"}
_SIZES = (("tiny", 5e8), ("small", 2e9), ("medium", 8e9), ("large", float("inf")))


def tags_of(entry: ModelEntry) -> tuple[str, ...]:
    """Return the tags of a model: size, licence, both, role and family, as far as known."""
    if entry.backend.is_paid or entry.backend.is_control:
        return ()
    tags = []
    if entry.parameters is not None:
        tags.append(next(name for name, end in _SIZES if entry.parameters < end))
    if entry.licence in OPEN_LICENCES:
        tags += ["open", *(f"{size}-open" for size in tags)]
    if entry.role != "model":
        tags.append(entry.role)
    if entry.family:
        tags.append(entry.family)
    return tuple(tags)


def models_with(tag: str, entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """Return the models that have a tag.

    Raise UsageError, with the known tags, if there is none.
    """
    if found := [entry for entry in entries if tag in tags_of(entry)]:
        return found
    known = sorted({known for entry in entries for known in tags_of(entry)})
    raise UsageError(f"no model has the tag {tag!r}; the tags are {', '.join(known)}")
