"""Counters and traces of the whole fleet."""
