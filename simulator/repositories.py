"""The repositories of the simulated GitHub: new repositories and trending repositories.

Each new repository has six Python modules with names of its month. Its history has the modules at
the month's end, and a complete rewrite ten days later. Crawlers must drop four repositories of each
month: one is empty, one is now deleted, one was under GPL at the month's end, and one has only
older commits. The trending repositories are the same in all months; only their READMEs change.
"""

from __future__ import annotations

import datetime as dt
import functools
import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.month import Month
from simulator.world import World

_COPYRIGHT = "Copyright (c) 2020 The authors\n\n"
_BSD = """Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:
1. Redistributions of source code must retain the above copyright notice.
2. Redistributions in binary form must reproduce the above copyright notice.
"""
LICENCES = {
    "MIT": f"""MIT License

{_COPYRIGHT}Permission is hereby granted, free of charge, to any person obtaining a copy
of this software, to deal in the Software without restriction, provided that the
above copyright notice and this permission notice shall be included.
""",
    "BSD-2-Clause": _COPYRIGHT + _BSD,
    "BSD-3-Clause": _COPYRIGHT
    + _BSD
    + """3. Neither the name of the copyright holder nor the names of its contributors may
be used to endorse or promote products derived from this software.
""",
    "GPL-3.0-only": "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n",
    "Apache-2.0": "Apache License\nVersion 2.0, January 2004\n",
}
MODULES = 6  # number of Python modules per new repository
# Languages besides Python that docs name, and the path of their only file.
LANGUAGES = {"cpp": "src/main.cpp", "javascript": "src/index.js", "markdown": "docs/guide.md"}
ODDITIES = ("empty", "gone", "relicensed", "imported")
TRENDING = 6
_FREE = ("MIT", "BSD-2-Clause", "BSD-3-Clause")
_DAY = dt.timedelta(days=1)
_SECOND = dt.timedelta(seconds=1)
_LINK = "120000"
_SUBMODULE = "160000"

Files = dict[str, tuple[str, bytes]]  # (file mode, content) by path


@dataclass(frozen=True)
class Entry:
    """A row of a git tree: a file, folder or submodule."""

    path: str
    mode: str
    kind: str
    sha: str
    size: int


@dataclass(frozen=True)
class Commit:
    """A git commit with the state of all files."""

    committed_at: dt.datetime
    files: Files

    @functools.cached_property
    def tree(self) -> str:
        """The tree's id."""
        return _sha(b"tree", "".join(f"{e.path} {e.sha}\n" for e in self.entries()).encode())

    @functools.cached_property
    def sha(self) -> str:
        """The commit's id."""
        return _sha(b"commit", f"{self.tree} {self.committed_at}".encode())

    def entries(self) -> list[Entry]:
        """Return all rows of the tree, including folders, sorted by path."""
        folders: dict[str, list[str]] = {}
        rows = []
        for path, (mode, data) in sorted(self.files.items()):
            kind = "commit" if mode == _SUBMODULE else "blob"
            rows.append(Entry(path, mode, kind, _sha(b"blob", data), len(data)))
            parts = path.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                folders.setdefault("/".join(parts[:depth]), []).append(rows[-1].sha)
        for folder, shas in folders.items():
            sha = _sha(b"tree", "".join(shas).encode())
            rows.append(Entry(folder, "040000", "tree", sha, 0))
        return sorted(rows, key=lambda row: row.path)


@dataclass
class Repository:
    """A GitHub repository: its present properties, and its history."""

    id: int
    name: str  # ``owner/repository``
    created_at: dt.datetime
    licence: str  # present licence on GitHub (SPDX id)
    description: str = ""
    language: str = "Python"
    stars: int = 0
    is_gone: bool = False
    history: Callable[[], list[Commit]] = list  # function that creates the commits

    @functools.cached_property
    def commits(self) -> list[Commit]:
        """All commits, newest first."""
        return sorted(self.history(), key=lambda commit: commit.committed_at, reverse=True)


def _sha(kind: bytes, data: bytes) -> str:
    header = kind + b" %d\0" % len(data)
    return hashlib.sha1(header + data, usedforsecurity=False).hexdigest()


def new_repositories(world: World, month: Month) -> list[Repository]:
    """Return the repositories created in a month of the world."""
    count = max(2, world.stories_per_month // MODULES) + len(ODDITIES)
    return [_new_repository(world, month, number, count) for number in range(count)]


def _new_repository(world: World, month: Month, number: int, count: int) -> Repository:
    """Return repository ``number`` of a month; the last ones are odd."""
    names = [name.lower() for name in world.names(month)]
    owner = names[number % len(names)]
    topic = names[(number * 7 + 3) % len(names)]
    is_odd = number >= count - len(ODDITIES)
    oddity = ODDITIES[number - count + len(ODDITIES)] if is_odd else ""
    step = (month.end - month.start - _SECOND) / (count - len(ODDITIES) - 1)
    # The first and last ordinary repositories are created in the month's first and last second.
    offset = 14 * _DAY if is_odd else number * step
    created_at = (month.start + offset).replace(microsecond=0)
    licence = _FREE[number % len(_FREE)]
    return Repository(
        id=10_000 * (month.start.year * 12 + month.start.month - 24_000) + number,
        name=f"{owner}/{topic}-tools-{number}",
        created_at=created_at,
        licence=licence,
        description=f"Tools for the records of {topic.title()}",
        stars=(number * 37) % 101,
        is_gone=oddity == "gone",
        history=functools.partial(_history, world, month, number, created_at, oddity),
    )


def repositories_of_subsets(world: World, month: Month) -> list[Repository]:
    """Return a repository created in a month for each language of ``LANGUAGES``."""
    made = []
    for number, language in enumerate(LANGUAGES):
        created_at = month.start + (number + 3) * _DAY
        made.append(
            Repository(
                id=20_000_000 + 10 * (month.start.year * 12 + month.start.month) + number,
                name=f"{language}-guild/{month}-{language}",
                created_at=created_at,
                licence="MIT",
                description=f"Notes of {month}",
                language=language,
                history=functools.partial(_one_commit, world, month, number, language, created_at),
            )
        )
    return made


def _one_commit(
    world: World, month: Month, number: int, language: str, created_at: dt.datetime
) -> list[Commit]:
    """Return the single commit of a repository in another language than Python."""
    story = world.story(month, f"github_new:{language}", number)
    begin = "" if language == "markdown" else "// "
    lines = [story.title, *" ".join(story.paragraphs).split(". ")]
    text = "".join(f"{begin}{line.strip()}\n" for line in lines)
    files: Files = {
        "LICENSE": ("100644", LICENCES["MIT"].encode()),
        LANGUAGES[language]: ("100644", text.encode()),
    }
    return [Commit(created_at, files)]


def _history(
    world: World, month: Month, number: int, created_at: dt.datetime, oddity: str
) -> list[Commit]:
    """Return the commits of a repository: its first files, and a change after the month."""
    if oddity in ("empty", "gone"):
        return []
    licence = _FREE[number % len(_FREE)]
    files = _new_files(world, month, number, licence)
    if oddity == "relicensed":
        files["LICENSE"] = ("100644", LICENCES["GPL-3.0-only"].encode())
    if oddity == "imported":
        return [Commit(created_at - 400 * _DAY, files)]
    later = {path: (mode, b"# rewritten since\n" + data) for path, (mode, data) in files.items()}
    later["LICENSE"] = ("100644", LICENCES[licence].encode())
    return [Commit(created_at, files), Commit(month.end + 10 * _DAY, later)]


def module_texts(world: World, month: Month, number: int) -> dict[str, str]:
    """Return the modules of repository ``number`` of a month at the month's end, by path."""
    numbers = range(MODULES * number, MODULES * number + MODULES)
    return {f"src/tools/part_{n}.py": world.module(month, "github_new", n) for n in numbers}


def _new_files(world: World, month: Month, number: int, licence: str) -> Files:
    """Return a repository's files; most are of kinds that no crawl may keep."""
    texts = module_texts(world, month, number)
    first = next(iter(texts.values()))
    plain = {
        **texts,
        "LICENSE": LICENCES[licence],
        "README.md": f"# Tools of {month}\n",
        "data/table.csv": "a,b\n1,2\n" * 50,
        "package-lock.json": '{"lockfileVersion": 3}\n',
        "src/_vendor/copy.py": first,
        "src/made.py": f"# Generated by a tool. DO NOT EDIT.\n{first}",
        "src/packed.py": f"DATA = {'0,' * 600!r}\n",
        "notes.ipynb": '{"cells": [{"outputs": ["0"]}]}\n',
    }
    files: Files = {path: ("100644", text.encode()) for path, text in plain.items()}
    files["src/binary.py"] = ("100644", b"x = 1\0\n" * 20)
    files["src/large.py"] = ("100644", b"x = 1\n" * 200_000)
    files["src/link.py"] = (_LINK, b"/etc/passwd")
    files["libs/sub.py"] = (_SUBMODULE, b"")
    return files


def trending_repositories(world: World) -> list[Repository]:
    """Return the trending repositories, the same for every month, in the order of the list."""
    names = [name.lower() for name in world.names(world.first)]
    licences = ("MIT", "BSD-3-Clause", "Apache-2.0", "BSD-2-Clause", "MIT", "MIT")
    return [
        Repository(
            id=900_000 + number,
            name=f"{names[number]}/{names[number + 5]}",
            created_at=world.first.start - 100 * _DAY,
            licence=licences[number],
            description=f"The workshop of {names[number].title()}",
            stars=20_000 - 1_000 * number,
            history=functools.partial(_trending_history, world, number, licences[number]),
        )
        for number in range(TRENDING)
    ]


def _trending_history(world: World, number: int, licence: str) -> list[Commit]:
    """Return a repository's commits; repository 3 has no README, repository 4 has README.rst."""
    files: Files = {"LICENSE": ("100644", LICENCES[licence].encode())}
    commits = [Commit(world.first.start - 100 * _DAY, files)]
    for index, month in enumerate(world.months):
        if number == 4 and index % 2:
            continue
        path = {3: "docs/index.md", 4: "README.rst"}.get(number, "README.md")
        text = readme(world, month, number)
        commits.append(Commit(month.start + 9 * _DAY, {**files, path: ("100644", b"# Soon\n")}))
        commits.append(Commit(month.end - _SECOND, {**files, path: ("100644", text.encode())}))
    return commits


def readme(world: World, month: Month, number: int) -> str:
    """Return a trending repository's README at a month's end, with badges and HTML."""
    story = world.story(month, "github_trending", number)
    name = story.title.split(" ")[0].lower()
    if number == 4:
        return "\n\n".join([story.title, f".. image:: {name}.svg", *story.paragraphs]) + "\n"
    head = [
        f'<p align="center"><img src="https://example.org/{name}.png" width="200"></p>',
        f"# {story.title}",
        f"[![Build](https://example.org/{name}.svg)](https://example.org/{name}) ![PyPI](a.svg)",
        "<!-- the description is kept in two places -->",
    ]
    usage = ["## Installation", f"```bash\npip install {name}\n```", "## Usage"]
    body = [story.paragraphs[0], *usage, *story.paragraphs[1:]]
    return "\n\n".join([*head, *body, f"See the [guide](https://example.org/{name}).\n"])


def tarball(repository: Repository, commit: Commit) -> bytes:
    """Return a commit as codeload does: a gzip-compressed tar with one top folder."""
    buffer = io.BytesIO()
    top = f"{repository.name.replace('/', '-')}-{commit.sha[:7]}"
    with tarfile.open(fileobj=buffer, mode="w", pax_headers={"comment": commit.sha}) as archive:
        for path, (mode, data) in sorted(commit.files.items()):
            info = tarfile.TarInfo(f"{top}/{path}")
            if mode == _SUBMODULE:
                info.type = tarfile.DIRTYPE
            elif mode == _LINK:
                info.type = tarfile.SYMTYPE
                info.linkname = data.decode()
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if info.size else None)
    return gzip.compress(buffer.getvalue(), 1)


HOSTILE = ("parent", "absolute", "links", "many", "bomb", "cut")


def hostile_tarball(kind: str) -> bytes:
    """Return a malicious archive; HOSTILE lists the values of ``kind``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, size in _hostile_members(kind):
            info.size = size
            archive.addfile(info, io.BytesIO(bytes(size)) if size else None)
    packed = gzip.compress(buffer.getvalue(), 1)
    return packed[: len(packed) // 2] if kind == "cut" else packed


def _hostile_members(kind: str) -> Iterator[tuple[tarfile.TarInfo, int]]:
    """Yield members of an archive that must not be unpacked, with their sizes."""
    if kind == "links":
        for number, type_ in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(f"top/{number}.py")
            info.type = type_
            info.linkname = "/etc/passwd"
            yield info, 0
    names = {"parent": "top/../../x.py", "absolute": "/tmp/x.py", "bomb": "top/x.py"}  # noqa: S108
    count = 2_500 if kind == "many" else 1
    for number in range(count):
        size = 2**27 if kind == "bomb" else 8
        yield tarfile.TarInfo(names.get(kind, f"top/x{number}.py")), size
