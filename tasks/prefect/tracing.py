"""OpenTelemetry traces: spans for each run, for each stage of a run, and for each cell.

Spans are exported if OTEL_EXPORTER_OTLP_ENDPOINT is set and the extra ``telemetry`` is installed.
The spans of Prefect are also exported. Independent processes do the stages of a run, and all know
the name of the run. So the ids of the trace and of its first span are derived from this name.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags
from prefect.context import FlowRunContext

from core.environment import telemetry_endpoint

if TYPE_CHECKING:  # only installed with the extra ``telemetry``
    from opentelemetry.sdk.trace import TracerProvider

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R")

_lock = threading.Lock()
_is_set_up = False


class _Given(threading.local):
    ids: SpanContext | None = None  # ids for the next span of this thread, or None for random ids


_given = _Given()


def set_up_tracing() -> None:
    """Set up the export of spans, if an endpoint is set; further calls change nothing."""
    global _is_set_up
    with _lock:
        if _is_set_up or telemetry_endpoint() is None:
            return
        _is_set_up = True
        if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return
        try:
            provider = _provider()
        except ImportError:
            _log.warning(
                "an endpoint for traces is set (OTEL_EXPORTER_OTLP_…), but nothing exports to it: "
                "install tidemark[telemetry], or unset it"
            )
        else:
            trace.set_tracer_provider(provider)


def _provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return _given.ids.trace_id if _given.ids else super().generate_trace_id()

        def generate_span_id(self) -> int:
            return _given.ids.span_id if _given.ids else super().generate_span_id()

    # OTEL_SERVICE_NAME takes precedence over this name.
    named = Resource.create({"service.name": "tidemark"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named, id_generator=Ids())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def name_of_run(flow: str, flow_run_id: object) -> str:
    """Return a run's name: flow name and end of the id (the start of the id can be a time)."""
    return f"{flow}-{str(flow_run_id)[-12:]}"


def first_span_of(run: str) -> SpanContext:
    """Return the ids of the trace and of the first span of a run, derived from the run's name."""
    digest = hashlib.sha256(f"tidemark {run}".encode("utf-8", "surrogatepass")).digest()
    return SpanContext(
        trace_id=int.from_bytes(digest[:16], "big"),
        span_id=int.from_bytes(digest[16:24], "big"),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def traced(stage: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Return a decorator that traces a flow's function as a span named ``stage``.

    The parent is the span of the caller, or of the run. The flow of a whole run has stage ``run``.
    Put the decorator below ``@flow``. String arguments of the flow become attributes of the span.
    """

    def decorate(work: Callable[_P, _R]) -> Callable[_P, _R]:
        # Evaluate annotations now, because Prefect would look up their names in this module.
        parameters = inspect.signature(work, eval_str=True)

        @functools.wraps(work)
        def inside(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            set_up_tracing()
            given = parameters.bind_partial(*args, **kwargs).arguments
            facts = {name: value for name, value in given.items() if isinstance(value, str)}
            begin = _first_span if stage == "run" else _stage_span
            with begin(stage, facts):
                return work(*args, **kwargs)

        inside.__signature__ = parameters  # type: ignore[attr-defined]
        return inside

    return decorate


@contextlib.contextmanager
def _first_span(stage: str, facts: dict[str, str]) -> Iterator[Span]:
    current = FlowRunContext.get()
    if current is None or current.flow_run is None or current.flow is None:
        with span(stage, **facts) as begun:
            yield begun
        return
    run = name_of_run(current.flow.name, current.flow_run.id)
    _given.ids = first_span_of(run)
    try:
        named = _named({**facts, "run": run})
        begun = _tracer().start_span(stage, context=context.Context(), attributes=named)
    finally:
        _given.ids = None
    with trace.use_span(begun, end_on_exit=True):
        yield begun


@contextlib.contextmanager
def _stage_span(stage: str, facts: dict[str, str]) -> Iterator[Span]:
    above = None
    run = facts.get("run")
    if run and not trace.get_current_span().get_span_context().is_valid:
        above = trace.set_span_in_context(NonRecordingSpan(first_span_of(run)))
    with _tracer().start_as_current_span(stage, context=above, attributes=_named(facts)) as begun:
        yield begun


@contextlib.contextmanager
def span(name: str, **facts: str | int | float | None) -> Iterator[Span]:
    """Trace the ``with`` block as a child of the current span, and record its exception, if any.

    Facts become attributes ``tidemark.<name>`` of the span, unless they are None.
    """
    set_up_tracing()  # a task may run in another process, without tracing so far
    with _tracer().start_as_current_span(name, attributes=_named(facts)) as begun:
        yield begun


def describe(begun: Span, **facts: str | int | float | None) -> None:
    """Add attributes to a span that has begun."""
    begun.set_attributes(_named(facts))


def _tracer() -> trace.Tracer:
    return trace.get_tracer("tidemark")


def _named(facts: Mapping[str, str | int | float | None]) -> dict[str, str | int | float]:
    return {f"tidemark.{name}": value for name, value in facts.items() if value is not None}
