"""Open sources that publish a file a month or a year; otherwise as those of ``crawlers``."""
