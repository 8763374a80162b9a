"""Environment variables of Prefect and of libraries; no other module reads or sets variables.

The settings of tidemark itself are read by pydantic, see ``settings``.
"""

from __future__ import annotations

import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from core.errors import UsageError
from core.storage.store import explain_disk_errors

if TYPE_CHECKING:
    from core.settings import Settings


def set_library_defaults(settings: Settings) -> None:
    """Set environment variables of Prefect and torch, unless the user has set them.

    Prefect then works offline and in the scratch folder. Call this before importing the libraries.
    """
    home = settings.scratch / "prefect"
    with explain_disk_errors(str(home)):
        home.mkdir(parents=True, exist_ok=True)  # Prefect itself creates no parent folders
        tempfile.TemporaryFile(dir=home).close()  # without write access, Prefect waits for minutes
    defaults = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        # The first start migrates a database; on a busy machine the default of 20 s is too short.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        # At shutdown, Prefect's embedded server logs cancelled connections of its own as errors.
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        # Send logs only to a configured server; nobody reads the logs of an embedded server.
        "PREFECT_LOGGING_TO_API_ENABLED": "true" if prefect_server() else "false",
        "DO_NOT_TRACK": "1",
        # By default, torch's threads busy-wait for each other. On cores with other load, this made
        # training at least four times slower.
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)  # noqa: TID251


def set_rwkv_environment(with_v7: bool) -> None:
    """Set the environment variables of the rwkv package, which change its results.

    The next import of ``rwkv.model`` then provides the model class of RWKV 7, or of RWKV 4 to 6.
    """
    strays = ["RWKV_RESCALE_LAYER", "RWKV_DE_VERSION", "RWKV_DML_ON"]
    # This variable would allow pickles to run code when torch loads them.
    for name in (*strays, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        os.environ.pop(name, None)  # noqa: TID251
    # Disable TorchScript, which is deprecated, and CUDA kernels that are compiled at run time.
    fixed = {"RWKV_V7_ON": str(int(with_v7)), "RWKV_JIT_ON": "0", "RWKV_CUDA_ON": "0"}
    os.environ.update(fixed)  # noqa: TID251


def confined_environment(home: Path) -> dict[str, str]:
    """Return the complete environment for a process that runs foreign code, without credentials.

    All libraries write below ``home``, a folder for this process alone.
    """
    passed = (
        "PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "TZ",
    )  # fmt: skip
    kept = {name: os.environ[name] for name in passed if name in os.environ}  # noqa: TID251
    own = dict.fromkeys(("HOME", "TMPDIR", "HF_HOME", "XDG_CACHE_HOME"), str(home))
    return {**kept, **own, "HF_HUB_OFFLINE": "1", "LANG": "C.UTF-8"}


def environment_with(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with some variables replaced, for a child process."""
    return {**os.environ, **given}  # noqa: TID251


def given_gpus() -> str | None:
    """Return the GPUs that this process was given (CUDA_VISIBLE_DEVICES), or None for all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")  # noqa: TID251


def simulated_gpus() -> tuple[int, int] | None:
    """Return number and memory (bytes) of GPUs that tests pretend to have: TIDEMARK_TEST_GPUS=8x80.

    The memory in the variable is in GiB. Return None without the variable.
    """
    text = os.environ.get("TIDEMARK_TEST_GPUS")  # noqa: TID251
    if not text:
        return None
    count, _, gib = text.partition("x")
    return int(count), int(gib or 80) * 2**30


def prefect_server() -> str | None:
    """Return the address of the configured Prefect server, or None for an in-process server.

    Raises:
        UsageError: the address has no path, so it is that of the server's pages.
    """
    address = os.environ.get("PREFECT_API_URL") or None  # noqa: TID251
    if address is not None and not urlsplit(address).path.strip("/"):
        shown = without_password(address).rstrip("/")
        raise UsageError(f"PREFECT_API_URL={shown} has no path; expected the API: {shown}/api")
    return address


def flow_run_id() -> str | None:
    """Return the id of the flow run that a worker has started in this process, or None."""
    return os.environ.get("PREFECT__FLOW_RUN_ID")  # noqa: TID251


def without_password(address: str) -> str:
    """Return a URL without its user name and password, for display."""
    scheme, separator, rest = address.rpartition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


def telemetry_endpoint() -> str | None:
    """Return the URL to which OpenTelemetry exports traces, or None if no URL is set."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":  # noqa: TID251
        return None
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return next(filter(None, map(os.environ.get, names)), None)  # noqa: TID251


def prefect_access() -> tuple[dict[str, str], str | bool]:
    """Return the HTTP headers for the Prefect server, and the setting for TLS verification.

    The setting is a path of CA certificates or a boolean, like the argument ``verify`` of requests.
    """
    headers = {}
    user_and_password = os.environ.get("PREFECT_API_AUTH_STRING")  # noqa: TID251
    key = os.environ.get("PREFECT_API_KEY")  # noqa: TID251
    if user_and_password:
        headers["Authorization"] = f"Basic {b64encode(user_and_password.encode()).decode()}"
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    is_lax = os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "")  # noqa: TID251
    if is_lax.lower() in ("1", "true", "yes", "on"):
        return headers, False
    return headers, os.environ.get("PREFECT_API_SSL_CERT_FILE") or True  # noqa: TID251


def names_of_variables(prefix: str) -> list[str]:
    """Return the names of the environment variables that begin with ``prefix``, in order."""
    return sorted(name for name in os.environ if name.startswith(prefix))  # noqa: TID251


def has_variable(prefix: str) -> bool:
    """Return True if an environment variable begins with ``prefix``, in letters of any case."""
    return any(name.upper().startswith(prefix) for name in os.environ)  # noqa: TID251
