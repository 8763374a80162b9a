"""`tidemark models add`."""

from __future__ import annotations

from pydantic import ValidationError

from core.errors import UsageError
from core.settings import Settings
from models.catalogue import ModelEntry, add_model


def add_to_catalogue(settings: Settings, replace: bool, **fields: object) -> ModelEntry:
    """Add a model to the user's catalogue.

    Args:
        settings: say where it is.
        replace: put the entry in place of one of the same name.
        fields: of ModelEntry, as text; those that are None are left out. A cutoff counts as stated
            by the model's makers, to the month.

    Raises:
        UsageError: a field is not valid, or the name is taken.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if "cutoff" in given:
        given |= {"cutoff_provenance": "stated", "cutoff_precision": "month"}
    try:
        entry = ModelEntry(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise UsageError(f"not a valid model: {problems}") from error
    add_model(entry, settings, replace)
    return entry
