"""Functions that judge outputs: each takes the text and returns True, False, or a pair with the reason.

They run in a locked process of their own: no files, no network, and only these imports are allowed: ast, re,
json, math, string, datetime, collections, itertools, functools, operator, typing.
"""

import ast
import re

FENCED = re.compile(r"```[\w+-]*\n(.*?)(?:```|\Z)", re.DOTALL)
SQL_KEYWORDS = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE)\b", re.IGNORECASE)
MINIMUM_LENGTH = 100


def is_valid_python(output: str) -> tuple[bool, str]:
    """Accepts Python that parses: the first fenced block, or the whole text where there is none."""
    block = FENCED.search(output)
    code = block.group(1) if block else output
    try:
        ast.parse(code)
    except SyntaxError as error:
        return False, f"no valid Python: {error.msg}, line {error.lineno}"
    return True, "valid Python"


def contains_sql_keywords(output: str) -> bool:
    """Accepts text with at least one keyword of SQL, as a word of its own."""
    return SQL_KEYWORDS.search(output) is not None


def has_minimum_length(output: str) -> tuple[bool, str]:
    """Accepts texts of at least 100 characters."""
    length = len(output)
    if length < MINIMUM_LENGTH:
        return False, f"{length} characters, at least {MINIMUM_LENGTH} are needed"
    return True, f"{length} characters"
