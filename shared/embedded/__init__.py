"""A local Redis server for people who have none: found, started, guarded and stopped for them."""
