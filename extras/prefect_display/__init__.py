"""Events, assets, tables and links of runs on the Prefect server; spans of OpenTelemetry."""
