"""Models in a confined process: the trusted side of ``confined.py``.

The process runs code of the model, so nothing that it sends is unpickled or run. Both sides write
messages of bytes to a pipe. A request is a JSON object and the token ids (int64). A reply is a JSON
object and an array, whose size this side knows before: losses (float64) or logits (float32).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

import core
import extras
import models
from core.environment import confined_environment
from core.errors import ModelError, ModelLoadError, NotMeasurable
from core.json import JsonObject
from extras.own_code.process import WatchedProcess, remove_folder
from models.scoring.machine import name_of_dtype
from models.scoring.scorer import DeviceFull, Losses, Tokens
from models.weights.checkpoint import CheckpointFiles
from models.weights.files import linked_files
from models.weights.loading import require_rows

WORKER = "extras.own_code.confined"  # the module that the process runs
_REPLY_BYTES = 2**16
_MESSAGE_CHARS = 500
_END_S = 5.0  # for the exit code of a process whose pipe is closed
_LOWEST_LOSS = -1e-3  # rounding of a probability of 1
_ERRORS: dict[str, type[Exception]] = {
    "ModelLoadError": ModelLoadError, "NotMeasurable": NotMeasurable, "DeviceFull": DeviceFull,
}  # fmt: skip


class GuardedEngine:
    """An ``Engine`` whose model runs in a confined process.

    Attributes:
        guard: how the process is confined, for the record of a cell.

    Raises:
        ModelLoadError: the system cannot confine a process, or the model cannot be loaded.
        NotMeasurable: the model is not causal.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        self._location = files.location
        self._lock = threading.Lock()
        home = Path(tempfile.mkdtemp(prefix="tidemark-model-"))
        from_worker, to_parent = Pipe(duplex=False)
        from_parent, to_worker = Pipe(duplex=False)
        ends = [from_parent.fileno(), to_parent.fileno()]
        rooms = [str(Path(each).parent) for each in models.__path__]
        paths = ":".join(dict.fromkeys([*rooms, *filter(None, sys.path)]))
        environment = confined_environment(home) | {"PYTHONPATH": paths}
        command = [sys.executable, "-m", WORKER, *map(str, ends)]
        self._watched = WatchedProcess(command, environment, home, *ends)
        self._process = self._watched.process
        from_parent.close()
        to_parent.close()
        self._receive = from_worker
        self._send = to_worker
        weakref.finalize(self, _end, self._watched, home, from_worker, to_worker)
        self.guard = str(self.ask(_spec(files, home))[0].get("guard"))
        self._watched.require_watch()
        facts, _ = self.ask({"do": "load"})
        self.vocabulary = _positive(facts.get("vocabulary"), self._location)
        most = facts.get("most")
        self.max_batch_tokens = None if most is None else _positive(most, self._location)
        require_rows(files, self.vocabulary)

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return losses as ``Engine.losses``; raise ModelError if the process ends or lies."""
        lengths = [len(each) for each in targets]
        ids = [*inputs, *targets, *([] if alphabet is None else [alphabet])]
        _, data = self.ask({"do": "losses", "rows": len(inputs)}, ids, 8 * sum(lengths))
        nats = np.frombuffer(data, dtype=np.float64).copy()
        if (nats < _LOWEST_LOSS).any():
            raise ModelError(f"{self._location}: the model's process states losses below 0")
        return np.split(np.maximum(nats, 0.0), np.cumsum(lengths)[:-1])

    def may_batch(self, longest: int) -> bool:
        """Implement ``RowModel.may_batch``."""
        return self.ask({"do": "may_batch", "longest": longest})[0].get("may_batch") is True

    def start(self, prompts: Sequence[Tokens], room: int) -> GuardedRows:
        """As ``RowModel.start``; rows that were started before end."""
        rows = GuardedRows(self)
        rows.run({"do": "start", "room": room}, prompts, len(prompts))
        return rows

    def ask(
        self, request: JsonObject, ids: Sequence[Tokens] = (), num_bytes: int = 0
    ) -> tuple[JsonObject, bytes]:
        """Send a request; return the reply, with exactly ``num_bytes`` bytes of an array."""
        with self._lock:
            try:
                request = request | {"lengths": [len(each) for each in ids]}
                self._send.send_bytes(json.dumps(request).encode())
                self._send.send_bytes(b"".join(each.tobytes() for each in ids))
                reply = json.loads(self._receive.recv_bytes(_REPLY_BYTES))
                data = self._receive.recv_bytes(max(num_bytes, 1))
            except (EOFError, OSError, ValueError, RecursionError) as error:
                state = "no longer follows the protocol"
                with suppress(subprocess.TimeoutExpired):
                    state = f"ended ({self._process.wait(_END_S)})"
                cause = "the memory may be full, or the model's code has ended it"
                raise ModelError(
                    f"{self._location}: the confined process of the model {state}; "
                    f"{self._watched.excess or cause}"
                ) from error
        if isinstance(reply, dict) and "error" in reply:
            message = "".join(filter(str.isprintable, str(reply.get("message"))))
            raise _ERRORS.get(str(reply["error"]), ModelError)(message[:_MESSAGE_CHARS])
        if not isinstance(reply, dict) or len(data) != num_bytes:
            raise ModelError(f"{self._location}: the model's process sent another kind of reply")
        return reply, data


class GuardedRows:
    """Texts in progress in a confined process; see ``models.generation.cached_rows.Rows``."""

    logits: torch.Tensor

    def __init__(self, engine: GuardedEngine) -> None:
        self._engine = engine

    def run(self, request: JsonObject, ids: Sequence[Tokens], rows: int) -> None:
        """Send a request whose reply is a row of logits for each of ``rows`` texts."""
        shape = (rows, self._engine.vocabulary)
        _, data = self._engine.ask(request, ids, 4 * shape[0] * shape[1])
        self.logits = torch.from_numpy(np.frombuffer(data, np.float32).reshape(shape).copy())

    def read(self, tokens: torch.Tensor) -> None:
        """Run the model on the next token of each row, int64 (rows,)."""
        self.run({"do": "read"}, [tokens.numpy()], len(tokens))

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at the given places, in this order."""
        self._engine.ask({"do": "keep", "places": list(places)})
        self.logits = self.logits[list(places)]


def start_confined(files: CheckpointFiles) -> GuardedEngine:
    """Start a confined process with the model of a checkpoint; errors as in ``GuardedEngine``."""
    return GuardedEngine(files)


def _spec(files: CheckpointFiles, home: Path) -> JsonObject:
    """Return the facts that the process needs to confine itself and to load its model."""
    folders = [each.resolve() for each in (files.folder, files.adapter) if each is not None]
    linked = [path for folder in folders for path in linked_files(folder)]
    packages = [*core.__path__, *extras.__path__, *models.__path__, sys.prefix, sys.base_prefix]
    libraries = [each for each in sys.path if each.endswith("-packages")]
    return {
        "location": files.location, "folders": list(map(str, folders)), "device": str(files.device),
        "dtype": name_of_dtype(files.dtype), "attention": files.attention,
        "has_own_code": files.has_own_code, "writable": str(home),
        "linked": list(map(str, linked)), "readable": [*packages, *libraries],
    }  # fmt: skip


def _positive(value: object, location: str) -> int:
    if not isinstance(value, int) or not 0 < value < 2**31:
        raise ModelError(f"{location}: the model's process states a size of {str(value)[:50]}")
    return value


def _end(watched: WatchedProcess, home: Path, *pipes: Connection) -> None:
    """End the process, and remove its folder."""
    watched.end()
    for pipe in pipes:
        pipe.close()
    remove_folder(home)
