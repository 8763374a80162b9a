"""Readers of files of the web: WARC and WET files of web archives, and EPUB books."""
