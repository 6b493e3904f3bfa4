"""Thin Celery tasks that introduce the ledger to the engines."""
