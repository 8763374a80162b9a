"""Safe reading of untrusted git repositories."""
