"""What the sample API says of itself: a page of text at `/`, and its models at `/v1/models`."""

from collections.abc import Sequence
from typing import Final

from producer.sample_api.bench_answers import CANNED_ANSWERS, CAPITALS
from producer.sample_api.knowledge import Passage
from producer.sample_api.models import COMPLETIONS, EMBEDDINGS
from shared.contracts.query_vocabulary import QUERY_ENDPOINT

MODELS: Final = "/v1/models"
MODEL_NAMES: Final = ("careful", "hasty-mini", "judge")
"""Examples: every name is answered."""


def index_text(url: str, chunks: Sequence[Passage]) -> str:
    """Returns the page at `/`.

    Args:
        url: where the API is served.
        chunks: of the knowledge base.
    """
    titles = sorted({chunk.title for chunk in chunks})
    return f"""\
Proctor's sample API: a RAG API and models to try evaluations with. No key, no network, no cost.

ROUTES
  POST {QUERY_ENDPOINT:<21} {{"query": "…"}}: an answer from the knowledge base, with citations
  POST {COMPLETIONS:<21} chat completions as in OpenAI's protocol, also streamed
  POST {EMBEDDINGS:<21} embeddings
  GET  {MODELS:<21} the models
  GET  {"/api/health":<21} whether it is up
  GET  {"/api/requests":<21} how often each query was asked

  curl {url}{QUERY_ENDPOINT} --json '{{"query": "How long is a binding tariff ruling valid?"}}'

  The header X-Sample-Behaviour makes one request misbehave, such as `429:retry_after=2` or `slow:seconds=2`.

MODELS
  Every name is answered, such as {", ".join(MODEL_NAMES)}. Those that end in -mini make mistakes.
  They call tools, refuse, reason, judge and grade. They answer:

  The capital of {", ".join(sorted(CAPITALS))}.
{"".join(f"  A prompt with: {each.about}{chr(10)}" for each in CANNED_ANSWERS)}
KNOWLEDGE BASE, for {QUERY_ENDPOINT}
{"".join(f"  {title}{chr(10)}" for title in titles)}
  `proctor run examples/copilot/data/evaluation_baselines.json --api-url {url}` asks fifty questions about it.
"""


def model_list() -> dict[str, object]:
    """Returns the models as OpenAI's protocol lists them."""
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "proctor"} for name in MODEL_NAMES]
    return {"object": "list", "data": data}
