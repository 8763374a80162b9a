import errno
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from core.errors import (
    BatchTooLarge,
    CheckFailed,
    DiskFull,
    ItemFailed,
    MalformedInput,
    ModelError,
    ModelLoadError,
    NotMeasurable,
    SourceChanged,
    SourceUnavailable,
    StorageError,
    WarehouseError,
)
from crawlers.web.pacing import CircuitOpen
from instruments.running.retries import PAUSES, pauses_of, retrying
from models.weights.hub import explain_failures


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (SourceUnavailable("busy"), SourceUnavailable),
        (ItemFailed("failed", "5 times"), SourceUnavailable),
        (CircuitOpen("refused"), None),
        (SourceChanged("a list"), None),
        (caused(StorageError("s3"), EndpointConnectionError(endpoint_url="x")), StorageError),
        (caused(StorageError("s3"), OSError(errno.EBUSY, "slow down")), StorageError),
        (caused(StorageError("nfs"), OSError(errno.ESTALE, "stale")), StorageError),
        (caused(StorageError("s3"), NoCredentialsError()), None),
        (caused(StorageError("s3"), PermissionError(errno.EACCES, "no")), None),
        (caused(StorageError("s3"), FileNotFoundError(errno.ENOENT, "no")), None),
        (StorageError("was removed meanwhile"), None),
        (caused(DiskFull("full"), OSError(errno.ENOSPC, "full")), None),
        (caused(ModelLoadError("hub"), ConnectionResetError()), ModelLoadError),
        (ModelLoadError("no config.json"), None),
        (caused(ModelError("remote"), TimeoutError()), ModelError),
        (caused(NotMeasurable("too long"), TimeoutError()), None),
        (BatchTooLarge("halved"), None),
        (WarehouseError("the file is damaged"), None),
        (CheckFailed("rows"), None),
        (MalformedInput("json"), None),
        (ValueError("bug"), None),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, kind: Any) -> None:
    assert pauses_of(error) == (PAUSES[kind] if kind else ())


@pytest.mark.parametrize(("status", "again"), [(503, True), (404, False)])
def test_a_hub_that_is_away_may_come_back(status: int, again: bool) -> None:
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    response = httpx2.Response(status, request=httpx2.Request("GET", "http://hub/api"))
    with pytest.raises(ModelLoadError) as caught, explain_failures("org/model", None):
        raise HfHubHTTPError("no", response=response)
    assert (pauses_of(caught.value) == PAUSES[ModelLoadError]) is again


def attempts(*errors: Exception) -> tuple[list[float], Any]:
    waiting, pauses = iter(errors), list[float]()

    def work() -> str:
        for error in waiting:
            raise error
        return "done"

    try:
        return pauses, retrying("cell", work, sleep=pauses.append)
    except Exception as error:  # noqa: BLE001
        return pauses, error


def test_each_kind_has_its_own_pauses(caplog: pytest.LogCaptureFixture) -> None:
    away = caused(StorageError("s3 is away"), TimeoutError())
    hub = caused(ModelLoadError("the hub is away"), TimeoutError())
    pauses, ended = attempts(away, hub, away)
    assert ended == "done"
    assert pauses == [pytest.approx(pause, rel=0.21) for pause in (5, 30, 30)]
    assert "cell: StorageError: s3 is away; again in" in caplog.text
    assert "(try 3 of 5)" in caplog.text


def test_nobody_tries_for_ever() -> None:
    hub = caused(ModelLoadError("the hub is away"), TimeoutError())
    pauses, ended = attempts(hub, hub, hub)
    assert len(pauses) == 2
    assert ended is hub
    assert attempts(KeyError("bug"))[0] == []
