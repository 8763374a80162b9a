"""Crawlers of forecasting questions, and imports of published ones.

A source is one module with ``INFO`` and ``fetch_questions`` (``contract.py``). ``crawl.py`` seals
its questions by month of resolution. Sources never import each other.
"""
