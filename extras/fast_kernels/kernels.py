"""Faster passes on a GPU, which are used only if a test at loading gives the plain results.

The body is recorded as CUDA graphs, one for each bucket of batch shapes. They save the time of
launching kernels, which limits models below a billion parameters.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from models.scoring.forward import Forward, is_close

Run = Callable[[torch.Tensor], torch.Tensor]  # token ids to hidden states

_log = logging.getLogger(__name__)
_MOST_PARAMETERS = 10**9  # larger models are not limited by launches
_MOST_GRAPHS = 32  # each keeps its inputs and outputs in memory
_LEAST_FILL = 0.75  # share of a bucket's tokens that are of the batch; emptier batches run eagerly


@dataclass(frozen=True)
class Fast:
    """The fast kernels of a device.

    Attributes:
        capture: function that records a run on ids of a fixed shape, and returns a function that
            repeats it on other ids; or None without graphs.
        longest: maximum number of tokens of a row, or None without a maximum.
    """

    capture: Callable[[Run, torch.Tensor], Run] | None = None
    longest: int | None = None


def fast_for(device: torch.device, num_parameters: int, longest: int | None) -> Fast:
    """Return the fast kernels for a model on a device; only a GPU has any."""
    if device.type != "cuda":
        return Fast()
    is_small = num_parameters < _MOST_PARAMETERS
    return Fast(_capture if is_small else None, longest)


def quicken(forward: Forward, longest: int | None) -> dict[str, str]:
    """Put the device's fast kernels into a model if they give the plain results.

    ``longest`` is the maximum number of tokens of a row, or None. Return what runs the body, for
    the record.
    """
    model = forward.model
    return keep_equal(forward, fast_for(model.device, model.num_parameters(), longest))


@torch.inference_mode()
def keep_equal(forward: Forward, fast: Fast) -> dict[str, str]:
    """Keep the graphs if their states equal those of the plain pass; see ``quicken``."""
    ids = torch.arange(96, device=forward.model.device).reshape(2, 48) % forward.vocabulary
    states = forward.run_body(ids)
    try:
        # Graphs make rows longer, which may bring them to the other side of a length. A batch has
        # a maximum if the head cannot run separately.
        is_steady = forward.switch is None and forward.max_batch_tokens is None
        if fast.capture is not None and is_steady:
            replayed = Replayed(forward.run_body, fast.capture, fast.longest)
            tolerance = 1e-5 if states.dtype.itemsize >= 4 else 2e-2
            found = [
                (replayed.by_graph(each), forward.run_body(each)) for each in (ids, ids.flip(0, 1))
            ]
            if all(is_close(*pair, tolerance) for pair in found):
                forward.replayed = replayed
    except Exception as error:  # noqa: BLE001 - a foreign kernel raises errors of any class
        name = type(forward.model).__name__
        _log.warning("%s: plain passes are used (%r)", name, error)
    return {"body": "eager" if forward.replayed is None else "CUDA graphs"}


def bucket_of(rows: int, width: int, longest: int | None) -> tuple[int, int]:
    """Return the shape that a batch is padded to: a width of 64s, or an eighth larger at most."""
    wide = _round_up(width, max(64, 2 ** (width.bit_length() - 4)))
    most = wide if longest is None else max(width, min(wide, longest))
    return _round_up(rows, max(1, 2 ** (rows.bit_length() - 4))), most


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


@dataclass
class Replayed:
    """Runs a body by graphs; safe for threads, which take turns.

    Rows are padded on the right with a real token, and the last row is repeated. Both do not change
    the other states of a causal model with independent rows.
    """

    run: Run
    capture: Callable[[Run, torch.Tensor], Run]
    longest: int | None = None
    _graphs: dict[tuple[int, int], Run] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the states of ids, (rows, width), by a graph if the batch fills its bucket."""
        rows, width = bucket_of(ids.shape[0], ids.shape[1], self.longest)
        is_full = ids.numel() >= _LEAST_FILL * rows * width
        is_known = (rows, width) in self._graphs or len(self._graphs) < _MOST_GRAPHS
        return self.by_graph(ids) if is_full and is_known else self.run(ids)

    def by_graph(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the states of ids by a graph, which is captured at its first use."""
        shape = bucket_of(ids.shape[0], ids.shape[1], self.longest)
        wide = torch.cat([ids, ids[:, -1:].expand(-1, shape[1] - ids.shape[1])], 1)
        padded = torch.cat([wide, wide[-1:].expand(shape[0] - len(ids), -1)]).contiguous()
        with self._lock:
            if shape not in self._graphs:
                self._graphs[shape] = self.capture(self.run, padded.clone())
            states = self._graphs[shape](padded)
        return states[: ids.shape[0], : ids.shape[1]]


def _capture(run: Run, ids: torch.Tensor) -> Run:
    """Record the kernels of a run as a CUDA graph."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # libraries choose kernels and allocate work space before the capture
            run(ids)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = run(ids)

    def replay(others: torch.Tensor) -> torch.Tensor:
        ids.copy_(others)
        graph.replay()
        return output.clone()

    return replay
