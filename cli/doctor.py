"""Command `tidemark doctor`: check the requirements of a run, and say how to repair faults."""

from __future__ import annotations

import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.terminal.console import print_table
from cli.terminal.options import settings_of
from core.errors import AccessRefused, TidemarkError, did_you_mean
from core.storage.store import Store

if TYPE_CHECKING:
    from core.settings import Settings

MIN_FREE_BYTES = 5 * 2**30  # enough for a month of the default sources, a small model, 2 snapshots

_PREFIX = "TIDEMARK_"
# Variables that compose.yaml and tests read.
_OTHERS = ("TIDEMARK_IMAGE", "TIDEMARK_TEST_GPUS")
_CONDITIONS = "use an object store that supports conditional puts (If-None-Match: *)"


@dataclass(frozen=True)
class Finding:
    """The result of one check; ``mend`` says how to repair a fault."""

    what: str
    is_well: bool
    detail: str
    mend: str = ""


def examine(settings: Settings) -> list[Finding]:
    """Run every check, even after faults; return the results."""
    checks: list[Callable[[Settings], Finding]] = [
        _python, _torch, _chromium, _git, _disk, _variables, _home, _contact, _models, _writer,
        _server,
    ]  # fmt: skip
    return [check(settings) for check in checks]


def _python(_: Settings) -> Finding:
    mend = "install Python 3.11 and run make install"
    return Finding("Python", sys.version_info >= (3, 11), platform.python_version(), mend)


def _torch(settings: Settings) -> Finding:
    """Check that torch can be imported, and that the configured device is available."""
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("torch", False, str(error), "run make install")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    detail = f"{torch.__version__}, device {device}"
    if settings.device not in {"auto", "cpu"} and device == "cpu":
        mend = "set TIDEMARK_DEVICE=auto, or install a CUDA build of torch and a driver"
        return Finding("torch", False, f"{detail}, asked for {settings.device}", mend)
    return Finding("torch", True, detail)


def _version_of(*command: str) -> str | None:
    """Return the output of a command that prints its version, or None if it fails."""
    try:
        printed = subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True, timeout=20)
        return printed.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _chromium(settings: Settings) -> Finding:
    mend = "apt-get install chromium, or .venv/bin/playwright install chromium"
    binary = settings.chromium or _playwright_chromium()
    if binary is None:
        return Finding("Chromium", False, "not found (only some sources need it)", mend)
    version = _version_of(str(binary), "--version")
    detail = f"{version} at {binary}" if version else f"{binary} does not start"
    return Finding("Chromium", version is not None, detail, mend)


def _playwright_chromium() -> Path | None:
    """Return the path of Playwright's own Chromium, or None if it is not installed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        binary = Path(playwright.chromium.executable_path)
    return binary if binary.exists() else None


def _git(_: Settings) -> Finding:
    version = _version_of("git", "--version")
    return Finding("git", version is not None, version or "not found", "apt-get install git")


def _disk(settings: Settings) -> Finding:
    """Check the free space on the disk of the scratch folder, which may not exist yet."""
    folder = settings.scratch
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    detail = f"{free / 2**30:.1f} GiB free at {folder}"
    gib = f"{MIN_FREE_BYTES / 2**30:.0f} GiB"
    mend = f"free at least {gib} or set TIDEMARK_WORK_DIR to another disk"
    return Finding("disk", free >= MIN_FREE_BYTES, detail, mend)


def _variables(settings: Settings) -> Finding:
    """Find environment variables that no setting reads, such as those with a wrong letter."""
    from core.environment import names_of_variables

    known = [f"{_PREFIX}{name.upper()}" for name in type(settings).model_fields] + [*_OTHERS]
    given = names_of_variables(_PREFIX)
    unknown = [name for name in given if name.partition("__")[0] not in known]
    if not unknown:
        return Finding("variables", True, f"each {_PREFIX}… is a setting")
    mend = f"{did_you_mean(unknown[0], known)}docs/settings.md lists all"
    return Finding("variables", False, f"no settings: {', '.join(unknown)}", mend)


def _home(settings: Settings) -> Finding:
    """Check that the data root and the scratch folder are writable."""
    mend = "set TIDEMARK_HOME to a folder (or s3:// address) that you may write to"
    try:
        store = Store(settings.home)
        if not _supports_conditional_puts(store):
            detail = f"{settings.home} overwrites a file in a conditional put"
            return Finding("data root", False, detail, _CONDITIONS)
        settings.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.scratch):
            return Finding("data root", True, f"{settings.home} is writable")
    except (TidemarkError, OSError) as error:
        return Finding("data root", False, str(error), mend)


def _supports_conditional_puts(store: Store) -> bool:
    """Return True if the store refuses to create a file that exists."""
    path = f"work/.doctor-{secrets.token_hex(4)}"
    try:
        return store.create_bytes(path, b"first") and not store.create_bytes(path, b"second")
    finally:
        store.delete(path)


def _contact(settings: Settings) -> Finding:
    """Find sources that cannot be crawled because TIDEMARK_CONTACT names no operator."""
    from crawlers.registry import list_sources, load_crawler

    refused = []
    for source in list_sources():
        try:
            load_crawler(source).INFO.require_contact(settings)
        except AccessRefused:
            refused.append(source)
    if not refused:
        return Finding("contact", True, settings.contact)
    detail = f"{settings.contact} does not name who runs this: no crawls of {', '.join(refused)}"
    mend = "set TIDEMARK_CONTACT to your e-mail address or the https:// address of your own page"
    return Finding("contact", False, detail, mend)


def _models(settings: Settings) -> Finding:
    """List the models that ``tidemark score`` uses by default; only report a bad setting."""
    from models.choice import chosen_models
    from models.unloaded import ONLY_COMPRESSORS, scores_only_compressors

    try:
        only_compressors = scores_only_compressors(settings)
    except TidemarkError as error:
        return Finding("models", False, str(error), "correct TIDEMARK_MODELS or models.yaml")
    return Finding(
        "models", True, ONLY_COMPRESSORS if only_compressors else ", ".join(chosen_models(settings))
    )


def _writer(settings: Settings) -> Finding:
    """Check the warehouse's databases, and name the machine that writes the warehouse."""
    from warehouse.database.lock import is_writer, read_writer

    what = "warehouse"
    try:
        faults = _find_faults(settings)
        if faults:
            return Finding(what, False, "; ".join(faults), "; ".join(faults.values()))
        recorded = read_writer(Store(settings.home))
        if recorded is None:
            return Finding(what, True, "nothing has landed yet")
        where = f"written from {recorded.scratch} of machine {recorded.machine}"
        if not is_writer(settings):
            where += (
                ": workers elsewhere only write cells, and landing happens there alone; "
                "where that folder is lost, run tidemark take-over"
            )
        return Finding(what, True, where)
    except (TidemarkError, OSError) as error:
        return Finding(what, False, str(error), "repair the data root: see the row above")


def _find_faults(settings: Settings) -> dict[str, str]:
    """Check the snapshot and this folder's database quickly; return the advice for each fault.

    Files that are missing or in use are no fault. Large tables, and a snapshot in an object store,
    are not read.
    """
    from warehouse.database.faults import QUICK_ROWS
    from warehouse.database.repair import (
        SKIPPED,
        advise_on_snapshot,
        advise_on_writer,
        find_snapshot_fault,
        find_writer_fault,
    )
    from warehouse.database.schema import SNAPSHOT, WRITER

    found = {}
    writer = find_writer_fault(settings, QUICK_ROWS)
    if writer and writer.kind not in SKIPPED:
        found[f"{settings.scratch / WRITER} {writer.reason}"] = advise_on_writer(settings, writer)
    store = Store(settings.home)
    snapshot = find_snapshot_fault(settings, QUICK_ROWS)
    if snapshot and snapshot.kind not in SKIPPED:
        advice = advise_on_snapshot(settings, snapshot)
        found[f"{store.url(SNAPSHOT)} {snapshot.reason}"] = advice
    return found


def _server(_: Settings) -> Finding:
    """Check that the configured Prefect server answers; none need be configured."""
    from cli.server import require_access

    try:
        address = require_access(is_needed=True)
    except TidemarkError as error:
        return Finding("Prefect server", False, str(error), "correct or unset PREFECT_API_URL")
    found = f"{address} answers" if address else "none configured: flows run in-process"
    return Finding("Prefect server", True, found)


def doctor_command(context: typer.Context) -> None:
    """Check the requirements of a run, and say how to repair faults.

    Checked are programs, disk, variables, data root, contact, models, warehouse and Prefect server.
    """
    findings = examine(settings_of(context))
    rows = [
        (f.what, "ok" if f.is_well else "PROBLEM", f.detail, "" if f.is_well else f.mend)
        for f in findings
    ]
    print_table("doctor", ["what", "state", "found", "to mend it"], rows)
    if not all(f.is_well for f in findings):
        raise typer.Exit(1)
