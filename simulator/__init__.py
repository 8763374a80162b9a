"""A small web on loopback that speaks each source's own protocol.

Its sites (``sites/<site>.py``) are fed by one deterministic ``World`` in which new names appear
every month, so that a model trained up to a month cannot know the names of the next. It stands in
for the real web in tests, in the demo and in benchmarks; crawlers are pointed at it through the
``sites`` setting and know nothing of it. Rules of this room: it imports core only, and a site never
imports another site.
"""
