"""What producers and workers both know of model providers and APIs: addresses, limits, prices, costs."""
