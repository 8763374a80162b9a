"""Crawlers: fresh, dated text from one source a file.

Rules of this room:
- a source is one module that has ``INFO`` and ``fetch_month``; the folder is the registry, nothing
  else is edited to add one (see ``contract.py`` and docs/add-a-source.md);
- crawlers never import each other: what two of them need moves to a shared module of this room
  (``http.py``, ``mediawiki.py``, ``cleaning.py``, …);
- every item asked for is accounted for: it becomes a ``Document`` or a ``Drop`` with a reason;
- whatever comes from outside is hostile: sizes, times and hosts are capped by ``exchange.py``.
"""
