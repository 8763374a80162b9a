"""The corpus: sealed partitions and their versions, tombstones, permissions, sealed questions."""
