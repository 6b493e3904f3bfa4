"""How items and results are stored and sent: bytes on one side, values on the other."""
