"""Converts promptfoo configurations: read with all their files, then translated piece by piece."""

from producer.convert.promptfoo.reading import fits
from producer.convert.promptfoo.translating import convert

__all__ = ["convert", "fits"]
