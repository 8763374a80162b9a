"""Data roots in an object store, such as ``s3://bucket/prefix``."""
