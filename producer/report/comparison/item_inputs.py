"""Hashes what was asked of each item of a run and how it was judged, so that two runs can be compared."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from producer.aggregate.compared_items import Inputs, Known, inputs_of_messages
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_hashes import answer_hash, call_hash, hash_of, judging_hash, verdict_hash
from shared.contracts.case_run import CaseRun, decode_case
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.sent_messages import messages_as_sent
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.runs import RunInfo, TurnRow

Read = Callable[[Any], Known | None]
"""Returns of a row what a line of results does not contain."""

HOW_FAST: Final = frozenset(
    {"concurrency", "together", "delay_s", "owner", "continues", "start_from", "offset"}
)
"""Settings of queries that decide neither what is sent nor how it is judged."""
CRITERIA_OF_QUERY: Final = (
    "is_oos",
    "expected_docs",
    "must_contain",
    "must_not_contain",
    "oos_decline_signals",
)
OWN_NAMES: Final = frozenset({"clientRequestId"})
"""Keys of a turn that decide nothing."""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def case_inputs(info: RunInfo) -> Read:
    """Reads cases: what was sent, by which system message and criteria."""
    run = CaseRun.from_snapshot(info.snapshot)
    call, judging = cache(lambda model, prompt: call_hash(run, model, prompt)), judging_hash(run)

    def read(row: ItemRow) -> Known:
        case = decode_case(row.payload)
        template = run.templates.get(case.prompt_id or "")
        is_rendered = template is not None and template.messages is not None
        own = None if is_rendered else (case.input, case.messages)
        sent = inputs_of_messages(
            messages_as_sent(case, run.system_prompt, [f"sha256:{name}" for name in case.images])
        )
        recorded = None if case.recorded is None else msgspec.to_builtins(case.recorded)
        inputs = Inputs(
            asked=sent.asked,
            system=hash_of(case.system),
            instructed=sent.instructed,
            given=hash_of(case.vars, run.shared_vars, case.images, own),
            recorded=b"" if recorded is None else hash_of(recorded),
            expected=verdict_hash(case),
            sent=answer_hash(case, run.system_prompt, call(case.model, case.prompt_id)),
            judged=verdict_hash(
                case, hash_of(judging.hex(), case.vars, run.shared_vars) if run.validators else judging
            ),
        )
        return Known(inputs, case.weight)

    return read


def query_inputs(info: RunInfo) -> Read:
    """Reads queries: the text, and what a good answer contains."""
    settings = msgspec.to_builtins(QueryRun.from_snapshot(info.snapshot))
    call = {name: value for name, value in settings.items() if name not in {*HOW_FAST, "fold_apostrophes"}}

    def read(row: ItemRow) -> Known:
        query = _decode(row.payload)
        criteria = [query.get(name) or None for name in CRITERIA_OF_QUERY]
        text = query.get("query")
        return Known(
            Inputs(
                asked=hash_of(text),
                expected=hash_of(criteria),
                sent=hash_of(text, call),
                judged=hash_of(criteria, settings["places"], settings["fold_apostrophes"]),
            )
        )

    return read


def turn_inputs(info: RunInfo) -> Read:
    """Reads turns: the whole line of the input decides, and the model where there is one."""
    live = LiveRun.from_snapshot(info.snapshot)
    policy = (info.snapshot.get("summary_policy"), bool(info.snapshot.get(SIGNALS_ONCE)))
    settings = (policy, msgspec.to_builtins(live))

    def read(row: TurnRow) -> Known | None:
        if not row.payload:
            return None
        line = {name: value for name, value in _decode(row.payload).items() if name not in OWN_NAMES}
        alike = hash_of("judged by rules")
        return Known(Inputs(asked=hash_of(line), expected=alike, sent=hash_of(line, settings), judged=alike))

    return read
