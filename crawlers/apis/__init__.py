"""Clients of web APIs that several crawlers share, one module per site."""
