"""`proctor sample-api`: serves a small API to evaluate, with its own knowledge base, until Ctrl-C."""

import os

import click

from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from producer.sample_api import DEFAULT_PORT

LOOPBACK = "127.0.0.1"  # as in producer.sample_api.server, which would cost aiohttp's start-up
DEFAULT_LATENCY_MS = 300
"""About what a small model takes for a sentence."""
MAX_LATENCY_MS = 60_000


@declare()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one."
)
@click.option("--host", default=LOOPBACK, show_default=True, help="The address to listen on.")
@click.option(
    "--behaviour",
    metavar="NAME",
    help="Misbehave: 429:retry_after=2,every=10, 500, slow:seconds=2, wrong, html, half, reset, silent, …"
    " [env PROCTOR_SAMPLE_API_BEHAVIOUR].",
)  # fmt: skip - one option, one paragraph
@click.option(
    "--latency-ms",
    type=click.IntRange(0, MAX_LATENCY_MS),
    default=DEFAULT_LATENCY_MS,
    show_default=True,
    help="How long an answer takes, about.",
)  # fmt: skip - one option, one paragraph
@pass_session
def command(session: Session, *, port: int, host: str, behaviour: str | None, latency_ms: int) -> int:
    """Serve the sample API: POST /api/query answers from a small knowledge base, and models answer at /v1.

    The knowledge base is about freight forwarding. The API cites its sources, declines other questions, and
    can simulate failures. The packaged baselines (examples/copilot/data/evaluation_baselines.json) match it.
    The models answer the packaged benches (`proctor init --kind cases`) under any name; they call tools,
    refuse, judge and embed. Models whose names end in -mini make mistakes. The page at / lists the routes and
    everything that is answered.
    """
    from producer.sample_api.behaviour import chosen_behaviour  # noqa: PLC0415 - start-up: `--help` is quick
    from producer.sample_api.pace import Pace  # noqa: PLC0415 - start-up
    from producer.sample_api.server import serve  # noqa: PLC0415 - start-up: aiohttp costs 150 ms

    chosen = chosen_behaviour(behaviour, os.environ)

    def print_url(url: str) -> None:
        how = "" if chosen.name == "normal" else f", behaving {behaviour or 'as configured'}"
        session.output.data(f"sample API at {url}{how}; Ctrl-C ends it")

    serve(port, chosen, host=host, pace=Pace.of(latency_ms), on_ready=print_url)
    return 0
