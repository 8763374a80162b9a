"""Shared definitions for all packages of the repository.

Record schemas, months, settings, errors, storage, and the paths of corpus and loss files.
Rules of this package: it imports no other package of tidemark and does no I/O at import. Only
``core/settings.py`` reads environment variables.
"""
