"""Files that a user names, which must be regular files."""

from __future__ import annotations

from pathlib import Path

from core.errors import MalformedInput


def require_regular(path: Path) -> None:
    """Refuse a named pipe, a device or a socket, which may never end, or never begin.

    A link to a regular file is accepted. A missing file is left to the reader.

    Raises:
        MalformedInput: the path is a pipe, a device or a socket.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise MalformedInput(
            f"{path} is a pipe, a device or a socket, and no regular file; write its content to a "
            "file, and give that file"
        )
