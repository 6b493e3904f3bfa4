"""The engine of the harness specification, pure: replies read, answers checked, retries decided."""
