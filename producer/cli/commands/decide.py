"""`proctor decide TEXT`: applies the breakpoint rules to one message locally."""

import sys

import click

from producer.cli.options.global_options import command as declare
from producer.cli.output import Style
from producer.cli.session import Session, pass_session
from shared.contracts.turn_vocabulary import (
    MAX_MESSAGE_CHARS,
    AffectPhase,
    IntensityBucket,
    ThreadMementoSignalKind,
)
from shared.errors import InputError
from worker.breakpoint.engine import Explanation, explain

_STYLES: dict[str, Style] = {"must": "red", "should": "yellow", "skip": "dim"}


def _words(explanation: Explanation, session: Session, phase: str | None, intensity: str | None) -> str:
    """Formats a decision with its reason and its effect on the summary."""
    paint = session.output.paint
    decision = paint(str(explanation.decision), "bold", _STYLES[explanation.decision])
    lines = [f"{decision}  rule {explanation.rule}: {explanation.reason}"]
    if phase or intensity:
        place = ", ".join(filter(None, [phase, f"{intensity} intensity" if intensity else None]))
        effect = "the summary is frozen" if explanation.freeze else "the summary may change"
        lines.append(f"{paint('guardrail', 'dim')}  {place}: {effect}")
    return "\n".join(lines)


@declare()
@click.argument("text")
@click.option(
    "--signal",
    "signals",
    multiple=True,
    type=click.Choice([kind.value for kind in ThreadMementoSignalKind]),
    metavar="KIND",
    help="A signal that comes with the message; may be repeated. "
    f"One of {', '.join(ThreadMementoSignalKind)}.",
)  # fmt: skip - one option, one paragraph
@click.option("--pressure", is_flag=True, help="The context window is nearly full.")
@click.option("--drift", is_flag=True, help="The conversation may be drifting.")
@click.option("--summary-changed", is_flag=True, help="The summary was changed from outside.")
@click.option(
    "--phase",
    type=click.Choice([phase.value for phase in AffectPhase]),
    help="Where the thread's emotion is heading.",
)
@click.option(
    "--intensity",
    type=click.Choice([bucket.value for bucket in IntensityBucket]),
    help="How strong the emotion is.",
)
@pass_session
def command(
    session: Session,
    *,
    text: str,
    signals: tuple[str, ...],
    pressure: bool,
    drift: bool,
    summary_changed: bool,
    phase: str | None,
    intensity: str | None,
) -> None:
    """Classify the message TEXT (`-`: stdin) locally, without a queue.

    Prints the decision, the rule that made it, and with --phase or --intensity whether the summary freezes.
    """
    if text == "-":
        text = sys.stdin.read().removesuffix("\n")
    if len(text) > MAX_MESSAGE_CHARS:
        raise InputError(
            f"the message has {len(text):,} characters, at most {MAX_MESSAGE_CHARS:,} are allowed",
            hint="a turn is one message; cut the text",
        )
    explanation = explain(
        text,
        signals,
        context_window_pressure=pressure,
        drift_risk=drift,
        summary_changed=summary_changed,
        phase=phase,
        intensity_bucket=intensity,
    )
    if not session.options.json:
        session.output.data(_words(explanation, session, phase, intensity))
        return
    from producer.service_documents import DecideDocument  # noqa: PLC0415 - start-up: only `--json` needs it

    document = DecideDocument(
        decision=explanation.decision.value,
        rule=explanation.rule,
        reason=explanation.reason,
        ackOnly=explanation.ack,
        peakGuardrailActive=explanation.freeze,
    )
    session.output.document(document)
