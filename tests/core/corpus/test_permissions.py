import datetime as dt
import json
from pathlib import Path

import pytest

from core.corpus.permissions import read_permission, record_permission, require_permission
from core.errors import AccessRefused, StorageError, UsageError
from core.storage.store import Store

TODAY = dt.datetime.now(dt.UTC).date()
LATER = str(TODAY + dt.timedelta(days=30))
WHY = "its terms forbid robots; ask support@example.org"


def test_what_is_recorded_is_read_and_required(store: Store) -> None:
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    written = record_permission(store, "forum", " A. Smith, by mail: resolved questions ", LATER)
    assert written == read_permission(store, "forum") == require_permission(store, "forum", WHY)
    assert written.note == "A. Smith, by mail: resolved questions"
    assert written.until == TODAY + dt.timedelta(days=30)
    assert before <= written.recorded_at <= dt.datetime.now(dt.UTC)
    assert written.describe() == {
        "note": written.note,
        "until": LATER,
        "recorded_at": written.recorded_at.isoformat().replace("+00:00", "Z"),
    }


def test_without_one_it_is_said_why_and_what_to_do(store: Store) -> None:
    with pytest.raises(AccessRefused) as refusal:
        require_permission(store, "forum", WHY)
    for part in ("forum", WHY, "none is recorded", "tidemark sources permit forum --note"):
        assert part in str(refusal.value)
    assert require_permission(store, "open", None) is None


def test_it_holds_to_the_end_of_its_last_day_in_utc(store: Store) -> None:
    record_permission(store, "forum", "a year", "2999-12-31")
    west = dt.timezone(dt.timedelta(hours=-8))
    last = dt.datetime(2999, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
    for now in (last, last.astimezone(west)):
        assert require_permission(store, "forum", WHY, now)
        now += dt.timedelta(seconds=1)
        with pytest.raises(AccessRefused, match="the one recorded ended on 2999-12-31"):
            require_permission(store, "forum", WHY, now)


def test_an_empty_note_and_a_day_that_is_none_are_refused(store: Store) -> None:
    for note in ("", "\n\t"):
        with pytest.raises(UsageError, match="note of forum's permission is empty"):
            record_permission(store, "forum", note, LATER)
    for until in ("", "soon", "2999-12", "29991231", "2026-02-30", "2999-W01-1"):
        with pytest.raises(UsageError, match="is no day; expected YYYY-MM-DD"):
            record_permission(store, "forum", "note", until)
    assert read_permission(store, "forum") is None


def test_a_day_that_is_over_is_refused_and_changes_nothing(store: Store) -> None:
    record_permission(store, "forum", "former", LATER)
    record_permission(store, "forum", "note", str(TODAY))  # today is not over
    with pytest.raises(UsageError, match="is over already; today is"):
        record_permission(store, "forum", "new", str(TODAY - dt.timedelta(days=1)))
    assert read_permission(store, "forum").note == "note"  # type: ignore[union-attr]


def test_a_damaged_file_permits_nothing(store: Store) -> None:
    record_permission(store, "forum", "note", LATER)
    path = Path(store.url("permissions/forum.json"))
    whole = path.read_text()
    for damaged in (whole[:-5], "[]", json.dumps({**json.loads(whole), "until": "never"})):
        path.write_text(damaged)
        with pytest.raises(StorageError, match="forum.json is not a permission: .*; bring it back"):
            require_permission(store, "forum", WHY)
    path.rename(path.with_name("other.json"))
    path.with_name("other.json").write_text(whole)
    with pytest.raises(StorageError, match="is forum's, not other's"):
        require_permission(store, "other", WHY)
