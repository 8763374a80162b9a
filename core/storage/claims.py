"""Claims: files under the data root that prevent two processes from doing the same work.

    claims/<digest of the name>.<id of the claim>.json

Only the holder writes a claim's file, and no file name is used twice. The file contains host,
process id and start of the holder. It also contains the beat, a number that the holder increases
every ``BEAT_S`` seconds. A holder counts as dead if a waiting process sees an unchanged beat for
``DEAD_AFTER_S`` seconds on its own clock. Clocks of two machines are never compared. A holder on
the same host counts as dead as soon as its process has ended.

A process lists the claims of a name, writes its file, and lists the claims again. If another claim
has appeared, the process deletes its own file. Of two concurrent writers, the later one always sees
the file of the other and gives up. So two processes never hold the same name. On a local disk, a
lock (``Store.alone``) ensures that exactly one of them succeeds. A process that waits for a dead
holder, or takes its name, deletes the dead claim. A suspended holder that resumes logs a warning.
This does no harm: two processes that write the same cell write the same losses, atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import StorageError
from core.storage.store import Store
from core.storage.temporary import start_of, this_host

FOLDER = "claims"
BEAT_S = 15.0
DEAD_AFTER_S = 90.0
LOOK_S = 1.0
_PAUSE_FACTORS = (0.5, 1.5)  # range of a random factor of pauses, which separates two processes
_READ_TRIES = 5
_PRESENCE = "work/"  # prefix of the names of claims that only announce a process
_log = logging.getLogger(__name__)


class Holder(BaseModel):
    """The content of a claim's file."""

    model_config = ConfigDict(frozen=True)

    name: str  # the claimed name
    host: str  # name of the machine, id of its boot, namespace of process ids
    pid: int
    started: int | None  # start of the process in clock ticks since boot; None if unknown
    beat: int = 0  # number of renewals of the claim

    @property
    def is_gone(self) -> bool:
        """True if the holder is known to be an ended process of this host."""
        if self.host != this_host() or self.started is None:
            return False
        return start_of(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host.split()[0]}"


@dataclass
class _Watched:
    """The last observed beat (counter) of another process, and for how long it is unchanged."""

    beat: int
    looked_at: float  # monotonic time in seconds
    unchanged_s: float = 0.0


class Claims:
    """The claims of this process, for use by one thread. Methods raise StorageError.

    The beats (counters) of held claims increase every ``beat_s`` seconds. A holder whose beat is
    unchanged for ``dead_after_s`` seconds counts as dead.
    """

    def __init__(
        self, store: Store, beat_s: float = BEAT_S, dead_after_s: float = DEAD_AFTER_S
    ) -> None:
        self._store = store
        self._beat_s = beat_s
        self._dead_after_s = dead_after_s
        self._look_s = min(LOOK_S, beat_s)
        self._watched: dict[str, _Watched] = {}

    @contextlib.contextmanager
    def hold(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Claim those of ``names`` that no other process holds, and yield them, without waiting."""
        held: dict[str, Holder] = {}
        try:
            for name in names:
                path = self._take(name)
                if path is not None:
                    held[path] = _myself(name)
            with _beating(self._store, held, self._beat_s):
                yield [holder.name for holder in held.values()]
        finally:
            for path in held:
                self._release(path)

    def wait(self, name: str, is_done: Callable[[], bool]) -> None:
        """Wait until the work of ``name`` is done or no living process claims it.

        The claims of dead processes are deleted, so that any process can claim the name at once.
        """
        while True:
            time.sleep(self._look_s * random.uniform(*_PAUSE_FACTORS))  # noqa: S311
            if is_done():
                return
            paths = self._paths(name)
            if all(self._is_dead(path) for path in paths):
                self._delete(paths)
                return

    def _release(self, path: str) -> None:
        try:
            self._store.delete(path)
        except StorageError as error:  # the work is done, so the left claim does no harm
            _log.warning("a claim stays for %.0f s: %s", self._dead_after_s, error)

    def _take(self, name: str) -> str | None:
        """Create a claim and return the path of its file, or None if the name is claimed."""
        with self._store.alone(FOLDER):
            dead = self._paths(name)
            if not all(self._is_dead(path) for path in dead):
                return None
            path = f"{FOLDER}/{_key(name)}.{uuid.uuid4().hex}.json"
            self._store.write_bytes(path, _myself(name).model_dump_json().encode())
            try:
                has_rival = bool(set(self._paths(name)) - {path, *dead})
            except StorageError:
                self._release(path)  # else the claim would block the next attempt
                raise
            if has_rival:
                self._store.delete(path)
                return None
        self._delete(dead)
        return path

    def _delete(self, dead: Sequence[str]) -> None:
        for path in dead:
            self._store.delete(path)
            self._watched.pop(path, None)

    def _paths(self, name: str) -> list[str]:
        return self._store.list(f"{FOLDER}/{_key(name)}.*.json")

    def _is_dead(self, path: str) -> bool:
        """Return True if the holder of a claim is dead, or the claim was released."""
        holder = _read(self._store, path)
        if holder is None:
            self._watched.pop(path, None)
            return True
        if holder.is_gone:
            _log.info("%s: its holder, %s, is gone", holder.name, holder)
            return True
        now = time.monotonic()
        watched = self._watched.get(path)
        if watched is None or watched.beat != holder.beat:
            self._watched[path] = _Watched(holder.beat, now)
            return False
        # Between two looks, count at most twice the usual pause: this process may be suspended.
        watched.unchanged_s += min(now - watched.looked_at, 2 * self._look_s)
        watched.looked_at = now
        if watched.unchanged_s < self._dead_after_s:
            return False
        _log.warning("%s: no beat of %s for %.0f s", holder.name, holder, watched.unchanged_s)
        return True


@contextlib.contextmanager
def hold_alone(store: Store, name: str, go_on: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Claim a name in the ``with`` block; wait first while a living process claims it.

    ``go_on`` is called again and again in the wait. It may raise an error to end the wait.

    Raises:
        StorageError: claims cannot be read or written.
    """
    claims = Claims(store)

    def is_done() -> bool:  # never: the wait ends when no living process claims the name
        go_on()
        return False

    while True:
        with claims.hold([name]) as held:
            if held:
                yield
                return
        _log.warning("waiting: another process holds %s", name)
        claims.wait(name, is_done)


def sweep(store: Store) -> int:
    """Delete the claims of ended processes of this host; return the number of deleted claims."""
    gone = [path for path, holder in _holders(store) if holder.is_gone]
    for path in gone:
        store.delete(path)
    return len(gone)


def is_claimed(store: Store, name: str) -> bool:
    """Return True if a process holds a claim of this name, even if that process is dead."""
    return bool(store.list(f"{FOLDER}/{_key(name)}.*.json"))


@contextlib.contextmanager
def present(store: Store, subject: str) -> Iterator[None]:
    """Let other processes count this process among those that work on a subject."""
    with Claims(store).hold([f"{_PRESENCE}{subject}/{uuid.uuid4().hex}"]):
        yield


def count_present(store: Store) -> Counter[str]:
    """Return the number of processes that work on each subject; see ``present``.

    A process counts if it renewed its claim at most ``DEAD_AFTER_S`` seconds before the newest
    claim was written. Both times are those of the store, so that no two clocks are compared.
    """
    stamps = store.list_stamped(f"{FOLDER}/*.json")
    newest = max((stamp.modified_at for stamp in stamps.values()), default=0.0)
    found: Counter[str] = Counter()
    for path, holder in _holders(store):
        stamp = stamps.get(path)
        if not holder.name.startswith(_PRESENCE) or holder.is_gone or stamp is None:
            continue
        if newest - stamp.modified_at <= DEAD_AFTER_S:
            found[holder.name.removeprefix(_PRESENCE).rpartition("/")[0]] += 1
    return found


def list_claimed(store: Store) -> list[str]:
    """Return the names that are claimed now, without claims of ended processes of this host.

    Claims of processes on other machines are always included, even if those processes are dead.
    """
    return sorted(holder.name for _, holder in _holders(store) if not holder.is_gone)


def _holders(store: Store) -> Iterator[tuple[str, Holder]]:
    """Yield the path and the holder of each claim; log and skip unreadable ones."""
    for path in store.list(f"{FOLDER}/*.json"):
        try:
            holder = _read(store, path)
        except StorageError as error:
            _log.warning("skipped: %s", error)
            continue
        if holder is not None:
            yield path, holder


@contextlib.contextmanager
def _beating(store: Store, held: dict[str, Holder], beat_s: float) -> Iterator[None]:
    """Renew the held claims every ``beat_s`` seconds in a thread of its own."""
    ended = threading.Event()

    def beat() -> None:
        """Rewrite the files with increased beats until ``ended``; drop claims that were lost."""
        beats = dict(held)
        while beats and not ended.wait(beat_s):
            for path, holder in list(beats.items()):
                try:
                    if not store.exists(path):
                        _log.warning("%s: the claim is lost; was this process suspended?", holder)
                        del beats[path]
                        continue
                    beats[path] = holder.model_copy(update={"beat": holder.beat + 1})
                    store.write_bytes(path, beats[path].model_dump_json().encode())
                except StorageError as error:
                    _log.warning("%s: no beat: %s", holder.name, error)

    thread = threading.Thread(target=beat, name="claims", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # else a last beat could write the file again after its deletion


def _key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _read(store: Store, path: str) -> Holder | None:
    """Return the holder of a claim, or None if the claim was released."""
    try:
        return Holder.model_validate_json(_bytes_of(store, path))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise StorageError(
            f"{store.url(path)} is no claim that this version of tidemark knows; delete it once "
            "no other version of tidemark uses this data root"
        ) from error


def _bytes_of(store: Store, path: str) -> bytes:
    """Read a claim; FileNotFoundError if it was released. Its holder may be rewriting it."""
    for attempt in range(_READ_TRIES):
        try:
            return store.read_bytes(path)
        except StorageError:
            if not store.exists(path):
                raise FileNotFoundError(path) from None
            if attempt == _READ_TRIES - 1:
                raise  # a concurrent rewrite cannot explain so many failures
    raise AssertionError("unreachable")


def _myself(name: str) -> Holder:
    pid = os.getpid()
    return Holder(name=name, host=this_host(), pid=pid, started=start_of(pid))
