"""Metrics of the whole fleet for Prometheus, read from Redis at each scrape."""
