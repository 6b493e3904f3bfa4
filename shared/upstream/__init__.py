"""Model providers and APIs, for producers and workers: addresses, limits, prices, costs."""
