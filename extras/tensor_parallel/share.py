"""The process of one device, with its part of every layer; ``parallel.py`` starts it.

    python -m extras.tensor_parallel.share <number of the pipe> <folder that the processes share>

The environment has RANK and WORLD_SIZE. The first message is the model's files; each later one
names a method of ``Forward``, with its arguments. The process ends when the pipe is closed.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from core.errors import ModelError
from extras.tensor_parallel.parallel import ModelFacts
from models.scoring.forward import Forward
from models.scoring.machine import active_parameters
from models.scoring.scorer import DeviceFull
from models.weights.checkpoint import CheckpointFiles
from models.weights.files import MODEL_FAILURES, first_line
from models.weights.loading import read_share


def serve_share(pipe: Connection, rank: int, num_devices: int, folder: Path) -> None:
    """Load this process's share of a model, and answer requests until the pipe is closed."""
    files: CheckpointFiles = pipe.recv()
    backend = "gloo"
    if files.device.type == "cuda":
        backend = "nccl"
        files = dataclasses.replace(files, device=torch.device("cuda", rank))
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        backend, init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=num_devices
    )
    forwards: list[Forward] = []

    def load() -> ModelFacts:
        model = read_share(files)
        forward = Forward(model)
        forwards.append(forward)
        return ModelFacts(forward.max_batch_tokens, active_parameters(model), backend)

    if not _answer(pipe, rank, load):
        return
    while True:
        try:
            method, *arguments = pipe.recv()
        except EOFError:
            return

        def run(method: str = method, arguments: list[Any] = arguments) -> Any:
            return getattr(forwards[0], method)(*arguments)

        _answer(pipe, rank, run)


def _answer(pipe: Connection, rank: int, work: Callable[[], Any]) -> bool:
    """Do the work, and send its result (the first process) or its error; return False for one."""
    try:
        result = work()
    except (ModelError, DeviceFull) as error:
        pipe.send(error)
        return False
    except MODEL_FAILURES as error:
        pipe.send(ModelError(first_line(error)))
        return False
    pipe.send(result if rank == 0 else None)
    return True


if __name__ == "__main__":
    serve_share(
        Connection(int(sys.argv[1])),
        int(os.environ["RANK"]),  # noqa: TID251
        int(os.environ["WORLD_SIZE"]),  # noqa: TID251
        Path(sys.argv[2]),
    )
