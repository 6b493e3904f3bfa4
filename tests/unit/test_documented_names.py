"""Unit tests: the functions that users call by their documented names are there, whatever moves."""

from importlib import import_module
from typing import Final

import pytest

NAMES: Final = {
    "worker.breakpoint.engine": (
        "is_ack_only_message decide_breakpoint_action should_freeze_summary_at_peak MUST_SIGNAL_KINDS "
        "SHOULD_SIGNAL_KINDS BreakpointDecision BreakpointSignalKind extract_breakpoint_signal_kinds"
    ),
    "worker.breakpoint.affect": "rollup",
    "worker.validation.pipeline": "validate",
    "worker.validation.extraction": "extract_json_object",
    "worker.validation.schema": "SchemaValidator",
    "worker.validation.equality": "unordered_equal explain",
    "worker.validation.rouge": "rouge_l",
    "worker.validation.policy": "check_validator_source",
    "worker.queries.checks": "run_checks",
    "producer.aggregate.queries": "calculate_metrics",
    "producer.load.baselines": "load_baselines",
    "examples.copilot.scripts.evaluation_harness": "main load_baselines calculate_metrics run_checks",
}


@pytest.mark.parametrize("module", NAMES)
def test_documented_functions_have_their_modules(module: str) -> None:
    """Programs of users import them from there: they stay when the files around them move."""
    found = import_module(module)
    assert not [name for name in NAMES[module].split() if not hasattr(found, name)]
