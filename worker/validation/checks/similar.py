"""The paid check `similar`: the output means about the same as a text, by the cosine of their embeddings."""

import math
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Annotated, Any, Final

from pydantic import Field

from shared.contracts.checks import Check
from worker.validation.checks.kind import AsksEmbeddings, Score, no

MAX_CHARS: Final = 24_000
"""Characters of a text that are embedded; models take about 8,000 tokens; the score says so."""
ModelName = Annotated[str, Field(strict=True, min_length=1)]
SIMILAR_OPTIONS: Final[Mapping[str, Any]] = {"model": ModelName}


def texts_of(check: Check, text: str) -> tuple[str, str]:
    """The two texts to embed: the output and the one it is compared with.

    >>> texts_of(Check("similar", "It is Paris."), "Paris")
    ('Paris', 'It is Paris.')
    """
    return text[:MAX_CHARS], str(check.argument)[:MAX_CHARS]


def score_without_asking(text: str) -> Score | None:
    """The score of an output that no provider embeds; None of all others.

    >>> score_without_asking(" ").reason
    'the output is empty: it is similar to nothing'
    """
    return None if text.strip() else no("the output is empty: it is similar to nothing")


def similarity_score(check: Check, text: str, vectors: tuple[Sequence[float], Sequence[float]]) -> Score:
    """Scores the cosine of two embeddings; opposite texts score 0.

    >>> similarity_score(Check("similar", "b", options={"model": "m"}), "a", ([1.0, 0.0], [1.0, 1.0])).reason
    'cosine similarity 0.707'
    """
    cosine = cosine_of(*vectors)
    is_cut = max(len(text), len(check.argument)) > MAX_CHARS
    note = f", of the first {MAX_CHARS:,} characters" if is_cut else ""
    value = min(1.0, max(0.0, cosine))
    return Score(value, f"cosine similarity {cosine:.3f}{note}", {"model": check.options.get("model")})


SIMILAR: Final = AsksEmbeddings(texts_of, score_without_asking, similarity_score)


def cosine_of(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors; 0 where one has no direction.

    >>> cosine_of([3.0, 4.0], [6.0, 8.0]), cosine_of([1.0], [0.0])
    (1.0, 0.0)
    """
    lengths = math.hypot(*one) * math.hypot(*other)
    return math.fsum(map(mul, one, other)) / lengths if lengths else 0.0
