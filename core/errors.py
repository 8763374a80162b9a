"""The errors that tidemark raises on purpose.

    TidemarkError
    ├── UsageError                 the request is wrong; exit code 2
    │   ├── UnknownName            no such source, model, protocol or view
    │   └── FutureMonth            the month has not ended
    ├── SourceError                a site violated its protocol
    │   ├── SourceUnavailable      the site failed for now: retry later
    │   │   └── ItemFailed         one URL failed; a crawl continues with the next item
    │   ├── SourceChanged          the format changed: adapt the parser
    │   ├── ItemUnavailable        one item is unavailable; the crawl continues
    │   ├── AccessRefused          robots.txt, a missing permission, or a host off the allow-list
    │   │   └── TokenRefused       the site requires or rejects credentials
    │   └── EmptyPartition         no document of a month was kept
    ├── MalformedInput             a user's file has a wrong format
    ├── ModelError
    │   ├── ModelLoadError         weights or tokenizer are missing, unsafe or broken
    │   ├── NotMeasurable          this model cannot be scored under this protocol
    │   ├── NotReproducible        a compressed file cannot be decoded on this machine
    │   ├── BatchTooLarge          the batch size was reduced: score the cell again
    │   └── BudgetReached          the spending limit for answers is reached
    ├── StorageError
    │   ├── DamagedFile            a file of the data root is missing or damaged
    │   ├── DiskFull
    │   ├── PartitionSealed        different content is sealed
    │   └── PartitionHeld          a check failed on sealing; an operator must review the crawl
    ├── OrchestrationError         the Prefect server is down, or refuses a request
    └── WarehouseError
        ├── SchemaMismatch         a table does not fit its schema; names the first bad row
        ├── CellConflict           a cell has landed with different losses
        ├── DamagedDatabase        the writer's database or a snapshot cannot be read
        ├── NewerVersion           a later version of tidemark, or of DuckDB, wrote a database
        └── CheckFailed            a snapshot failed its integrity checks and was not published

An error message states the fault, its place, the expected state, and the remedy. Add a line to the
tree above for each new class.
"""

import difflib
from collections.abc import Collection


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question with the known name that is most like ``name``, and a blank after it.

    Return an empty text if ``name`` is known, or is like no known name.
    """
    close = [] if name in known else difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}? " if close else ""


class TidemarkError(Exception):
    """Base of all errors that tidemark raises on purpose."""


class UsageError(TidemarkError):
    """The user's request is wrong; the command line exits with code 2."""


class UnknownName(UsageError):
    """No source, model, protocol or view has this name."""

    def __init__(self, kind: str, name: str, known: list[str], hint: str = "") -> None:
        # Exception needs all original arguments, so that workers can pickle the error.
        super().__init__(kind, name, known, hint)
        choices = f"{did_you_mean(name, known)}known: {', '.join(known)}" if known else ""
        self._message = "; ".join(filter(None, [f"unknown {kind} {name!r}", choices, hint]))

    def __str__(self) -> str:
        return self._message


class FutureMonth(UsageError):
    """The month has not ended, so its text is not complete."""


class SourceError(TidemarkError):
    """A site violated its protocol."""


class SourceUnavailable(SourceError):
    """The site failed temporarily; a later run may succeed."""


class ItemFailed(SourceUnavailable):
    """One URL failed at every attempt; ``reason`` is a short code such as ``http_5xx``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)  # pickling needs both arguments
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


class SourceChanged(SourceError):
    """The site sent a response that the parser cannot read."""


class ItemUnavailable(SourceError):
    """One item is unavailable (gone, forbidden, …); ``reason`` is a code such as ``too_large``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)  # pickling needs both arguments
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


class AccessRefused(SourceError):
    """Robots rules, a missing permission, or a host outside the allow-list forbid access."""


class TokenRefused(AccessRefused):
    """The site requires credentials, or rejected the credentials that were sent."""


class EmptyPartition(SourceError):
    """No document of a month was kept; the message counts dropped documents by reason."""


class MalformedInput(TidemarkError):
    """A user's file does not have the expected format."""


class ModelError(TidemarkError):
    """Base of all errors of loading or running models."""


class ModelLoadError(ModelError):
    """Weights or tokenizer are missing, unsafe or broken."""


class NotMeasurable(ModelError):
    """The model cannot be scored under this protocol, although its files are intact."""


class BatchTooLarge(ModelError):
    """A batch did not fit into the device's memory; the scorer has halved its batch size."""


class BudgetReached(ModelError):
    """The spending limit for answers is reached; earlier answers are kept."""


class NotReproducible(ModelError):
    """A file compressed with a model cannot be decoded with this model, device or library."""


class StorageError(TidemarkError):
    """Reading or writing the data root failed."""


class DiskFull(StorageError):
    """The disk is full; the partly written file was deleted."""


class DamagedFile(StorageError):
    """A file of the data root is missing or damaged."""


class PartitionSealed(StorageError):
    """The partition is already sealed with different content."""


class PartitionHeld(StorageError):
    """A crawl failed a check and was not sealed; the message names the check and the remedy."""


class OrchestrationError(TidemarkError):
    """The Prefect server does not answer, or refuses a request."""


class WarehouseError(TidemarkError):
    """Landing losses, publishing a snapshot or querying the warehouse failed."""


class SchemaMismatch(WarehouseError):
    """A table does not fit its schema."""


class CellConflict(WarehouseError):
    """The warehouse already contains different losses of the same cell."""


class CheckFailed(WarehouseError):
    """A snapshot failed its integrity checks and was not published."""


class DamagedDatabase(WarehouseError):
    """The writer's database or a snapshot cannot be read; the message states what to do."""


class NewerVersion(WarehouseError):
    """A later version of tidemark, or of DuckDB, wrote the database."""


def kind_and_reason(error: BaseException) -> str:
    """Return the name of an error's class, and its reason; ``repr`` may contain a whole file."""
    return f"{type(error).__name__}: {error}"
