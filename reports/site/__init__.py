"""The site: static pages of the published figures, for readers without SQL.

``pages/`` has one module per kind of page, which queries the public views and returns ``Page``
objects. ``build`` writes the pages and, for each figure, its addresses (CSV, JSON, metadata, SVG,
PNG, SQL). No module here computes a statistic: figures come from views, titles state them.
"""
