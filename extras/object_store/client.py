"""Access to object stores, with retries, few round trips, and remedies in error messages.

Transient failures are retried at two levels. botocore retries each request for some seconds.
``ObjectStore.patiently`` retries the whole operation for ``PATIENCE_S`` seconds.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import glob
import itertools
import json
import logging
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, TypeVar
from uuid import uuid4

import botocore.session  # type: ignore[import-untyped]
import fsspec
from aiohttp import ClientPayloadError
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    SSLError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]
from fsspec.exceptions import FSTimeoutError

from core.errors import StorageError
from core.json import JsonObject

PATIENCE_S = 45.0
_PART_BYTES = 16 * 2**20
# A request without a response fails after 4 attempts of 20 s.
_CLIENT = {
    "connect_timeout": 5,
    "read_timeout": 20,
    "retries": {"mode": "standard", "total_max_attempts": 4},
}
# Connection errors and credential errors of botocore are not subclasses of OSError.
FAILURES = (OSError, BotoCoreError, ResponseParserError, ClientPayloadError)
_LOST = (
    HTTPClientError, BotoConnectionError, IncompleteReadError, ResponseParserError,
    ClientPayloadError, FSTimeoutError, ConnectionError, TimeoutError,
)  # fmt: skip
_NO_KEYS = (
    NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, TokenRetrievalError,
)  # fmt: skip
# NoSuchUpload means that the upload was completed, but the response was lost. Upload again.
_PASSING_CODES = {
    "SlowDown", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted",
    "XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody", "NoSuchUpload",
}  # fmt: skip
_HOW_TO_GIVE_KEYS = (
    "give keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in AWS_PROFILE, or in the Prefect "
    "block tidemark-storage (docs/operate.md)"
)
_REMEDIES = {
    "NoSuchBucket": "there is no bucket {bucket}: make it, or set TIDEMARK_HOME and "
    "AWS_ENDPOINT_URL to where yours is",
    "ExpiredToken": "the keys for bucket {bucket} have expired: get new ones",
    "RequestTimeTooSkewed": "this machine's clock is wrong, bucket {bucket} refuses: set it",
    "AccessDenied": "the keys may not do this in bucket {bucket}: allow reading, writing, "
    "deleting and listing, or use other keys",
    "PermanentRedirect": "bucket {bucket} is in another region: set AWS_REGION",
    **dict.fromkeys(
        ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken"),
        "the keys are not accepted for bucket {bucket}: " + _HOW_TO_GIVE_KEYS,
    ),
}
_REMEDIES["ExpiredTokenException"] = _REMEDIES["TokenRefreshRequired"] = _REMEDIES["ExpiredToken"]
_REMEDIES["AuthorizationHeaderMalformed"] = _REMEDIES["PermanentRedirect"]
_TAKEN = {"PreconditionFailed", "412"}
_S3_KINDS = {"s3", "s3a"}
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def use_options(scheme: str, options: Mapping[str, Any]) -> None:
    """Set fsspec options of a URL scheme (such as ``s3``) for this process."""
    fsspec.config.conf.setdefault(scheme, {}).update(options)


def used_options(scheme: str) -> dict[str, Any]:
    """Return the options of a URL scheme from ``use_options`` or fsspec's configuration."""
    return dict(fsspec.config.conf.get(scheme, {}))


def has_keys(scheme: str) -> bool:
    """Return True if environment, default files or ``use_options`` contain S3 credentials.

    Roles of cloud machines are not looked up: on other machines, the request would take seconds.
    """
    if scheme not in _S3_KINDS or {"key", "anon", "profile"} & used_options(scheme).keys():
        return True
    chain = botocore.session.Session().get_component("credential_provider")
    chain.remove("iam-role")
    return chain.load_credentials() is not None


class ObjectStore:
    """An object store behind fsspec. Methods except ``patiently`` raise fsspec's errors.

    Raises:
        ValueError, ImportError: fsspec does not support the scheme of the URL.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        scheme = url.partition("://")[0]
        self._is_s3 = scheme in _S3_KINDS
        # Listings are not cached, because other workers write concurrently.
        given = {"use_listings_cache": False, **options}
        if self._is_s3:
            client = {**used_options(scheme), **options}.get("config_kwargs", {})
            given["config_kwargs"] = {**_CLIENT, **client}
        self.fs, self.base = fsspec.core.url_to_fs(url, **given)
        self.base = self.base.rstrip("/")
        self._bucket = self.base.partition("/")[0]
        self._has_responded = False
        if self._is_s3:
            self.fs.retries = 1

    def patiently(self, doing: str, work: Callable[[], _T]) -> _T:
        """Call ``work`` with retries, and return its result. Error messages state ``doing``.

        Raises:
            StorageError: the failure is permanent; the message has a remedy and no credentials.
        """
        begun = time.monotonic()
        for attempt in itertools.count():
            try:
                return work()
            except FAILURES as error:
                pause = min(8.0, 0.2 * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311
                if not _may_pass(error):
                    raise StorageError(f"cannot {doing}: {self._explain(error)}") from error
                if time.monotonic() - begun + pause > PATIENCE_S:
                    raise StorageError(
                        f"cannot {doing}: the object store of bucket {self._bucket!r} keeps "
                        f"failing or is not reached ({error}); see that it is well and that "
                        "AWS_ENDPOINT_URL is right, then run the same again"
                    ) from error
                _log.warning("cannot %s: %s; trying again", doing, error)
                time.sleep(pause)
        raise AssertionError("unreachable")

    def _explain(self, error: BaseException) -> str:
        """Return what an error of the store means, and what to do."""
        cause = _typed(error)
        if isinstance(cause, _NO_KEYS):
            return f"no keys for bucket {self._bucket!r} ({cause}): {_HOW_TO_GIVE_KEYS}"
        code = _code(cause)
        if code and code.isdecimal():  # a response to HEAD has only an HTTP status
            code = self._refusal() or ("AccessDenied" if code == "403" else code)
        if code in _REMEDIES:
            return f"{_REMEDIES[code].format(bucket=repr(self._bucket))} ({code})"
        return str(error)

    def _refusal(self) -> str | None:
        """Return the code with which the store refuses a listing; None if it does not."""
        try:
            self._list_one()
        except FAILURES as error:
            return _code(_typed(error))
        return None

    def require_bucket(self) -> None:
        """Raise an error if the bucket does not exist; only the first call sends a request."""
        if self._is_s3 and not self._has_responded:
            self._list_one()
        self._has_responded = True

    def _list_one(self) -> None:
        prefix = self.base.partition("/")[2]
        self.fs.call_s3("list_objects_v2", Bucket=self._bucket, Prefix=prefix, MaxKeys=1)

    def exists(self, key: str) -> bool:
        """Return True if there is an object with this key, or with this key as its folder."""
        if self.fs.exists(key):
            return True
        self.require_bucket()
        return False

    def find(self, pattern: str) -> set[str]:
        """Return the objects and folders below the store's URL that match a glob pattern.

        Everything below the pattern's fixed prefix is listed at once, because a listing of each
        folder would take one round trip.
        """
        parts = pattern.split("/")
        fixed = next((n for n, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts))
        if "**" in pattern or fixed >= len(parts) - 1:
            found = self.fs.glob(f"{glob.escape(self.base)}/{pattern}")
            names = {path.removeprefix(f"{self.base}/") for path in found}
        else:
            paths = self.fs.find("/".join([self.base, *parts[:fixed]]))
            below = (path.removeprefix(f"{self.base}/").split("/") for path in paths)
            cut = {"/".join(each[: len(parts)]) for each in below}
            fits = re.compile(fsspec.utils.glob_translate(pattern))
            names = {name for name in cut if fits.match(name)}
        if not names:
            self.require_bucket()
        return names

    def open(self, key: str, doing: str) -> IO[bytes]:
        """Open an object; all reads return data of the same version of the object."""
        file = self.fs.open(key, "rb")
        if hasattr(file, "cache") and file.cache is not None:
            fetch = file.cache.fetcher
            file.cache.fetcher = lambda start, end: self.patiently(doing, lambda: fetch(start, end))
        return file  # type: ignore[no-any-return]

    def putting(self, local: str, key: str) -> Callable[[], None]:
        """Return a function that uploads a local file atomically, in parts if it is large."""
        if not self._is_s3:
            return lambda: self.fs.put_file(local, key)
        # Each part of an upload is retried separately. S3 allows 10,000 parts.
        part = max(_PART_BYTES, Path(local).stat().st_size // 9_000)
        return lambda: self.fs.put_file(local, key, chunksize=part)

    def creation(self, key: str, data: bytes) -> Callable[[], bool]:
        """Return a function that creates an object, or returns False if the object exists.

        If the response to the first put is lost, the retry finds the object already there. A random
        mark in the object's metadata then shows that this function created the object.
        """
        if not self._is_s3:
            return lambda: self._create(key, data)
        mark = {"tidemark-put": uuid4().hex}
        bucket, _, name = key.partition("/")

        def create() -> bool:
            if self._create(key, data, Metadata=mark):
                return True
            found = self.fs.call_s3("head_object", Bucket=bucket, Key=name)
            return bool(found.get("Metadata") == mark)

        return create

    def _create(self, key: str, data: bytes, **more: Any) -> bool:
        """Write an object unless there is one; return False if there is."""
        try:
            self.fs.pipe_file(key, data, mode="create", **more)
        except OSError as error:
            if isinstance(error, FileExistsError) or _code(_typed(error)) in _TAKEN:
                return False
            raise
        return True

    def abort_uploads(self, key: str, before: dt.datetime) -> None:
        """Abort unfinished multipart uploads to ``key``, and all that began before ``before``."""
        if not self._is_s3:
            return
        for upload, number, begun in list(self._uploads()):
            if upload == key or (upload.startswith(f"{self.base}/") and begun < before):
                with contextlib.suppress(FileNotFoundError):  # already ended
                    self.fs.abort_mpu(self._bucket, upload.partition("/")[2], number)

    def _uploads(self) -> Iterator[tuple[str, str, dt.datetime]]:
        """Yield (key, id, start time) of each unfinished multipart upload below the store's URL."""
        prefix = self.base.partition("/")[2]
        page = dict[str, str]()
        while True:
            response = self.fs.call_s3(
                "list_multipart_uploads", Bucket=self._bucket, Prefix=prefix, **page
            )
            for upload in response.get("Uploads", []):
                yield f"{self._bucket}/{upload['Key']}", upload["UploadId"], upload["Initiated"]
            if not response.get("IsTruncated"):
                return
            page = {
                "KeyMarker": response["NextKeyMarker"],
                "UploadIdMarker": response["NextUploadIdMarker"],
            }


def was_replaced(error: BaseException) -> bool:
    """Return True if a read failed because the object was replaced meanwhile."""
    return _code(_typed(error)) in _TAKEN


def parse_options(given: object, where: str) -> JsonObject:
    """Parse fsspec options from a mapping, or from the text of a JSON object.

    Raises:
        StorageError: ``given`` has another form. The message omits ``given``, which is secret.
    """
    options = given
    with contextlib.suppress(ValueError):
        options = json.loads(given) if isinstance(given, str) else given
    if not isinstance(options, dict):
        raise StorageError(
            f"{where} is no JSON object of fsspec's options; expected "
            '{"key": …, "secret": …, "endpoint_url": …}'
        )
    return options


def _typed(error: BaseException) -> BaseException:
    """Return the botocore error that caused an error of s3fs; without one, the error itself."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, (ClientError, BotoCoreError, *_LOST)):
            return found
        found = found.__cause__ or found.__context__
    return error


def _code(error: BaseException) -> str | None:
    return error.response["Error"].get("Code") if isinstance(error, ClientError) else None


def _may_pass(error: BaseException) -> bool:
    """Return True if a later try may succeed."""
    cause = _typed(error)
    if isinstance(cause, ClientError):
        status = int(cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        is_ill = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED
        return is_ill or status == HTTPStatus.TOO_MANY_REQUESTS or _code(cause) in _PASSING_CODES
    return isinstance(cause, _LOST) and not isinstance(cause, SSLError)
