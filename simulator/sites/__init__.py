"""The simulated sites, one per file; each has a class ``Site`` (see ``simulator/server.py``)."""
