"""What the producer has of its own for runs of single items, for kinds without documents of their own."""
