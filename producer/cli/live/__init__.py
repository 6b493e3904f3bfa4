"""What is shown while a run or the fleet goes on: progress, events, limits."""
