"""Export of the OpenTelemetry spans that Prefect makes of flow runs and task runs.

Spans are exported if OTEL_EXPORTER_OTLP_ENDPOINT is set and the extra ``telemetry`` is installed.
Flow runs that a run starts belong to its trace, also on other machines.
"""

from __future__ import annotations

import logging

from core.environment import telemetry_endpoint
from core.version import how_to_install

_log = logging.getLogger(__name__)


def export_spans() -> None:
    """Export the spans of this process, if an endpoint is set; further calls change nothing."""
    if telemetry_endpoint() is None:
        return
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning(
            "an endpoint for traces is set (OTEL_EXPORTER_OTLP_…), but nothing exports to it: "
            f"{how_to_install('telemetry')}, or unset it"
        )
        return
    # OTEL_SERVICE_NAME takes precedence over this name.
    named = Resource.create({"service.name": "tidemark"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
