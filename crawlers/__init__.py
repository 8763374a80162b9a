"""Crawlers that fetch newly published, dated text; each source is one module.

The package has these layers, from top to bottom. A layer imports only layers below it, which
import-linter checks (pyproject.toml):

- the sources (one module each), and ``crawling``, which runs them;
- ``apis`` (one client per site that several sources share), ``imports``, ``questions``;
- ``hygiene`` (compares all documents of a month with each other);
- ``text`` (converts formats to plain text);
- ``web``, ``git`` and ``browser`` (network access).

All layers above ``web`` share ``contract`` and ``crawling.manifest``. These modules define
sources, items, item counts, and the checks that can prevent the sealing of a month.

Rules of this package:

- A source is one module that has ``INFO`` and ``fetch_month``. Such modules in this folder
  are found automatically (docs/add-a-source.md).
- No source imports another. Put code that two sources need into a shared module.
- Count every requested item as a ``Document``, ``Drop``, ``Failure`` or ``Repeat``.
- Treat all downloaded data as hostile. ``web/exchange.py`` limits sizes, times and hosts.
  ``web/values.py`` parses JSON, and ``apis/fields.py`` checks its fields.
"""
