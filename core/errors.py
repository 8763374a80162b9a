"""Every error that tidemark raises on purpose.

    TidemarkError
    ├── UsageError                 what was asked for cannot be meant; exit code 2
    │   ├── UnknownName            no such source, model, protocol or view
    │   └── FutureMonth            a month that is not over yet
    ├── SourceError                a site did not give what it promised
    │   ├── SourceUnavailable      it may later: retry
    │   │   └── ItemFailed         one address only; a crawl goes on with the next item
    │   ├── SourceChanged          it never will: the parser must follow
    │   ├── ItemUnavailable        this one item cannot be had; the crawl goes on
    │   ├── AccessRefused          robots.txt, a missing permission, or a host off the allow-list
    │   │   └── TokenRefused       the site wants a token, or does not accept the one it got
    │   └── EmptyPartition         nothing was kept of a month: never sealed as a silent zero
    ├── MalformedInput             a file of the user's is not what it says
    ├── ModelError
    │   ├── ModelLoadError         weights or tokenizer are missing, unsafe or broken
    │   ├── NotMeasurable          this model cannot be scored under this protocol
    │   ├── NotReproducible        what was compressed elsewhere cannot be restored here
    │   ├── BatchTooLarge          batches are smaller now: score the cell again
    │   └── BudgetReached          answers would cost more than the run may spend; no fault
    ├── StorageError
    │   ├── DiskFull
    │   ├── PartitionSealed        other content is already sealed there
    │   └── PartitionHeld          a check failed on sealing; somebody has to look at it
    ├── OrchestrationError         the Prefect server is away, or refuses
    └── WarehouseError
        ├── SchemaMismatch         a table is not of its schema; names the first offending row
        ├── CellConflict           a cell is landed already, with other losses
        └── CheckFailed            a snapshot failed its integrity checks and was not published

A message says what, where, what was expected, and what to do. Do not add a class here without a
line above.
"""


class TidemarkError(Exception):
    """Base of all errors that tidemark raises on purpose."""


class UsageError(TidemarkError):
    """The request itself is wrong; the command line exits with 2."""


class UnknownName(UsageError):
    """No source, model, protocol or view of that name."""

    def __init__(self, kind: str, name: str, known: list[str], hint: str = "") -> None:
        # The arguments as they came, so that the error survives pickling between workers.
        super().__init__(kind, name, known, hint)
        choices = f"known: {', '.join(known)}" if known else ""
        self._message = "; ".join(filter(None, [f"unknown {kind} {name!r}", choices, hint]))

    def __str__(self) -> str:
        return self._message


class FutureMonth(UsageError):
    """The month is not over, so its text is not complete."""


class SourceError(TidemarkError):
    """A site did not give what its protocol promises."""


class SourceUnavailable(SourceError):
    """The site failed in a way that may pass; a later run may succeed."""


class ItemFailed(SourceUnavailable):
    """One address failed every time it was asked; ``reason`` is a reason of failure."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)  # both, so that it survives pickling
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


class SourceChanged(SourceError):
    """The site answered with something the parser does not know."""


class ItemUnavailable(SourceError):
    """One item cannot be had (gone, forbidden, too large); ``reason`` is a drop reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)  # both, so that it survives pickling
        self.reason = reason

    def __str__(self) -> str:
        return str(self.args[1])


class AccessRefused(SourceError):
    """Robots rules, a missing permission, or a host that is not on the allow-list."""


class TokenRefused(AccessRefused):
    """The site wants a token, or does not accept the one that was sent."""


class EmptyPartition(SourceError):
    """Nothing was kept for a month; the counts by reason are in the message."""


class MalformedInput(TidemarkError):
    """A file given by the user is not of the format it claims."""


class ModelError(TidemarkError):
    """A model cannot be used."""


class ModelLoadError(ModelError):
    """Weights or tokenizer are missing, unsafe or broken."""


class NotMeasurable(ModelError):
    """The model cannot be scored under this protocol (not a fault of the model's files)."""


class BatchTooLarge(ModelError):
    """A batch did not fit into the device's memory; the scorer has halved its budget."""


class BudgetReached(ModelError):
    """The run may spend no more on answers; what was answered is kept."""


class NotReproducible(ModelError):
    """A coded file needs another model, device or library than there is here."""


class StorageError(TidemarkError):
    """Reading or writing the data root failed."""


class DiskFull(StorageError):
    """No space is left; nothing half-written stays behind."""


class PartitionSealed(StorageError):
    """The partition is sealed with other content."""


class PartitionHeld(StorageError):
    """What was crawled failed a check and is held back; the message says which, and what to do."""


class OrchestrationError(TidemarkError):
    """The Prefect server does not answer, or refuses what is asked of it."""


class WarehouseError(TidemarkError):
    """Landing, publishing or querying failed."""


class SchemaMismatch(WarehouseError):
    """A table is not of its schema."""


class CellConflict(WarehouseError):
    """A cell is already landed with other losses."""


class CheckFailed(WarehouseError):
    """A snapshot failed its integrity checks."""
