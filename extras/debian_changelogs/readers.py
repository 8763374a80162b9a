"""The format of this extra, and the files that are read as such."""

from __future__ import annotations

from extras.debian_changelogs.changelogs import is_changelog, read_changelog

FORMATS = {"changelogs": read_changelog}
CHOICES = {"changelogs": (is_changelog, "no file changelog*, such as changelog.Debian.gz")}
