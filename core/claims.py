"""Claims: who works on something, as files under the data root, so that nobody else does it too.

    claims/<digest of the name>.<id of the claim>.json

A claim is a file that only its holder writes, under a name that is never used again. It says which
process holds it (host, process id, start of the process) and has a beat, a number that the holder
raises every ``BEAT_S``. Clocks of two machines are never compared: a holder is dead when whoever
waits for it has watched the same beat for ``DEAD_AFTER_S`` of its own time, or at once when it was
a process of this host that is gone.

Who wants a claim looks whether there is another, writes its own, and looks again: if one has come
in between, it withdraws. Of two at once, at least the later writer sees the other, so that never
both hold it; on a local disk they take turns besides (``Store.alone``), so that one of them does.
Dead claims are no obstacle; whoever gets past one deletes it, and may, because its file is nobody
else's. A holder that wakes after it was taken for dead finds its file gone at its next beat and
says so. That is all it does: two who write the same cell write the same losses, atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import StorageError
from core.storage import Store

FOLDER = "claims"
BEAT_S = 15.0
DEAD_AFTER_S = 90.0
LOOK_S = 1.0
_READ_TRIES = 5
_log = logging.getLogger(__name__)


class Holder(BaseModel):
    """What a claim's file says.

    Attributes:
        name: what is claimed.
        host: name of the machine, its boot and its space of process ids.
        pid: of the process.
        started: when the process started, in the kernel's ticks since boot; None if unknown.
        beat: how often the claim was renewed.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    host: str
    pid: int
    started: int | None
    beat: int = 0

    @property
    def is_gone(self) -> bool:
        """Whether it was a process of this host that has ended; False where nobody can say."""
        if self.host != this_host() or self.started is None:
            return False
        return _start_of(self.pid) != self.started

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host.split()[0]}"


@dataclass
class _Watched:
    """A claim of somebody else: its last beat, and for how long we have seen nothing but that."""

    beat: int
    looked_at: float
    unchanged_s: float = 0.0


class Claims:
    """Claims of this process; for one thread. Methods raise StorageError.

    Args:
        store: the data root.
        beat_s: seconds between two beats of a claim that is held.
        dead_after_s: a holder whose beat stays the same for so many seconds is dead.
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
        """Claim what is free of ``names`` and yield it; nothing is waited for."""
        held: dict[str, Holder] = {}
        try:
            for name in names:
                if (path := self._take(name)) is not None:
                    held[path] = _myself(name)
            with _beating(self._store, held, self._beat_s):
                yield [holder.name for holder in held.values()]
        finally:
            for path in held:
                self._release(path)

    def wait(self, name: str, is_done: Callable[[], bool]) -> None:
        """Return when nobody alive claims ``name`` any more, or when it is done."""
        while True:
            # Two who withdrew before each other must not meet for ever.
            time.sleep(self._look_s * random.uniform(0.5, 1.5))  # noqa: S311
            if is_done() or all(self._is_dead(path) for path in self._paths(name)):
                return

    def _release(self, path: str) -> None:
        try:
            self._store.delete(path)
        except StorageError as error:  # what was claimed is done all the same
            _log.warning("a claim stays for %.0f s: %s", self._dead_after_s, error)

    def _take(self, name: str) -> str | None:
        """Return the file of our claim, or None where somebody else has one."""
        with self._store.alone(FOLDER):
            dead = self._paths(name)
            if not all(self._is_dead(path) for path in dead):
                return None
            path = f"{FOLDER}/{_key(name)}.{uuid.uuid4().hex}.json"
            self._store.write_bytes(path, _myself(name).model_dump_json().encode())
            try:
                is_second = bool(set(self._paths(name)) - {path, *dead})
            except StorageError:
                self._release(path)  # or our next try would take it for somebody else's
                raise
            if is_second:
                self._store.delete(path)
                return None
        for each in dead:
            self._store.delete(each)
            self._watched.pop(each, None)
        return path

    def _paths(self, name: str) -> list[str]:
        return self._store.list(f"{FOLDER}/{_key(name)}.*.json")

    def _is_dead(self, path: str) -> bool:
        """Whether a claim's holder is dead; a claim that is released counts as one."""
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
        # If we were suspended ourselves, or the store was away, nobody watched meanwhile.
        watched.unchanged_s += min(now - watched.looked_at, 2 * self._look_s)
        watched.looked_at = now
        if watched.unchanged_s < self._dead_after_s:
            return False
        _log.warning("%s: no beat of %s for %.0f s", holder.name, holder, watched.unchanged_s)
        return True


def sweep(store: Store) -> int:
    """Delete claims of processes of this host that are gone; return how many."""
    swept = 0
    for path, holder in _holders(store):
        if holder.is_gone:
            store.delete(path)
            swept += 1
    return swept


def list_claimed(store: Store) -> list[str]:
    """Return the names that are claimed now, without those of processes known to be gone.

    Whether a process of another machine still lives shows only to who watches its beat.
    """
    return sorted(holder.name for _, holder in _holders(store) if not holder.is_gone)


def _holders(store: Store) -> Iterator[tuple[str, Holder]]:
    """Read all claims; a damaged one is named in the log, and matters to who wants that name."""
    for path in store.list(f"{FOLDER}/*.json"):
        try:
            holder = _read(store, path)
        except StorageError as error:
            _log.warning("passed over: %s", error)
            continue
        if holder is not None:
            yield path, holder


@contextlib.contextmanager
def _beating(store: Store, held: dict[str, Holder], beat_s: float) -> Iterator[None]:
    """Renew claims from a thread until the block ends."""
    ended = threading.Event()

    def beat() -> None:
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
        thread.join()  # or its last beat would bring the file back that is deleted next


def _key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _read(store: Store, path: str) -> Holder | None:
    """Return what a claim says, or None if it is there no longer."""
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
    for attempt in range(_READ_TRIES):
        try:
            return store.read_bytes(path)
        except StorageError:
            if not store.exists(path):
                raise FileNotFoundError(path) from None
            if attempt == _READ_TRIES - 1:
                raise  # else a beat came in between, which some object stores say is an error
    raise AssertionError("unreachable")


def _myself(name: str) -> Holder:
    pid = os.getpid()
    return Holder(name=name, host=this_host(), pid=pid, started=_start_of(pid))


@lru_cache(maxsize=1)
def this_host() -> str:
    """Name this machine: containers share names, machines share process ids, boots start anew."""
    facts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        facts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(facts)


def _start_of(pid: int) -> int | None:
    """Return when a process of this host started (proc(5)), or None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()  # its name may hold spaces and brackets
    return None if state in "ZX" else int(fields[18])
