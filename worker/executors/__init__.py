"""Chunks of each kind, executed: what stands between the ledger and the engines."""
