"""Sources that forbid crawling, or whose texts are closed: crawled only with permission.

Each is a module with ``INFO`` and ``fetch_month``, as in ``crawlers``, and ``INFO.permission``
says why it is closed and which open source stands in. Default runs and deployments leave them out
(``registry.list_sources``). No response of these sites has been recorded for this project, so the
adapters are small: they read what a standard defines (a feed, a sitemap, JSON-LD), and raise
SourceChanged for a page without text.
"""
