"""What the producer has of its own for runs of queries."""
