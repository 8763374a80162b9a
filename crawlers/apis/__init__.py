"""API clients that several sources share, one per site."""
