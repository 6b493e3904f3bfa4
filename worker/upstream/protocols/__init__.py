"""The protocols in which models are called at an `api_base`, each a module of pure functions."""
