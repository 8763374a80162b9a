"""Settings of an installation, read once from the environment; no other module reads it."""

from __future__ import annotations

import datetime as dt
import os
import re
from base64 import b64encode
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, NonNegativeInt, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from core.errors import UsageError
from core.storage.store import explain_disk_errors

DEBIAN_CHROMIUM = Path("/usr/bin/chromium")
MAX_DOCUMENT_BYTES = 16 * 2**20
LAKE_PREFIX = "ducklake:postgres:"
_RAY_ADDRESS = re.compile(r"(ray://)?([\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}")


class Settings(BaseSettings):
    """All options that may differ between two installations.

    Each field is read from ``TIDEMARK_<FIELD>``; entries of a mapping from
    ``TIDEMARK_<FIELD>__<KEY>``, e.g. ``TIDEMARK_SITES__WIKIPEDIA=http://127.0.0.1:8000``.
    See ``docs/settings.md`` for a list.
    """

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_",
        env_nested_delimiter="__",
        env_ignore_empty=True,  # an empty TIDEMARK_HOME must not mean the current folder
        frozen=True,
        extra="forbid",
    )

    home: str = Field(
        default_factory=lambda: platformdirs.user_data_dir("tidemark"),
        description="Data root: a local folder, or s3://bucket/prefix. Holds corpus/, losses/, "
        "models/, report/ and warehouse.duckdb.",
    )
    work_dir: Path | None = Field(
        default=None,
        description="Local scratch: raw HTTP cache, git mirrors, the writer's database, locks. "
        "Default: <home>/work, or the user's cache folder where home is not local.",
    )
    warehouse: SecretStr | None = Field(
        default=None,
        description="Where losses land: `ducklake:postgres:` and a connection string of "
        "PostgreSQL's, for several writers at once (docs/operate.md). Default: a file of one "
        "writer.",
    )
    sites: dict[str, str] = Field(
        default_factory=dict,
        description="Base URLs that replace a source's own, by site key (see `sources list`); "
        "`hub` is the Hugging Face hub. Only hosts named here may be on a private network.",
    )
    tokens: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Tokens by site key, for sites that want one or give more with one. Default: "
        "the Prefect Secret block `tidemark-<key>`, where a server is configured.",
    )
    request_interval_s: float | None = Field(
        default=None,
        ge=0,
        description="Seconds between two requests to one host; default: what each source declares.",
    )
    languages: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Languages to crawl by source, as JSON lists of codes, for sources that are in "
        'several (see docs/sources.md): `["en", "de"]`. Default: the source\'s own.',
    )
    monthly_bytes: dict[str, NonNegativeInt] = Field(
        default_factory=dict,
        description="Bytes of text that a month of a source is sampled down to, by source; 0 keeps "
        "all. Default: what each source declares.",
    )
    corpus_as_of: dt.datetime | None = Field(
        default=None,
        description="Score, compare and export the newest versions of partitions that were sealed "
        "by this day (its end, UTC) or instant; later ones are passed over. Default: the newest.",
    )
    redact: bool = Field(
        default=False,
        description="Replace e-mail addresses, phone numbers, IP addresses and secret keys in "
        "crawled texts by placeholders; the manifest records it.",
    )
    contact: str = Field(
        default="https://github.com/tidemark/tidemark",
        description="Address or URL named in the user agent, so that a site can reach you.",
    )
    models: tuple[str, ...] = Field(
        default=("control:gzip", "control:zstd", "control:xz"),
        description="Models that the monthly run scores: catalogue names, folders or controls.",
    )
    protocol: str = Field(default="default", description="Protocol of the monthly run.")
    answer_protocol: str = Field(
        default="letter-rotated",
        description="How models are asked forecasting questions; those behind APIs are asked under "
        "`generate`.",
    )
    puzzle_items: int = Field(
        default=256,
        gt=0,
        description="Items of a puzzle that a model is asked of each split, in distribution and "
        "out of it.",
    )
    puzzle_sampling: Literal["unique", "frequency"] = Field(
        default="unique",
        description="How items in distribution are drawn from what a model wrote: each different "
        "one alike, or as often as it wrote them.",
    )
    puzzle_completions: int = Field(
        default=6400,
        gt=0,
        description="Most texts that a model is asked for to find inputs of a puzzle; it is asked "
        "for 128, and for as many again until they are enough.",
    )
    puzzle_seed: int = Field(
        default=0, ge=0, description="Another one gives other items of every puzzle."
    )
    device: str = Field(default="auto", description="torch device; auto = cuda where present.")
    dtype: str = Field(default="auto", description="auto = bfloat16 on a GPU and float32 on a CPU.")
    batch_tokens: int | None = Field(
        default=None,
        gt=0,
        description="Tokens (padding included) in one forward pass; default: 16,384 on a GPU, "
        "1,024 on a CPU, whose caches a larger batch leaves.",
    )
    notify_url: SecretStr | None = Field(
        default=None,
        description="Webhook that `tidemark deploy` has alarms sent to, as JSON: "
        '`{"text": …}`. Default: nobody is told.',
    )
    in_flight: int | None = Field(
        default=None,
        gt=0,
        description="Cells of a model that a scoring run has under way at once. A remote model "
        "scores them together, others one after the other while the next is made ready; default: "
        "10 of a remote model, whose server is asked 8 things at once, 2 of others.",
    )
    ray_address: str | None = Field(
        default=None,
        description="Ray cluster that scores the cells of flow runs: `ray://head:10001`, or on one "
        "of its machines `head:6379` or `auto` (docs/scale.md). Default: this process scores.",
    )
    allow_pickle_weights: bool = Field(
        default=False, description="Load weights that are not safetensors. They may run code."
    )
    remote_api_key: SecretStr | None = Field(
        default=None,
        description="Bearer token for the servers of remote models (vLLM's --api-key).",
    )
    api_keys: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Keys of APIs whose models answer questions, by the name that a model's entry "
        "gives (`api_key`).",
    )
    api_in_flight: int = Field(
        default=8, gt=0, description="Questions that a model behind an API is asked at once."
    )
    max_answer_tokens: int | None = Field(
        default=None,
        ge=0,
        description="Most tokens, input and output together, that a run may have models behind "
        "APIs take; it stops before it would take more. Default: no limit.",
    )
    max_answer_dollars: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Most money that a run may spend on models behind APIs, by the prices in their "
        "entries; it stops before it would spend more. Default: no limit.",
    )
    model_cache_bytes: int | None = Field(
        default=None,
        ge=0,
        description="Most bytes that models of the hub may take in the local cache; a fetch that "
        "would exceed it is refused. Default: what the disk has.",
    )
    max_document_bytes: int = Field(
        default=MAX_DOCUMENT_BYTES,
        gt=0,
        description="Longer documents are dropped, with a counted reason.",
    )
    watch_interval_s: float = Field(
        default=10.0,
        gt=0,
        description="Seconds between two looks of a monthly run or back-fill on a Prefect server "
        "at what it waits for.",
    )
    report_url: str | None = Field(
        default=None,
        pattern=r"^https?://\S+$",
        description="Where people read the report, http:// or https://: what the Prefect server's "
        "link leads to. Default: the page's address under the data root.",
    )
    chromium: Path | None = Field(
        default=DEBIAN_CHROMIUM if DEBIAN_CHROMIUM.exists() else None,
        description="Browser binary; default: a system Chromium, else Playwright's own.",
    )

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: str) -> str:
        if not home.strip():
            raise ValueError("is empty; give a folder or s3://bucket/prefix")
        home = home.removeprefix("file://")
        return home.rstrip("/") if "://" in home else str(Path(home).expanduser().resolve())

    @field_validator("corpus_as_of", mode="before")
    @classmethod
    def _moment(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:  # only ISO 8601: pydantic would read a number as seconds
            moment = dt.datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"is no day or instant of ISO 8601 ({error}): 2026-11-22") from error
        if "T" not in value and " " not in value:
            moment += dt.timedelta(days=1, microseconds=-1)
        return moment.replace(tzinfo=moment.tzinfo or dt.UTC)

    @field_validator("warehouse")
    @classmethod
    def _lake(cls, warehouse: SecretStr | None) -> SecretStr | None:
        if warehouse is not None and not warehouse.get_secret_value().startswith(LAKE_PREFIX):
            raise ValueError(
                f"is not {LAKE_PREFIX} and a connection string, such as "
                f"{LAKE_PREFIX}host=db.example.org dbname=tidemark user=tidemark"
            )
        return warehouse

    @field_validator("ray_address")
    @classmethod
    def _cluster(cls, address: str | None) -> str | None:
        if address not in (None, "auto") and not _RAY_ADDRESS.fullmatch(address):
            raise ValueError("is no address of a Ray cluster: ray://head:10001, head:6379 or auto")
        return address

    @field_validator("notify_url")
    @classmethod
    def _webhook(cls, notify_url: SecretStr | None) -> SecretStr | None:
        if notify_url is not None:
            parts = urlsplit(notify_url.get_secret_value())
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("is no address of a webhook: https://hooks.example.org/…")
        return notify_url

    @property
    def is_local(self) -> bool:
        """Return True if the data root is a folder of this machine."""
        return "://" not in self.home

    @property
    def scratch(self) -> Path:
        """The local scratch folder (not created here)."""
        if self.work_dir is not None:
            return self.work_dir.expanduser().resolve()
        return (
            Path(self.home) / "work" if self.is_local else platformdirs.user_cache_path("tidemark")
        )


def load_settings(**overrides: object) -> Settings:
    """Read the environment; ``overrides`` (from the command line) take precedence.

    Raises:
        UsageError: a value has a wrong type; the message names the variable.
    """
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        problems = (
            f"TIDEMARK_{'__'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False)  # a URL may contain a password
        )
        # A chained error would print the input.
        raise UsageError(f"bad settings: {'; '.join(problems)} (see docs/settings.md)") from None
    except SettingsError as error:
        raise UsageError(f"bad settings: {error}; lists and mappings are given as JSON") from error


def set_library_defaults(settings: Settings) -> None:
    """Set variables of Prefect and torch in the environment, unless the user has set them.

    Prefect then works offline and inside the scratch folder. Call this before importing either.
    """
    home = settings.scratch / "prefect"
    with explain_disk_errors(str(home)):
        home.mkdir(parents=True, exist_ok=True)  # Prefect creates only the last folder
    defaults = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        # The first start migrates a database; on a busy machine the default of 20 s is too short.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        # At shutdown, the embedded server logs its own cancelled connections.
        "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        # Send logs to a user's server only; the embedded server has no reader for them.
        "PREFECT_LOGGING_TO_API_ENABLED": "true" if prefect_server() else "false",
        "DO_NOT_TRACK": "1",
        # By default, Torch's threads spin at every barrier. With other load on the cores, training
        # was four or more times slower.
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)  # noqa: TID251


def set_rwkv_environment(with_v7: bool) -> None:
    """Set variables of the rwkv package in the environment; they change results.

    The next import of ``rwkv.model`` then provides the class of version 7, or of versions 4 to 6.
    """
    strays = ["RWKV_RESCALE_LAYER", "RWKV_DE_VERSION", "RWKV_DML_ON"]
    # torch decides from this variable if a pickle may run code; remove it.
    for name in (*strays, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        os.environ.pop(name, None)  # noqa: TID251
    # No TorchScript, which torch deprecates, and no kernels compiled at run time.
    fixed = {"RWKV_V7_ON": str(int(with_v7)), "RWKV_JIT_ON": "0", "RWKV_CUDA_ON": "0"}
    os.environ.update(fixed)  # noqa: TID251


def set_ray_patience() -> None:
    """Limit Ray to one attempt of half a minute to reach a cluster, unless the user set the limit.

    Ray's default is twenty attempts in ten minutes.
    """
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")  # noqa: TID251


def prefect_server() -> str | None:
    """Return the address of the configured Prefect server, or None for an in-process server."""
    return os.environ.get("PREFECT_API_URL") or None  # noqa: TID251


def without_password(address: str) -> str:
    """Return an address without user and password, for display."""
    scheme, separator, rest = address.rpartition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


def telemetry_endpoint() -> str | None:
    """Return the URL to which OpenTelemetry exports traces, or None if there is none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":  # noqa: TID251
        return None
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return next(filter(None, map(os.environ.get, names)), None)  # noqa: TID251


def prefect_access() -> tuple[dict[str, str], str | bool]:
    """Return the headers that the configured server requires, and its certificate check.

    The check is a file of certificate authorities, or a boolean, like ``verify`` of requests.
    """
    headers = {}
    if user_and_password := os.environ.get("PREFECT_API_AUTH_STRING"):  # noqa: TID251
        headers["Authorization"] = f"Basic {b64encode(user_and_password.encode()).decode()}"
    elif key := os.environ.get("PREFECT_API_KEY"):  # noqa: TID251
        headers["Authorization"] = f"Bearer {key}"
    is_lax = os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "")  # noqa: TID251
    if is_lax.lower() in ("1", "true", "yes", "on"):
        return headers, False
    return headers, os.environ.get("PREFECT_API_SSL_CERT_FILE") or True  # noqa: TID251
