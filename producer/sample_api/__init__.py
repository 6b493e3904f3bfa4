"""A small RAG API to evaluate: answers from the packaged knowledge base, and misbehaves on request."""
