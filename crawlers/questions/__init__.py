"""Crawlers of forecasting questions, and imports of published question files.

A source is one module with ``INFO`` and ``fetch_questions`` (``contract.py``). ``crawl.py`` seals
its questions by the month of their resolution. Source modules never import each other.
"""
