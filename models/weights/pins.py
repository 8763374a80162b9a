"""Entries of models with own code, and the commit or folder digest to which they are pinned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from core.errors import UsageError
from core.settings import Settings
from models.backends import kind_of, kind_of_suffix
from models.catalogue import list_models
from models.similar_names import suggest
from models.weights.files import EVERYTHING, folder_digest
from models.weights.hub import ask_hub, find_cached, is_hub_id

_COMMIT = re.compile(r"[0-9a-f]{40}")


def first_facts(
    name: str, location: str | None, is_api: bool, settings: Settings, *, is_trusted: bool
) -> dict[str, object]:
    """Return the first facts of an entry: its location and kind.

    A trusted model without a location has all facts of its entry in the catalogue. A path is made
    absolute, so that runs from other folders find it.

    Raises:
        UsageError: a model has no location and is not trusted or not in the catalogue; or there is
            no file or folder at a path.
    """
    if location is not None:
        kind = "api" if is_api else kind_of(location)
        return {"name": name, "location": _absolute(location), "kind": kind}
    entries = {each.name: each for each in list_models(settings)}
    if name not in entries or not is_trusted:
        places = {each.name: each.location for each in entries.values()}
        close = [] if name in entries else suggest(name, places)
        known = f"; known names like it: {', '.join(close)}" if close else ""
        raise UsageError(
            f"give the location of {name}; without it, `tidemark models add NAME --trust code` "
            f"allows the own code of a model of the catalogue{known}"
        )
    return dict(vars(entries[name]))


def _absolute(location: str) -> str:
    """Return a location with an absolute path; raise UsageError for a path that does not exist."""
    if location.startswith(("http://", "https://")):
        return location
    path = Path(location).expanduser()
    if path.exists():
        return str(path.resolve())
    if not is_hub_id(location) or kind_of_suffix(path.suffix):
        raise UsageError(
            f"there is no file or folder {location} here; give a path that exists, the id of a "
            "model of the hub such as org/name, or the address of a server"
        )
    return location


def pin(known: Mapping[str, object], facts: dict[str, object], settings: Settings) -> str:
    """Set the revision in ``facts``, if it is None; return a clause that says where the code is.

    Raise the errors of ``pin_of``.
    """
    location = str(known["location"])
    if facts["revision"] is None:
        stated = known.get("revision")
        facts["revision"] = pin_of(location, str(stated) if stated else None, settings)
    found = str(facts["revision"])
    place = f"the files of {location} with the digest {found}"
    if _COMMIT.fullmatch(found):
        place = f"https://huggingface.co/{location}/tree/{found}"
    return f", whose code is run as it is in {place}"


def pin_of(location: str, revision: str | None, settings: Settings) -> str:
    """Return what a model is now: the digest of its folder, or its full commit on the hub.

    A revision that is a full commit is returned. Otherwise the commit in the local cache is taken,
    and if there is none, the hub is asked.

    Raises:
        ModelLoadError: a file cannot be read; or the hub does not have the model.
        UsageError: the location is neither a folder nor a model of the hub.
    """
    folder = Path(location).expanduser()
    if folder.is_dir():
        return folder_digest(folder, EVERYTHING)
    if not is_hub_id(location):
        raise UsageError(f"{location} is no folder, and no model of the hub has such a name")
    if revision and _COMMIT.fullmatch(revision):
        return revision
    for is_trusted in (True, False):
        cached = find_cached(location, revision, is_trusted)
        if cached is not None:
            return cached.name
    return ask_hub(location, revision, settings, is_trusted=True).commit
