"""Limits of a function, a module and a folder (docs/adr/0049-concepts-instead-of-lines.md).

Nothing limits the size of the whole: a limit of lines folds code instead of removing it.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tools.files import is_product, list_files, read

MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 400
MAX_FOLDER_FILES = 20


def faults() -> list[str]:
    """Return a fault for each size above a limit, and for each module without a docstring."""
    files = [file for file in list_files() if is_product(file)]
    found = folder_faults(files)
    for file in files:
        found += file_faults(str(file), read(file))
    return found


def folder_faults(files: list[Path]) -> list[str]:
    """Return a fault for each folder that has too many modules."""
    counts = Counter(file.parent for file in files)
    return [
        f"{folder}: {count} modules, at most {MAX_FOLDER_FILES}: make a folder for a part of them"
        for folder, count in sorted(counts.items())
        if count > MAX_FOLDER_FILES
    ]


def file_faults(where: str, source: str) -> list[str]:
    """Return the faults of one module; ``where`` is its name for messages."""
    tree = ast.parse(source)
    found = []
    num_lines = source.count("\n")
    if not ast.get_docstring(tree):
        found.append(f"{where}:1: no docstring says what the module is")
    if num_lines > MAX_MODULE_LINES:
        found.append(f"{where}:1: {num_lines} lines, at most {MAX_MODULE_LINES}: divide the module")
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                found.append(
                    f"{where}:{node.lineno}: {node.name} has {length} lines, "
                    f"at most {MAX_FUNCTION_LINES}: divide the function"
                )
    return found
