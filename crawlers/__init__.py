"""Crawlers: fresh, dated text; one source per file.

Layers, from the top. Each imports only layers below it (a contract in pyproject.toml):

- the sources (one module each), ``crawl``, which runs them, and ``takedown``;
- ``apis`` (one client per site that several sources share), ``imports``, ``questions``;
- ``hygiene`` (compares all documents of a month with each other);
- ``text`` (converts formats to plain text);
- ``web``, ``git`` and ``browser`` (network access).

All layers above ``web`` share ``contract``, ``manifest`` and ``checks``. These define sources,
items, item counts, and the checks that hold a month back.

Rules of this package:

- A source is one module that has ``INFO`` and ``fetch_month``. The folder is the registry
  (docs/add-a-source.md).
- No source imports another. Code that two sources need moves to a shared module.
- Count every requested item as a ``Document``, ``Drop``, ``Failure`` or ``Repeat``.
- Treat all input from outside as hostile: ``web/exchange.py`` caps sizes, times and hosts.
"""
