"""Metrics of a data root for Prometheus."""
