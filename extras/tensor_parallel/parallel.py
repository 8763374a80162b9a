"""Models whose layers are shared by several devices: the side that asks.

Each device has a process (``share.py``) with its part of every layer. All processes get every
request and compute it together; the first one returns the result.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import torch

from core.errors import ModelError, UsageError
from models.scoring.scorer import DeviceFull, Losses, Scored, Tokens
from models.weights.checkpoint import CheckpointFiles

SHARE = "extras.tensor_parallel.share"  # the module that the processes run
_HEADS = ("num_attention_heads", "num_key_value_heads")
_END_S = 5.0  # for the exit code of a process whose pipe is closed


@dataclass(frozen=True)
class ModelFacts:
    """Facts of a model that the processes have loaded; counts are of the whole model."""

    max_batch_tokens: int | None
    active_parameters: int
    backend: str  # of torch.distributed


def why_unshared(files: CheckpointFiles, num_devices: int) -> str | None:
    """Return why devices cannot share the layers of a model, or None if they can."""
    config = files.config.get_text_config()
    if files.adapter is not None:
        return "it is an adapter, which is merged in one process"
    if files.quantisation is not None:
        return "its weights are quantised"
    if not getattr(config, "base_model_tp_plan", None):
        return f"transformers has no plan for {config.model_type}"
    for name in _HEADS:
        number = getattr(config, name, None)
        if number is not None and number % num_devices:
            return f"{num_devices} devices cannot share {name} = {number} equally"
    return None


def start_parallel(files: CheckpointFiles, num_devices: int) -> SharedModel:
    """Start the processes of a model that devices can share (``why_unshared``).

    Raises:
        UsageError: there are fewer GPUs than ``num_devices``.
        ModelLoadError: the weights are broken, or do not fit into the devices' memory.
        NotMeasurable: the model is not causal.
    """
    if files.device.type == "cuda":
        there = torch.cuda.device_count()
        if there < num_devices:
            raise UsageError(
                f"TIDEMARK_TENSOR_PARALLEL is {num_devices} and this process sees {there} GPUs; "
                f"set it to at most {there}"
            )
    return SharedModel(files, num_devices)


class SharedModel:
    """A ``ParallelEngine`` with moments; each device has a process.

    If a batch does not fit into the memory of one device, the other processes wait for it in
    vain. So all of them are ended, and the next batch starts new ones.
    """

    def __init__(self, files: CheckpointFiles, num_devices: int) -> None:
        self._files = files
        self._num_devices = num_devices
        self._lock = threading.Lock()
        self._processes: _Processes | None = None
        facts = self._start()
        self.max_batch_tokens = facts.max_batch_tokens
        self.active_parameters = facts.active_parameters
        self.backend = facts.backend

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return losses as ``Engine.losses``; raise ModelError if a process ends."""
        found: list[Losses] = self._ask(("losses", inputs, targets, alphabet))
        return found

    def with_moments(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> list[Scored]:
        """Return losses and moments as ``MomentEngine``; raise ModelError if a process ends."""
        found: list[Scored] = self._ask(("with_moments", inputs, targets))
        return found

    def close(self) -> None:
        """End the processes; the next request starts them again."""
        with self._lock:
            self._end()

    def _ask(self, request: tuple[Any, ...]) -> Any:
        """Send a request to the processes, started if need be; end them after an error."""
        with self._lock:
            if self._processes is None:
                self._start()
            assert self._processes is not None  # noqa: S101
            try:
                return self._processes.ask(request)
            except (ModelError, DeviceFull):
                self._end()
                raise

    def _start(self) -> ModelFacts:
        """Start a process for each device, and load the model; return its facts."""
        processes = _Processes(self._num_devices, self._files)
        weakref.finalize(self, processes.end)
        self._processes = processes
        try:
            facts: ModelFacts = processes.ask(self._files)
        except BaseException:
            self._end()
            raise
        return facts

    def _end(self) -> None:
        if self._processes is not None:
            self._processes.end()
        self._processes = None


class _Processes:
    """A process for each device, with a pipe to each."""

    def __init__(self, num_devices: int, files: CheckpointFiles) -> None:
        self._location = files.location
        self._folder = tempfile.TemporaryDirectory(prefix="tidemark-parallel-")
        self._pipes: list[Connection] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        for rank in range(num_devices):
            ours, theirs = Pipe()
            # -P: files of the current folder do not shadow modules.
            command = [sys.executable, "-P", "-m", SHARE, str(theirs.fileno()), self._folder.name]
            process = subprocess.Popen(
                command,
                env=_environment(rank, num_devices, files.device.type),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def ask(self, request: object) -> Any:
        """Send a request to all processes; return what the first one replies.

        Raise the first error that one replies, and ModelError if one ends.
        """
        waiting = list(self._pipes)
        result = None
        try:
            for pipe in self._pipes:
                pipe.send(request)
            while waiting:
                for ready in wait(waiting):
                    pipe = cast("Connection", ready)
                    reply = pipe.recv()
                    if isinstance(reply, Exception):
                        raise reply
                    waiting.remove(pipe)
                    if pipe is self._pipes[0]:
                        result = reply
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise ModelError(
                f"{self._location}: one of the {len(self._processes)} processes that share the "
                f"model ended ({self._exit_codes()}); the memory may be full; see its messages "
                "above, or unset TIDEMARK_TENSOR_PARALLEL"
            ) from error
        return result

    def _exit_codes(self) -> str:
        """Return the exit codes of the processes that have ended."""
        with suppress(subprocess.TimeoutExpired):
            self._processes[0].wait(_END_S)
        codes = [process.poll() for process in self._processes]
        ended = [f"process {rank}: {code}" for rank, code in enumerate(codes) if code is not None]
        return ", ".join(ended) or "no exit code yet"

    def end(self) -> None:
        """End all processes, and return when they are gone."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        for pipe in self._pipes:
            pipe.close()
        self._folder.cleanup()


def _environment(rank: int, num_devices: int, device: str) -> dict[str, str]:
    """Return the environment of a process; torch and transformers read the variables."""
    environment = dict(os.environ) | {  # noqa: TID251
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(num_devices),
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""  # transformers would take a GPU that is there
        environment["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // num_devices))
    return environment
