"""Clients of model servers (likelihoods and chat), with budgets and stored responses."""
