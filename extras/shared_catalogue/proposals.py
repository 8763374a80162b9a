"""Proposals: entries of one's own catalogue that others may add to theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from models.catalogue import ModelEntry, names_repository, record_of

_FACTS = ("released", "licence", "parameters", "context")


def list_lacks(entry: ModelEntry, shipped: Sequence[ModelEntry]) -> list[str]:
    """Return what an entry lacks before others can take it, one sentence each; empty if nothing.

    ``shipped`` are the entries that others have already.
    """
    return [*_identity_lacks(entry, shipped), *_fact_lacks(entry)]


def _identity_lacks(entry: ModelEntry, shipped: Sequence[ModelEntry]) -> Iterator[str]:
    """Yield what an entry lacks for others to find the same weights."""
    if not names_repository(entry.location):
        yield "location: others cannot read it; give the id of a public repository of the hub"
    for other in shipped:
        if other.name == entry.name:
            yield f"name: is taken by a shipped entry ({other.location}); choose another one"
        elif other.location == entry.location:
            yield f"location: {other.name} is shipped with it; propose a change of that entry"
    if entry.revision is None:
        yield "revision: name the commit that you scored, so that others score the same weights"
    if entry.api_key is not None:
        yield "api_key: others have no such key; leave it out"


def _fact_lacks(entry: ModelEntry) -> Iterator[str]:
    """Yield which facts an entry does not state, or for which it names no page."""
    stated = entry.sources
    for name in _FACTS:
        if getattr(entry, name) is None:
            yield f"{name}: is not stated"
        elif name not in stated and "others" not in stated:
            yield f"sources: no page states {name}"
    if entry.cutoff is None:
        if "cutoff" not in entry.notes:
            yield "cutoff: is not stated; if its makers do not say, write so in notes"
    elif entry.cutoff_url is None:
        yield "cutoff_url: no page states the cutoff, or what it was inferred from"


def as_entry(entry: ModelEntry) -> str:
    """Return an entry as YAML, in the form of the files ``models/entries/*.yaml``."""
    return yaml.safe_dump([record_of(entry)], sort_keys=False, allow_unicode=True, width=96)
