import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from simulator.server import Request, Response
from tests.loopback import serving


@dataclass(frozen=True)
class Received:
    """A span; ids as hex, ``parent`` empty for the first of a trace."""

    name: str
    service: str
    scope: str
    trace: str
    id: str
    parent: str
    facts: dict[str, Any]


@contextlib.contextmanager
def collecting() -> Iterator[tuple[str, list[Received]]]:
    spans: list[Received] = []

    def receive(request: Request) -> Response:
        if request.path == "/v1/traces":
            spans.extend(_read(request.body))
        return Response()

    with serving(receive) as address:
        yield address, spans


def _read(body: bytes) -> Iterator[Received]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        names = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    name=span.name,
                    service=names["service.name"],
                    scope=scope.scope.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    facts={each.key: _value(each.value) for each in span.attributes},
                )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
