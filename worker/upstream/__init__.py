"""The discipline of everything that leaves the machine: limits, retry, breaker, budget, cache and clients.

failures, headers, retry     what went wrong, and what follows it: pure
gate                         the one door for a call: limits, breaker, time limit, pause and cancel
api                          the client for the API under test
"""
