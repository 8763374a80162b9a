"""The record types as Arrow schemas."""
