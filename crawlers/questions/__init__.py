"""Crawlers of forecasting questions, and imports of published ones.

A source is one file here with ``INFO`` and ``fetch_questions`` (``contract.py``); ``crawl.py``
seals what it gives by the month of resolution. Sources never import each other.
"""
