"""Records of permissions, for sources that may be crawled only with permission of the site.

    permissions/<source>.json      the grantor, the scope, and the last day

A new permission of a source replaces the old file. The manifest of a crawl contains the
permission in force. To withdraw a permission, delete its file.
"""

from __future__ import annotations

import contextlib
import datetime as dt

from pydantic import AwareDatetime, BaseModel, ConfigDict

from core.errors import AccessRefused, StorageError, UsageError
from core.storage.records import read_record
from core.storage.store import Store, path_part

FOLDER = "permissions"


class Permission(BaseModel):
    """A recorded permission to crawl a source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    note: str  # grantor and scope, as entered by the user
    until: dt.date  # the last day on which a crawl may start (UTC)
    recorded_at: AwareDatetime

    def is_in_force(self, now: dt.datetime | None = None) -> bool:
        """Return True if the permission's last day (UTC) has not passed."""
        return _today(now) <= self.until

    def describe(self) -> dict[str, str]:
        """Return the permission as entries for the manifest of a crawl."""
        return self.model_dump(mode="json", exclude={"source"})


def record_permission(store: Store, source: str, note: str, until: str) -> Permission:
    """Record that a source may be crawled until the day ``until`` (YYYY-MM-DD), inclusive.

    Raises:
        UsageError: the note is empty, or ``until`` is malformed or in the past.
    """
    if not note.strip():
        raise UsageError(
            f"the note of {source}'s permission is empty; say who permitted what, and where that "
            "is written"
        )
    now = dt.datetime.now(dt.UTC)
    day = _read_day(until)
    if day < _today(now):
        raise UsageError(f"a permission until {day} is over already; today is {_today(now)} (UTC)")
    permission = Permission(
        source=source, note=note.strip(), until=day, recorded_at=now.replace(microsecond=0)
    )
    store.write_bytes(_path(source), permission.model_dump_json(indent=1).encode() + b"\n")
    return permission


def _read_day(text: str) -> dt.date:
    with contextlib.suppress(ValueError):
        day = dt.date.fromisoformat(text)
        if day.isoformat() == text:  # other forms of ISO 8601 are refused
            return day
    raise UsageError(f"--until {text!r} is no day; expected YYYY-MM-DD")


def read_permission(store: Store, source: str) -> Permission | None:
    """Return the recorded permission of a source, even if expired, or None if none is recorded.

    Raises:
        StorageError: the permission's file is damaged or belongs to another source.
    """
    path = _path(source)
    if not store.exists(path):
        return None
    permission = read_record(Permission, store, path, "a permission", _AGAIN)
    if permission.source != source:
        raise StorageError(f"{store.url(path)} is {permission.source}'s, not {source}'s; {_AGAIN}")
    return permission


def require_permission(
    store: Store, source: str, why: str | None, now: dt.datetime | None = None
) -> Permission | None:
    """Return the permission of a source, or None if the source requires no permission.

    ``why`` states why the source requires a permission, and is None if it requires none.

    Raises:
        AccessRefused: a required permission is not recorded, or has expired.
        StorageError: the permission's file is damaged.
    """
    if why is None:
        return None
    permission = read_permission(store, source)
    if permission is None:
        lack = "none is recorded"
    elif not permission.is_in_force(now):
        lack = f"the one recorded ended on {permission.until}"
    else:
        return permission
    raise AccessRefused(
        f"{source} is crawled by permission only, and {lack}: {why}. With a permission: "
        f'tidemark sources permit {source} --note "who permitted what" --until YYYY-MM-DD'
    )


def _path(source: str) -> str:
    return f"{FOLDER}/{path_part(source)}.json"


def _today(now: dt.datetime | None) -> dt.date:
    return (now or dt.datetime.now(dt.UTC)).astimezone(dt.UTC).date()


_AGAIN = (
    "bring it back from a backup, or move it out of the data root and record the permission again: "
    "tidemark sources permit"
)
