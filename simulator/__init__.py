"""A small web on loopback that implements each source's own protocol.

One deterministic ``World`` provides the content of all sites (``sites/<site>.py``). New names
appear every month: a model trained up to a month cannot know the names of the next. The simulator
replaces the real web in tests, in the demo and in benchmarks. The ``sites`` setting points crawlers
to it; crawlers contain no code for it. Rules of this package: it imports core only, and a site
never imports another site.
"""
