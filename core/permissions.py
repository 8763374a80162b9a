"""Permissions to crawl sources that may not be crawled without one.

    permissions/<source>.json      who has permitted what, and until when

A later one takes the place of the former; what was crawled has the one that was in force in its
manifest. To withdraw a permission, delete its file.
"""

from __future__ import annotations

import datetime as dt

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.errors import AccessRefused, StorageError, UsageError
from core.storage import Store, path_part

FOLDER = "permissions"


class Permission(BaseModel):
    """A permission as it was recorded.

    Attributes:
        source: that may be crawled.
        note: who permitted it, and what, in the words of whoever recorded it.
        until: the last day on which a crawl may start (UTC).
        recorded_at: UTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    note: str
    until: dt.date
    recorded_at: AwareDatetime

    def is_in_force(self, now: dt.datetime | None = None) -> bool:
        """Whether its last day has not passed."""
        return _today(now) <= self.until

    def describe(self) -> dict[str, str]:
        """Return it for a manifest."""
        return self.model_dump(mode="json", exclude={"source"})


def record_permission(store: Store, source: str, note: str, until: str) -> Permission:
    """Record that a source may be crawled.

    Args:
        store: the data root.
        source: its name.
        note: who permitted it, and what.
        until: the last day on which a crawl may start, YYYY-MM-DD (UTC).

    Raises:
        UsageError: the note is empty, or ``until`` is no such day, or over.
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
    says = f"--until {text!r} is no day; expected YYYY-MM-DD"
    try:
        day = dt.date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(says) from error
    if day.isoformat() != text:  # another form of ISO 8601
        raise UsageError(says)
    return day


def read_permission(store: Store, source: str) -> Permission | None:
    """Return what is recorded for a source, in force or not; None where there is nothing.

    Raises:
        StorageError: the file is damaged, or is another source's.
    """
    path = _path(source)
    if not store.exists(path):
        return None
    try:
        permission = Permission.model_validate_json(store.read_bytes(path))
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise StorageError(f"{store.url(path)} is no permission ({why}); {_AGAIN}") from error
    if permission.source != source:
        raise StorageError(f"{store.url(path)} is {permission.source}'s, not {source}'s; {_AGAIN}")
    return permission


def require_permission(
    store: Store, source: str, why: str | None, now: dt.datetime | None = None
) -> Permission | None:
    """Return the permission by which a source is crawled; None where it needs none.

    Args:
        store: the data root.
        source: its name.
        why: it needs one, and whom to ask; None if it does not.
        now: default: the present.

    Raises:
        AccessRefused: it needs one, and none is recorded or it is over.
        StorageError: the file is damaged.
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


_AGAIN = "delete it and record the permission again: tidemark sources permit"
