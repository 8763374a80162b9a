"""Commands of ``git fast-import`` that make the history of a simulated repository."""

from __future__ import annotations

import datetime as dt


def write_file(path: str, text: str, mode: str = "100644") -> bytes:
    """Return the command that writes a file, in a commit."""
    data = text.encode()
    return f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n"


def commit(
    branch: str, moment: dt.datetime, *changes: bytes, parent: str = "", merged: str = ""
) -> bytes:
    """Return the command for a commit with changes; author and committer are the same."""
    lines = [
        f"commit refs/heads/{branch}",
        f"committer Simulated <sim@example.org> {int(moment.timestamp())} +0000",
        "data 0",
        *([f"from {parent}"] if parent else []),
        *([f"merge {merged}"] if merged else []),
    ]
    return "\n".join([*lines, ""]).encode() + b"".join(changes)
