"""Jinja2 templates: prompts are rendered at submission, bodies of HTTP applications where they are sent."""
