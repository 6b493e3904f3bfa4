"""The Celery tasks."""
