"""Executes chunks of items: entry point, engines, upstream clients and Celery tasks."""
