"""Models that bring their own code, in a confined process."""
