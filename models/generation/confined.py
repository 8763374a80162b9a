"""The confined process of a model that brings code; ``models.scoring.guarded`` starts it.

    python -m models.generation.confined <number of the pipe to read> <number of the pipe to write>

The process confines itself before it reads any file of the model. It then answers requests until
the pipe is closed. Libraries with threads are imported after that, because Landlock does not hold
for threads that exist already.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import core.errors  # noqa: F401 - found now, because the folder of the packages cannot be listed later
from models.weights.guard import confine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from models.generation.cached_rows import RowModel, Rows
    from models.scoring.forward import Forward

Request = dict[str, Any]
_MESSAGE_CHARS = 500


def serve(inbox: Connection, outbox: Connection) -> None:
    """Confine this process, load the model of the first request, and answer all others."""
    spec = json.loads(inbox.recv_bytes())
    inbox.recv_bytes()
    readable, writable = map(Path, spec["readable"]), Path(spec["writable"])
    if not _answer(outbox, lambda: ({"guard": confine(readable, writable)}, b"")):
        return
    served = _Served(spec)
    while True:
        try:
            request, data = json.loads(inbox.recv_bytes()), inbox.recv_bytes()
        except EOFError:
            return
        _answer(outbox, partial(served.reply, request, data))


def _answer(outbox: Connection, reply: Callable[[], tuple[Request, bytes]]) -> bool:
    """Send a reply, or the error that stands in its place; return False for an error."""
    error: Request | None = None
    try:
        found, data = reply()
    except Exception as failure:  # noqa: BLE001 - foreign code may raise anything
        error = {"error": type(failure).__name__, "message": _shown(failure)}
        found, data = error, b""
    outbox.send_bytes(json.dumps(found).encode())
    outbox.send_bytes(data)
    return error is None


def _shown(failure: Exception) -> str:
    ours = type(failure).__module__ in ("core.errors", "models.scoring.scorer")
    return (str(failure) if ours else f"{type(failure).__name__}: {failure}")[:_MESSAGE_CHARS]


class _Served:
    """The model, and the texts that it continues."""

    def __init__(self, spec: Request) -> None:
        self._spec = spec
        self._forward: Forward | None = None
        self._model: RowModel | None = None
        self._rows: Rows | None = None

    def reply(self, request: Request, data: bytes) -> tuple[Request, bytes]:
        """Return the reply to a request, as JSON and array; ``data`` has its token ids."""
        import numpy as np

        ids = np.frombuffer(data, dtype=np.int64).copy()
        do: Callable[..., tuple[Request, bytes]] = {
            "load": self._load, "losses": self._losses, "may_batch": self._may_batch,
            "start": self._start, "read": self._read, "keep": self._keep,
        }[request["do"]]  # fmt: skip
        return do(request, ids)

    def _load(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        from models.scoring.forward import Forward

        self._forward = Forward(_load_model(self._spec))
        return {
            "vocabulary": self._forward.vocabulary,
            "max_batch_tokens": self._forward.max_batch_tokens,
        }, b""

    @property
    def _ready(self) -> Forward:
        assert self._forward is not None  # noqa: S101
        return self._forward

    def _losses(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        import numpy as np

        among = request["alphabet"]
        lengths = [*request["inputs"], *request["targets"], among or 0]
        parts = list(_split(ids, lengths))
        count = len(request["inputs"])
        inputs, targets = parts[:count], parts[count:-1]
        nats = self._ready.losses(inputs, targets, None if among is None else parts[-1])
        return {}, np.concatenate(nats).astype(np.float64).tobytes()

    def _may_batch(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        return {"may_batch": self._row_model.may_batch(request["longest"])}, b""

    @property
    def _row_model(self) -> RowModel:
        from models.generation.cached_rows import RowModel

        if self._model is None:
            self._model = RowModel(self._ready.model)
        return self._model

    def _start(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        from models.scoring.forward import or_device_full

        self._rows = None  # frees the memory of the texts before
        prompts = list(_split(ids, request["prompts"]))
        model = self._row_model
        self._rows = or_device_full(lambda: model.start(prompts, request["room"]))
        return {}, self._logits()

    def _read(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        from models.scoring.forward import or_device_full

        rows, tokens = self._rows, self._row_model.send(ids)
        assert rows is not None  # noqa: S101
        or_device_full(lambda: rows.read(tokens))
        return {}, self._logits()

    def _keep(self, request: Request, ids: npt.NDArray[np.int64]) -> tuple[Request, bytes]:
        assert self._rows is not None  # noqa: S101
        self._rows.keep(request["places"])
        return {}, b""

    def _logits(self) -> bytes:
        assert self._rows is not None  # noqa: S101
        data: bytes = self._rows.logits.float().cpu().contiguous().numpy().tobytes()
        return data


def _load_model(spec: Request) -> Any:
    """Load the model; this is where its own code is imported and run."""
    import torch
    from transformers import AutoConfig

    from models.weights.checkpoint import CheckpointFiles
    from models.weights.configuration import load_config
    from models.weights.loading import read_model

    folder = Path(spec["folder"])
    if spec["has_own_code"]:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=True, local_files_only=True)
    else:
        config = load_config(folder, spec["location"], is_trusted=True)
    files = CheckpointFiles(
        location=spec["location"],
        folder=folder,
        revision="",  # checked before, like the tokenizer
        config=config,
        tokenizer=None,  # type: ignore[arg-type]
        context=None,
        device=torch.device(spec["device"]),
        dtype=getattr(torch, spec["dtype"]),
        attention=spec["attention"],
        is_trusted=True,
        has_own_code=spec["has_own_code"],
        adapter=Path(spec["adapter"]) if spec["adapter"] else None,
    )
    return read_model(files)


def _split(ids: npt.NDArray[np.int64], lengths: list[int]) -> Iterator[npt.NDArray[np.int64]]:
    for begin, end in pairwise(accumulate(lengths, initial=0)):
        yield ids[begin:end]


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), Connection(int(sys.argv[2])))
