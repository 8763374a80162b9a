from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import UsageError
from core.settings import Settings, load_settings


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_SITES__WIKIPEDIA", "http://127.0.0.1:8000")
    monkeypatch.setenv("TIDEMARK_MODELS", '["control:zstd"]')
    monkeypatch.setenv("TIDEMARK_REQUEST_INTERVAL_S", "0.5")
    settings = load_settings()
    assert settings.home == str(tmp_path)
    assert settings.sites == {"wikipedia": "http://127.0.0.1:8000"}
    assert settings.models == ("control:zstd",)
    assert settings.request_interval_s == 0.5
    assert settings.scratch == tmp_path / "work"


def test_the_command_line_wins_and_silence_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEMARK_PROTOCOL", "sliding")
    assert load_settings(protocol="other").protocol == "other"
    assert load_settings(protocol=None).protocol == "sliding"


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    default = load_settings().home
    monkeypatch.setenv("TIDEMARK_HOME", "")
    assert load_settings().home == default != str(Path.cwd())


@pytest.mark.parametrize(
    ("name", "value"),
    [("BATCH_TOKENS", "many"), ("BATCH_TOKENS", "0"), ("REQUEST_INTERVAL_S", "-1"),
     ("MODELS", "a,b"), ("SITES", "[]"), ("MAX_DOCUMENT_BYTES", "1.5")],
)  # fmt: skip
def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"TIDEMARK_{name}", value)
    with pytest.raises(UsageError, match=f"(?i){name}"):
        load_settings()


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(UsageError, match="HOEM"):
        load_settings(hoem="x")


@pytest.mark.parametrize("value", ["http://me:secret@host", '["http://me:secret@host"]'])
def test_a_bad_value_is_not_shown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TIDEMARK_SITES", value)
    with pytest.raises(UsageError, match="(?i)sites") as caught:
        load_settings()
    assert "secret" not in str(caught.value)


def test_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings(home="data").home == str(tmp_path / "data")
    assert Settings(home="~/data").home == str(Path.home() / "data")
    assert Settings(home=f"file://{tmp_path}").home == str(tmp_path)
    remote = Settings(home="s3://bucket/prefix/")
    assert remote.home == "s3://bucket/prefix"
    assert not remote.is_local
    assert remote.scratch.is_absolute()


def test_prefect_is_kept_at_home_unless_told_otherwise(tmp_path: Path) -> None:
    """In a process of its own, because it changes the environment for good."""
    code = (
        "import os; from core.settings import Settings, set_library_defaults\n"
        f"set_library_defaults(Settings(home={str(tmp_path)!r}))\n"
        "print(os.environ['PREFECT_HOME'], os.environ['PREFECT_LOGGING_LEVEL'])"
    )
    root = Path(__file__).resolve().parents[2]
    output = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PREFECT_LOGGING_LEVEL": "DEBUG", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.split() == [str(tmp_path / "work" / "prefect"), "DEBUG"]


@pytest.mark.parametrize(("server", "sent"), [({}, "false"), ({"PREFECT_API_URL": "u"}, "true")])
def test_logs_go_to_a_server_where_there_is_one(
    server: dict[str, str], sent: str, tmp_path: Path
) -> None:
    code = (
        "import os; from core.settings import Settings, set_library_defaults\n"
        f"set_library_defaults(Settings(home={str(tmp_path)!r}))\n"
        "print(os.environ['PREFECT_LOGGING_TO_API_ENABLED'])"
    )
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code]
    output = subprocess.check_output(command, cwd=root, env={"PATH": "", **server}, text=True)
    assert output.strip() == sent


@pytest.mark.parametrize("address", ["hooks.example.org/x", "mailto:me@example.org", "https:///x"])
def test_a_webhook_that_is_none_is_refused_without_being_shown(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_NOTIFY_URL", address)
    with pytest.raises(UsageError, match="TIDEMARK_NOTIFY_URL") as refused:
        load_settings()
    assert address not in str(refused.value)
