"""The queries engine of the harness document, pure: replies read, answers checked, retries decided."""
