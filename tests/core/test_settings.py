import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.environment import prefect_server
from core.errors import UsageError
from core.settings import PROJECT_PAGE, Settings, load_settings


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


def test_a_variable_may_be_in_small_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("tidemark_protocol", "sliding")
    assert load_settings().protocol == "sliding"


def test_the_command_line_wins_and_silence_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEMARK_PROTOCOL", "sliding")
    assert load_settings(protocol="other").protocol == "other"
    assert load_settings(protocol=None).protocol == "sliding"


def test_a_lake_to_write_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_WAREHOUSE", "ducklake:postgres:password=planted")
    with pytest.raises(UsageError, match=r"rebuild.*tidemark publish --to ducklake:…") as refused:
        load_settings()
    assert "planted" not in str(refused.value)


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    default = load_settings().home
    monkeypatch.setenv("TIDEMARK_HOME", "")
    assert load_settings().home == default != str(Path.cwd())


@pytest.mark.parametrize(
    ("name", "value"),
    [("BATCH_TOKENS", "many"), ("BATCH_TOKENS", "0"), ("REQUEST_INTERVAL_S", "-1"),
     ("MODELS", "a,b"), ("SITES", "[]"), ("MAX_DOCUMENT_BYTES", "1.5"),
     ("SITES", "http://me:secret@host"), ("SITES", '["http://me:secret@host"]'),
     ("SITES", '{"govuk": "http://me:secret@host/"}'), ("HOME", "s3://key:secret@bucket/x"),
     ("REPORT_URL", "https://me:secret@host/x"),
     *(("CONTACT", text) for text in ("secret", "http://secret.org", "https://secret", "a@secret",
                                      "https://me:secret@x.org", "secret@x.org, b@x.org")),
     *(("NOTIFY_URL", url) for url in ("hooks.org/secret", "mailto:secret@x.org", "https:///secret"))],
)  # fmt: skip
def test_a_bad_value_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"TIDEMARK_{name}", value)
    with pytest.raises(UsageError, match=f"(?i){name}") as refused:
        load_settings()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("contact", "is_own"),
    [("me@example.org", True), (" me+it@mail.example.org ", True), ("https://x.org/~me", True),
     ("https://github.com/me", True), ("https://github.com/tidemark/tidemark-fork", True),
     (PROJECT_PAGE, False), (f"{PROJECT_PAGE}/issues", False), (f"{PROJECT_PAGE}.git", False),
     (f"{PROJECT_PAGE.upper()}?x", False)],
)  # fmt: skip
def test_the_page_of_the_project_is_not_the_contact_of_an_operator(
    contact: str, is_own: bool
) -> None:
    settings = load_settings(contact=contact)
    assert settings.contact == contact.strip()
    assert settings.operator_contact == (contact.strip() if is_own else None)
    assert load_settings().operator_contact is None


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(UsageError, match="HOEM"):
        load_settings(hoem="x")


def test_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings(home="data").home == str(tmp_path / "data")
    assert Settings(home="~/data").home == str(Path.home() / "data")
    assert Settings(home=f"file://{tmp_path}").home == str(tmp_path)
    remote = Settings(home="s3://bucket/prefix/")
    assert remote.home == "s3://bucket/prefix"
    with pytest.raises(ValueError, match="names no bucket"):
        Settings(home="s3://")
    assert not remote.is_local
    assert remote.scratch.is_absolute()


@pytest.mark.parametrize(("server", "sent"), [({}, "false"), ({"PREFECT_API_URL": "u"}, "true")])
def test_prefect_is_kept_at_home_and_logs_go_to_a_server_where_there_is_one(
    server: dict[str, str], sent: str, tmp_path: Path
) -> None:
    """Run in its own process, because it changes the environment for good."""
    code = (
        "import os; from core.environment import set_library_defaults\n"
        "from core.settings import Settings\n"
        f"set_library_defaults(Settings(home={str(tmp_path)!r}))\n"
        "names = 'HOME', 'LOGGING_LEVEL', 'LOGGING_TO_API_ENABLED'\n"
        "print(*(os.environ['PREFECT_' + name] for name in names))"
    )
    environment = {"PREFECT_LOGGING_LEVEL": "DEBUG", "PATH": "", **server}
    root, command = Path(__file__).resolve().parents[2], [sys.executable, "-c", code]
    output = subprocess.check_output(command, cwd=root, env=environment, text=True)
    assert output.split() == [str(tmp_path / "work" / "prefect"), "DEBUG", sent]


def test_a_folder_that_may_not_be_written_is_refused_before_prefect_starts(tmp_path: Path) -> None:
    """Run as a user who may not write everywhere."""
    folder = tmp_path / "work" / "prefect"
    folder.mkdir(parents=True)
    folder.chmod(0o555)
    code = (
        "from core.environment import set_library_defaults\nfrom core.settings import Settings\n"
        f"set_library_defaults(Settings(home={str(tmp_path)!r}))"
    )
    without = "-dac_override,-dac_read_search"
    as_user = ["setpriv", "--bounding-set", without, "--inh-caps", without, "--"]
    command = [*(as_user if os.getuid() == 0 else []), sys.executable, "-c", code]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert f"StorageError: cannot write {folder}: [Errno 13]" in done.stderr


@pytest.mark.parametrize("address", ["http://me:secret@host:4200", "http://host:4200/"])
def test_the_address_of_a_prefect_server_needs_the_path_of_its_api(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", address)
    with pytest.raises(UsageError, match="expected the API: http://host:4200/api") as refused:
        prefect_server()
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("PREFECT_API_URL", "https://example.org/prefect/api/")
    assert prefect_server() == "https://example.org/prefect/api/"


@pytest.mark.parametrize("address", ["head", "http://head:1", "ray://head", "ray://a b:1"])
def test_an_address_of_no_cluster_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("TIDEMARK_RAY_ADDRESS", address)
    with pytest.raises(UsageError, match="TIDEMARK_RAY_ADDRESS"):
        load_settings()
