"""Simulated web sites on loopback that implement the API of each source.

One deterministic text generator (``World``) provides the content of all sites (``sites/``). Every
month has new names, which a model trained on earlier months cannot know. The simulator replaces the
real web in tests, in the demo and in benchmarks. The ``sites`` setting points crawlers to the
simulator; crawlers contain no code for it. This package imports only core.
"""
