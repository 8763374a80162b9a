from dataclasses import replace

import pytest

from core.month import Month
from extras.shared_catalogue.proposals import as_entry, list_lacks
from models.catalogue import ModelEntry, list_shipped, make_entry, parse_catalogue

WHOLE = make_entry(
    {
        "name": "gull-1b", "location": "gulls/gull-1b", "revision": "a" * 40,
        "released": "2026-02-01", "cutoff": "2025-11", "cutoff_provenance": "stated",
        "cutoff_precision": "month", "cutoff_url": "https://gulls.example/card",
        "parameters": 10**9, "licence": "apache-2.0", "context": 4096,
        "sources": {"others": "https://gulls.example/card"}, "notes": "base model: gulls' own",
    }
)  # fmt: skip


def test_a_whole_entry_lacks_nothing_and_comes_back_as_it_was() -> None:
    assert list_lacks(WHOLE, list_shipped()) == []
    assert parse_catalogue(as_entry(WHOLE).encode(), "entries") == [WHOLE]


def test_shipped_entries_keep_their_facts() -> None:
    for entry in list_shipped():
        assert parse_catalogue(as_entry(entry).encode(), "entries") == [entry]


@pytest.mark.parametrize(
    ("change", "lack"),
    [
        ({"location": "/home/me/gull"}, "location: others cannot read it"),
        ({"revision": None}, "revision: name the commit"),
        ({"licence": None}, "licence: is not stated"),
        ({"sources": {"licence": "https://gulls.example"}}, "sources: no page states released"),
        ({"cutoff_url": None}, "cutoff_url: no page"),
        ({"name": list_shipped()[0].name}, "name: is taken by a shipped entry"),
        ({"location": list_shipped()[0].location}, "is shipped with it"),
    ],
)
def test_what_lacks_is_named(change: dict[str, object], lack: str) -> None:
    found = list_lacks(replace(WHOLE, **change), list_shipped())
    assert any(lack in sentence for sentence in found), found


def unknown_cutoff(notes: str) -> ModelEntry:
    return replace(WHOLE, cutoff=None, cutoff_provenance=None, cutoff_precision=None,
                   cutoff_url=None, notes=notes)  # fmt: skip


def test_a_cutoff_that_nobody_states_needs_a_note() -> None:
    assert WHOLE.cutoff == Month("2025-11")
    assert list_lacks(unknown_cutoff("the card states no cutoff"), []) == []
    assert list_lacks(unknown_cutoff(""), []) == [
        "cutoff: is not stated; if its makers do not say, write so in notes"
    ]
