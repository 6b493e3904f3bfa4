"""JSON Schemas of what Proctor prints, writes and reads, made from pydantic models: see `catalog`."""
