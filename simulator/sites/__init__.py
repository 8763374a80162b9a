"""The simulated sites, one a file; each has a class ``Site`` (see ``simulator/server.py``)."""
