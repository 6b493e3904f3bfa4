"""A small RAG API to evaluate: answers from the packaged knowledge base, and misbehaves on request."""

from typing import Final

DEFAULT_PORT: Final = 3000
"""Where it listens, and where the examples call it."""
