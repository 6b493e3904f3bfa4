"""What the producer has of its own for runs of conversation turns."""
