"""Faster passes on a GPU, which are used only if a test at loading gives the plain results.

- A fused kernel of head and loss, which never stores logits: Apple's cut-cross-entropy.
- CUDA graphs of the body, one for each bucket of batch shapes. They save the time of launching
  kernels, which limits models below a billion parameters.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import torch
from torch.nn import functional

from models.scoring.forward import Forward, is_close

Run = Callable[[torch.Tensor], torch.Tensor]  # token ids to hidden states
# A function of states, weight, bias and targets, as ``forward.linear_cross_entropy``.
Fused = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor], torch.Tensor]

_log = logging.getLogger(__name__)
_PACKAGE = "cut-cross-entropy"
_AGREEMENT = 1e-6  # of a loss in float64; of 1 nat for smaller losses
_COLUMNS = 8192  # columns of float64 logits at one time
_MOST_PARAMETERS = 10**9  # larger models are not limited by launches
_MOST_GRAPHS = 32  # each keeps its inputs and outputs in memory
_LEAST_FILL = 0.75  # share of a bucket's tokens that are of the batch; emptier batches run eagerly


@dataclass(frozen=True)
class Fast:
    """The fast kernels of a device, each of which may be missing.

    Attributes:
        fused: kernel of head and loss, or None without one.
        capture: function that records a run on ids of a fixed shape, and returns a function that
            repeats it on other ids; or None without graphs.
        longest: maximum number of tokens of a row, or None without a maximum.
    """

    fused: Fused | None = None
    capture: Callable[[Run, torch.Tensor], Run] | None = None
    longest: int | None = None


def fast_for(device: torch.device, num_parameters: int, longest: int | None) -> Fast:
    """Return the fast kernels for a model on a device; only a GPU has any."""
    if device.type != "cuda":
        return Fast()
    is_small = num_parameters < _MOST_PARAMETERS
    return Fast(_find_fused(), _capture if is_small else None, longest)


def quicken(forward: Forward, longest: int | None) -> dict[str, str]:
    """Put the device's fast kernels into a model where they give the plain results.

    ``longest`` is the maximum number of tokens of a row, or None. Return what runs head and body,
    for the record.
    """
    model = forward.model
    return keep_equal(forward, fast_for(model.device, model.num_parameters(), longest))


@torch.inference_mode()
def keep_equal(forward: Forward, fast: Fast) -> dict[str, str]:
    """Keep each fast kernel whose results equal those of the plain pass; see ``quicken``."""
    ids = torch.arange(96, device=forward.model.device).reshape(2, 48) % forward.vocabulary
    states = forward.run_body(ids)
    try:
        if fast.fused is not None and forward.linear is not None:
            flat = states.flatten(0, 1)
            forward.fused = fast.fused if agrees(fast.fused, flat, *forward.linear) else None
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
    return {
        "head": "chunked" if forward.fused is None else fused_version(),
        "body": "eager" if forward.replayed is None else "CUDA graphs",
    }


def fused_version() -> str:
    """Return the name and version of the fused kernel's package."""
    try:
        return f"{_PACKAGE} {version(_PACKAGE)}"
    except PackageNotFoundError:
        return "fused"


def _find_fused() -> Fused | None:
    try:
        from cut_cross_entropy import linear_cross_entropy
    except ImportError:
        return None

    def fused(
        states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, targets: torch.Tensor
    ) -> torch.Tensor:
        # Releases up to 25.1.1 have no argument ``bias``.
        options = {} if bias is None else {"bias": bias}
        losses: torch.Tensor = linear_cross_entropy(
            states, weight, targets, reduction="none", impl="cce", **options
        )
        return losses

    return fused


def agrees(
    fused: Fused, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> bool:
    """Return True if a fused kernel's losses are those in float64, to 1e-6 of themselves."""
    targets = torch.arange(len(states), device=states.device) * 7919 % len(weight)
    expected = exact_losses(states, weight, bias, targets)
    found = fused(states, weight, bias, targets)
    if found.shape != expected.shape or found.dtype.itemsize < 4:
        return False
    apart = (found.double() - expected).abs() / expected.abs().clamp(min=1)
    return bool((apart <= _AGREEMENT).all())  # False for NaN


def exact_losses(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, targets: torch.Tensor
) -> torch.Tensor:
    """Return ``forward.linear_cross_entropy`` in float64, from inputs of any dtype."""
    states = states.double()
    offsets = None if bias is None else bias.double()
    total = torch.full((len(states),), -torch.inf, dtype=torch.float64, device=states.device)
    for first in range(0, len(weight), _COLUMNS):
        columns = slice(first, first + _COLUMNS)
        part = None if offsets is None else offsets[columns]
        logits = functional.linear(states, weight[columns].double(), part)
        total = torch.logaddexp(total, logits.logsumexp(-1))
    wanted = (states * weight[targets].double()).sum(-1)
    return total - (wanted if offsets is None else wanted + offsets[targets])


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
