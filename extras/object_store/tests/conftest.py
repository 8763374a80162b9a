"""Fixtures of the tests of commands, and a bucket."""

from collections.abc import Iterator
from typing import Any

import pytest
import s3fs

from tests.commands import *  # noqa: F403
from tests.conftest import prefect_server, prefect_template  # noqa: F401
from tests.seals import *  # noqa: F403


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, Any]]:
    from moto.server import ThreadedMotoServer  # it imports a web framework

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "test", "secret": "test", "endpoint_url": f"http://{host}:{port}"}
    s3fs.S3FileSystem(**options).makedirs("bucket", exist_ok=True)
    yield options
    server.stop()
