"""The evaluation harness document's program, run through the queue: `evaluation-harness`."""
