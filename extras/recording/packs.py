"""Mirrors in recordings: what a crawl has of each repository, as a pack of git's objects.

A bundle of git needs the contents of all files, and a mirror has those of one month. So a recording
has the objects themselves, ``owner+name.pack``, and beside it the branch and its last commit.
"""

from __future__ import annotations

import json
from pathlib import Path

from crawlers.git.binary import WHOLE, Git


def save_mirrors(git: Git, root: Path, target: Path) -> list[str]:
    """Save each whole mirror below a folder of scratch files; return the repositories' names.

    Commits have their authors' names and addresses. Raise StorageError for a damaged mirror.
    """
    names = []
    for mark in sorted(root.glob(f"*/*/*.git/{WHOLE}")):
        mirror = mark.parent
        name = f"{mirror.parent.name}/{mirror.name.removesuffix('.git')}"
        target.mkdir(parents=True, exist_ok=True)
        branch = git.local(mirror, "symbolic-ref", "HEAD").decode().strip()
        commit = git.local(mirror, "rev-parse", branch).decode().strip()
        oids = git.local(
            mirror, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered"
        )
        stem = target / name.replace("/", "+")
        made = git.local(mirror, "pack-objects", "--quiet", str(stem), stdin=oids).decode().strip()
        Path(f"{stem}-{made}.idx").unlink()
        Path(f"{stem}-{made}.pack").rename(f"{stem}.pack")
        facts = {"repository": name, "branch": branch, "commit": commit}
        Path(f"{stem}.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        names.append(name)
    return names
