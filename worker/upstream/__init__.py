"""Everything that leaves the machine: limits, retries, circuit breaker, budget, cache and clients.

stack                          puts it together for one process
gate, limiter                  one call: limits, breaker, time limit, permit
model_caller, cache, budget    model calls, with what only they need
model_clients, query_client    the clients; litellm_client makes the calls of named providers
failures, retry, retry_after   what went wrong, and when to try again
http_session, egress, proxies  which places may be called, and how
"""
