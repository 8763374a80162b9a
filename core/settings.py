"""Settings of an installation, read from the environment variables ``TIDEMARK_…``."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, NonNegativeInt, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from core.environment import has_variable, names_of_variables
from core.errors import UsageError

DEBIAN_CHROMIUM = Path("/usr/bin/chromium")
MAX_DOCUMENT_BYTES = 16 * 2**20
# Of a model, source, document … A Parquet file of kilobytes could hold a million names of 1 MB.
MAX_NAME_BYTES = 4096
PREFIX = "TIDEMARK_"  # of the environment variables
PROJECT_PAGE = "https://github.com/tidemark/tidemark"
# Names of the prompts of puzzles; see extras/scylla/variants.py.
PUZZLE_PROMPT = "zero-shot-cot(-second)?|(few-shot|mixed|varied)-[1-8](-second|-likelihood)?"
_OF_PROJECT = re.compile(rf"{re.escape(PROJECT_PAGE)}(?![\w-])", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+%-]+@([\w-]+\.)+[\w-]{2,}", re.ASCII)
_RAY_ADDRESS = re.compile(r"(ray://)?([\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}")


class Settings(BaseSettings):
    """All options that may differ between two installations.

    Each field is read from the variable ``TIDEMARK_<FIELD>``. Entries of a mapping are read from
    ``TIDEMARK_<FIELD>__<KEY>``, e.g. ``TIDEMARK_SITES__WIKIPEDIA=http://127.0.0.1:8000``.
    ``docs/settings.md`` describes all fields in full.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,  # else an empty TIDEMARK_HOME would mean the current folder
        frozen=True,
        extra="forbid",
    )

    home: str = Field(default_factory=lambda: platformdirs.user_data_dir("tidemark"))
    """Data root: a local folder, or s3://bucket/prefix."""
    work_dir: Path | None = None
    """Local scratch folder; default: <home>/work, or the user's cache folder."""
    sites: dict[str, str] = Field(default_factory=dict)
    """Base URLs that replace those of sources, by site key. Only these hosts may be private."""
    tokens: dict[str, SecretStr] = Field(default_factory=dict)
    """Access tokens by site key; default: the Prefect server's Secret block `tidemark-<key>`."""
    request_interval_s: float | None = Field(default=None, ge=0)
    """Seconds between two requests to one host; default: what each source declares."""
    languages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Languages to crawl, as codes, by source; default: set by the source."""
    monthly_bytes: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """Maximum bytes of text per month, by source; a larger month is sampled. 0: no limit."""
    corpus_as_of: dt.datetime | None = None
    """Use only versions that were sealed by this instant, or by the end of this day (UTC)."""
    redact: bool = False
    """Replace e-mail addresses, phone numbers, IP addresses and secret keys in crawled texts."""
    denied_hosts: tuple[str, ...] = ("bbc.com", "bbc.co.uk")
    """Hosts whose pages, and those of subdomains, are left out of imported web archives."""
    contact: str = PROJECT_PAGE
    """Your e-mail address or the https:// address of your page, for the user agent."""
    models: tuple[str, ...] = ("control:gzip", "control:zstd", "control:xz")
    """Models of runs: catalogue names, folders, controls, or `tag:` and a tag."""
    period_sources: tuple[str, ...] = ()
    """Sources of half-months and weeks for which `tidemark deploy` schedules runs."""
    protocol: str = "default"
    """Protocol of the monthly run."""
    kept_documents: NonNegativeInt = 20
    """Number of documents of a partition whose token losses are kept. 0: none."""
    answer_protocol: str = "letter-rotated"
    """Protocol of forecasting questions. Models behind APIs always use `generate`."""
    puzzle_items: int = Field(default=256, gt=0)
    """Number of items of a puzzle that a model solves in each split."""
    puzzle_sampling: Literal["unique", "frequency"] = "unique"
    """How items are drawn from a model's inputs: with equal weights, or by frequency."""
    puzzle_completions: int = Field(default=6400, gt=0)
    """Maximum number of texts that a model writes so that inputs of a puzzle can be found."""
    puzzle_prompt: str = Field(default="zero-shot-cot", pattern=f"^({PUZZLE_PROMPT})$")
    """How puzzles are asked: with no, K, mixed or varied demonstrations; or likelihoods."""
    puzzle_seed: int = Field(default=0, ge=0)
    """Seed of the puzzles' items."""
    device: str = "auto"
    """torch device; auto: cuda if present."""
    dtype: str = "auto"
    """auto: bfloat16 on a GPU, float32 on a CPU."""
    kernels: Literal["plain", "fast"] = "plain"
    """`fast`: CUDA graphs on a GPU; their losses are other cells."""
    tensor_parallel: int = Field(default=1, gt=0)
    """Number of GPUs that share each layer of a model while it is scored, if its architecture has
    a plan for this."""
    batch_tokens: int | None = Field(default=None, gt=0)
    """Maximum number of tokens of a forward pass; default: 16,384 on a GPU, 1,024 on a CPU."""
    notify_url: SecretStr | None = None
    """Webhook for alarms, which are sent as JSON `{"text": …}`; default: none are sent."""
    in_flight: int | None = Field(default=None, gt=0)
    """Number of cells of a model at once; default: 10 for a remote model, 2 for others."""
    ray_address: str | None = None
    """Ray cluster that scores the cells of flow runs; default: score in this process."""
    remote_api_key: SecretStr | None = None
    """Bearer token for the servers of remote models (vLLM's --api-key)."""
    api_keys: dict[str, SecretStr] = Field(default_factory=dict)
    """Keys of APIs, by the name in the catalogue entry of a model (`api_key`)."""
    api_in_flight: int = Field(default=8, gt=0)
    """Maximum number of parallel requests to a model behind an API."""
    max_answer_tokens: int | None = Field(default=None, ge=0)
    """Maximum tokens, input plus output, of a run's requests to APIs; default: no limit."""
    max_answer_dollars: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Maximum cost of a run's requests to APIs, by the catalogue's prices; default: no limit."""
    model_cache_bytes: int | None = Field(default=None, ge=0)
    """Maximum size of the local cache of hub models; default: no limit."""
    model_free_bytes: int = Field(default=0, ge=0)
    """Free space that a download of a hub model leaves on the disk of the cache."""
    max_document_bytes: int = Field(default=MAX_DOCUMENT_BYTES, gt=0)
    """Longer documents are dropped; the manifest counts them."""
    watch_interval_s: float = Field(default=10.0, gt=0)
    """Seconds between two looks of a run at the flow runs of its workers."""
    report_url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """http:// or https:// address of the report; default: its address under the data root."""
    report_author: str | None = None
    """Who publishes the report, for its footer and its citation."""
    report_code: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """http:// or https:// address of the code repository, for the report's footer."""
    chromium: Path | None = DEBIAN_CHROMIUM if DEBIAN_CHROMIUM.exists() else None
    """Browser binary; default: a system Chromium, else Playwright's own."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment only if it has a setting: that takes milliseconds.

        There is no file of settings, and no folder of secrets.
        """
        if has_variable(PREFIX):
            return init_settings, env_settings
        return (init_settings,)

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: str) -> str:
        if not home.strip():
            raise ValueError("is empty; give a folder or s3://bucket/prefix")
        home = home.removeprefix("file://")
        if home.endswith("://"):
            raise ValueError("names no bucket; give a folder or s3://bucket/prefix")
        return home.rstrip("/") if "://" in home else str(Path(home).expanduser().resolve())

    @field_validator("home", "report_url", "report_code")
    @classmethod
    def _without_password(cls, address: str | None) -> str | None:
        return address if address is None else _require_no_password(address)

    @field_validator("sites")
    @classmethod
    def _sites_without_passwords(cls, sites: dict[str, str]) -> dict[str, str]:
        return {key: _require_no_password(address) for key, address in sites.items()}

    @field_validator("corpus_as_of", mode="before")
    @classmethod
    def _moment(cls, value: object) -> object:
        """Convert text to an instant; a day without a time means its end. The default is UTC."""
        if not isinstance(value, str):
            return value
        try:  # pydantic would also accept a number, as seconds since 1970
            moment = dt.datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"is no day or instant of ISO 8601 ({error}): 2026-11-22") from error
        if "T" not in value and " " not in value:
            moment += dt.timedelta(days=1, microseconds=-1)
        return moment.replace(tzinfo=moment.tzinfo or dt.UTC)

    @field_validator("contact")
    @classmethod
    def _contact(cls, contact: str) -> str:
        if not _is_contact(contact.strip()):
            example = "you@example.org, https://example.org/you"
            raise ValueError(f"is neither an e-mail address nor an https:// address: {example}")
        return contact.strip()

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
    def operator_contact(self) -> str | None:
        """Return the contact if it names the operator; None for the page of the project."""
        is_own = _is_contact(self.contact) and not _OF_PROJECT.match(self.contact)
        return self.contact if is_own else None

    @property
    def is_local(self) -> bool:
        """Return True if the data root is a folder of this machine."""
        return "://" not in self.home

    @property
    def scratch(self) -> Path:
        """The local folder for temporary and cached files; it may not exist yet."""
        if self.work_dir is not None:
            return self.work_dir.expanduser().resolve()
        return (
            Path(self.home) / "work" if self.is_local else platformdirs.user_cache_path("tidemark")
        )


def _require_no_password(address: str) -> str:
    """Return an address; raise ValueError if it has a user name or a password.

    Addresses appear in messages, run parameters and manifests.
    """
    if "://" in address and "@" in address.partition("://")[2].partition("/")[0]:
        raise ValueError(
            "has a user or password, which messages and manifests would show; give tokens of sites "
            "as TIDEMARK_TOKENS__<KEY>, and keys of an object store as its own variables (AWS_…)"
        )
    return address


def _is_contact(text: str) -> bool:
    """Return True for an e-mail address, and for an https URL of a public host."""
    if _EMAIL.fullmatch(text):
        return True
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text and "@" not in parts.netloc
    return is_plain and parts.scheme == "https" and "." in host.strip(".")


def _refuse_lake() -> None:
    """Raise UsageError if a variable of an earlier version is set, which has no effect now."""
    if "TIDEMARK_WAREHOUSE" in names_of_variables("TIDEMARK_WAREHOUSE"):
        raise UsageError(
            "TIDEMARK_WAREHOUSE is set, but landing no longer writes a lake: a lake is a copy of "
            "the published snapshot. Unset the variable, run `tidemark rebuild` (extra "
            "`repair`) once, and `tidemark publish --to ducklake:…` after each run (see "
            "extras/lake/README.md)"
        )


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment; ``overrides`` (from options) take precedence.

    Raises:
        UsageError: a value is malformed; the message names the variable.
    """
    _refuse_lake()
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        problems = (
            f"TIDEMARK_{'__'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False)  # the input may contain a password
        )
        # A chained error would print the input, which may contain a password.
        raise UsageError(f"bad settings: {'; '.join(problems)} (see docs/settings.md)") from None
    except SettingsError as error:
        raise UsageError(f"bad settings: {error}; lists and mappings are given as JSON") from error
