"""GPUs of this machine: their list, the GPUs that a process may use, and their locks.

Rule of locking: a process that computes on a GPU holds its lock until the process ends. A process
that needs several GPUs first stands in the queue of the machine. Then it takes the locks one after
the other, in the order of their ids, and waits for each. Whoever needs one GPU takes no lock while
another process stands in the queue. So a process with several GPUs waits only for work that had
begun, and no two processes wait for each other. The operating system releases locks of processes
that have ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, ReadWriteLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from core.environment import given_gpus, simulated_gpus
from core.errors import StorageError, UsageError
from core.storage.store import Store, explain_disk_errors, path_part

FOLDER = "gpus"  # in the data root: the GPUs of workers; in the scratch folder: locks
LOOK_S = 1.0
_QUIET_ATTEMPTS = 2  # number of attempts before a wait is logged; shorter waits are usual
_log = logging.getLogger(__name__)


class Gpu(BaseModel):
    """A GPU; ``number`` is its place in the driver's list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    uuid: str
    name: str
    memory_bytes: int


def list_gpus() -> list[Gpu]:
    """Return all GPUs of this machine, even those that this process may not use.

    Raise UsageError, with the driver's error, if there is no driver.
    """
    simulated = simulated_gpus()
    if simulated is not None:
        count, memory_bytes = simulated
        return [
            Gpu(number=number, uuid=f"GPU-{number}", name="simulated", memory_bytes=memory_bytes)
            for number in range(count)
        ]
    import pynvml

    try:
        pynvml.nvmlInit()
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [
            Gpu(
                number=number,
                uuid=pynvml.nvmlDeviceGetUUID(handle),
                name=pynvml.nvmlDeviceGetName(handle),
                memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
            )
            for number, handle in enumerate(handles)
        ]
    except pynvml.NVMLError as error:
        raise UsageError(f"the driver of NVIDIA does not answer ({error})") from error


def choose_gpus(wanted: str, gpus: Sequence[Gpu]) -> list[Gpu]:
    """Return the GPUs that a text names: ``all``, a number N (the first N), or a list.

    A list has numbers or ids (UUIDs) with commas; ``2,`` is GPU 2 alone. Raise UsageError if the
    text names no GPU, or an unknown GPU.
    """
    listed = ", ".join(f"{gpu.number} ({gpu.name}, {gpu.uuid})" for gpu in gpus) or "none"
    expected = f"expected all, a number of GPUs, or a list such as 0,2; GPUs here: {listed}"
    if wanted == "all":
        chosen = list(gpus)
    elif wanted.isdecimal():
        if int(wanted) > len(gpus):
            raise UsageError(f"--gpus {wanted}: there are only {len(gpus)}; {expected}")
        chosen = list(gpus[: int(wanted)])
    else:
        by_name = {str(gpu.number): gpu for gpu in gpus} | {gpu.uuid: gpu for gpu in gpus}
        names = dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip())
        unknown = [name for name in names if name not in by_name]
        if unknown:
            raise UsageError(f"--gpus {wanted}: there is no GPU {unknown[0]!r}; {expected}")
        chosen = list(dict.fromkeys(by_name[name] for name in names))
    if not chosen:
        raise UsageError(f"--gpus {wanted}: names no GPU; {expected}")
    return chosen


def usable_gpus() -> list[Gpu]:
    """Return the GPUs that this process may use, by CUDA_VISIBLE_DEVICES; none without a driver.

    Like CUDA, ignore entries from the first unknown GPU on. A part of a GPU (MIG) counts as a GPU.
    """
    try:
        gpus = list_gpus()
    except UsageError:
        return []
    given = given_gpus()
    if given is None:
        return gpus
    usable = []
    for word in filter(None, given.replace(" ", "").split(",")):
        found = [gpu for gpu in gpus if word in (str(gpu.number), gpu.uuid)]
        if word.startswith("MIG-"):
            found = [Gpu(number=-1, uuid=word, name="MIG", memory_bytes=0)]
        if not found:
            break
        usable += found
    return usable


@contextmanager
def hold_gpus(
    gpus: Sequence[Gpu], folder: Path, rest: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold GPUs alone in the ``with`` block; wait for other processes, by the rule of the module.

    ``folder`` has the locks of all processes of the machine. ``rest`` sleeps between two attempts;
    it may raise an error to end the wait.
    """
    with ExitStack() as stack:
        if gpus:
            with explain_disk_errors(str(folder)):
                folder.mkdir(parents=True, exist_ok=True)
                queue = ReadWriteLock(folder / "queue.db", is_singleton=False)
            stack.callback(queue.close)
        if len(gpus) > 1:  # stand in the queue; several processes may share its read lock
            _wait_for(lambda: queue.acquire_read(blocking=False), "the queue", rest)
        for gpu in sorted(gpus, key=lambda gpu: gpu.uuid):
            lock = FileLock(folder / f"{path_part(gpu.uuid)}.lock", thread_local=False)
            stack.callback(lock.release)

            def take(lock: FileLock = lock) -> None:
                if len(gpus) > 1:
                    lock.acquire(timeout=0)
                    return
                # The write lock is free only if nobody stands in the queue; else Timeout is raised.
                with queue.write_lock(blocking=False):
                    lock.acquire(timeout=0)

            _wait_for(take, f"GPU {gpu.number} ({gpu.uuid})", rest)
        yield


def _wait_for(take: Callable[[], object], what: str, rest: Callable[[float], None]) -> None:
    """Call ``take`` until it raises no Timeout; between two attempts, ``rest`` for ``LOOK_S``."""
    for attempt in itertools.count():
        with contextlib.suppress(Timeout):
            take()
            return
        if attempt == _QUIET_ATTEMPTS:
            _log.warning("waiting for %s, which another process of this machine holds", what)
        rest(LOOK_S)


class Host(BaseModel):
    """The GPUs of one machine's workers; a file of the data root while these run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    gpus: tuple[Gpu, ...]
    dtype: str  # the setting ``dtype`` of these workers

    @property
    def path(self) -> str:
        """The path of the file: one for each set of GPUs of a machine."""
        digest = hashlib.sha256(" ".join(gpu.uuid for gpu in self.gpus).encode()).hexdigest()[:8]
        return f"{FOLDER}/{path_part(self.host)}-{digest}.json"

    @contextmanager
    def announced(self, store: Store) -> Iterator[None]:
        """Write the file, which ``read_fleet`` reads; delete it after the ``with`` block."""
        store.write_bytes(self.path, self.model_dump_json().encode())
        try:
            yield
        finally:
            store.delete(self.path)


@dataclass(frozen=True)
class Fleet:
    """All machines with GPU workers, as far as known."""

    hosts: tuple[Host, ...] = ()

    @property
    def memory_bytes(self) -> int | None:
        """The memory of the smallest GPU of all workers in bytes, or None if unknown."""
        gpus = itertools.chain.from_iterable(host.gpus for host in self.hosts)
        return min((gpu.memory_bytes for gpu in gpus), default=None)

    @property
    def has_several(self) -> bool:
        """True if a machine has several GPUs, so that one of its workers owns them all."""
        return any(len(host.gpus) > 1 for host in self.hosts)

    @property
    def num_gpus(self) -> int:
        """The number of GPUs."""
        return sum(len(host.gpus) for host in self.hosts)


def read_fleet(store: Store) -> Fleet:
    """Return the machines whose workers have announced themselves; log and skip damaged files."""
    hosts = []
    for path in store.list(f"{FOLDER}/*.json"):
        try:
            hosts.append(Host.model_validate_json(store.read_bytes(path)))
        except (ValidationError, StorageError) as error:  # the worker may have ended meanwhile
            _log.warning("passed over: %s: %s", store.url(path), str(error).partition("\n")[0])
    return Fleet(tuple(hosts))
