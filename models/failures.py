"""What transformers and its like raise on files that are not what they should be."""

from __future__ import annotations

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError

MODEL_FAILURES = (
    SafetensorError, StrictDataclassError, OSError, ValueError, TypeError, LookupError,
    AttributeError, RuntimeError, ImportError, AssertionError, ArithmeticError, MemoryError,
)  # fmt: skip


def first_line(error: BaseException) -> str:
    """Return an error's kind and the first line of what it says."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()[:300]}" if lines else type(error).__name__
