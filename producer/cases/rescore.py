"""Writes the stored answers of a cases run as a bench with recorded outputs, to judge them again.

A rescored run is a run of its own: the first one stays as it was, and the two can be compared.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from producer import kinds
from producer.cases.report.opened_rows import OpenedCase, opened
from shared.codecs.item_rows import CACHED
from shared.contracts.case_hashes import CaseHashes
from shared.contracts.case_run import CasePayload, CaseRun, read_shared_vars
from shared.contracts.checks import Check, Transform
from shared.errors import UsageError
from shared.ledger.ledger import texts_forgotten
from shared.runs import RunInfo, RunStore
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice

RENDERED: Final = "rendered_prompts"
"""The variable of a rescored case that has what its prompts were rendered to, by their ids."""


class Rewritten(NamedTuple):
    """The files."""

    config: Path
    """The bench; a new one where that was given."""
    outputs: Path
    """The recorded answers."""
    hashes: Mapping[int, CaseHashes]
    """Those of the cases by position: what is judged again is the same case; empty for another bench."""


def rewrite(store: RunStore, info: RunInfo, folder: Path, config: Path | None = None) -> Rewritten:
    """Writes what is needed to judge the answers of a run again.

    Args:
        store: reads the run.
        info: the run.
        folder: where to write.
        config: a bench whose criteria are used instead of the run's own.

    Raises:
        UsageError: it is no run of cases, or has no answers.
        RedisUnreachableError: Redis stays away.
    """
    if not kinds.of(info.kind).traits.can_rescore:
        raise UsageError(f"{info.run} is a run of {info.kind}", hint="answers of models are judged again")
    if info.forgotten_ms is not None:
        raise texts_forgotten(info.run)
    run = CaseRun.from_snapshot(info.snapshot)
    positions, cases = dict[int, int](), list[dict[str, Any]]()
    prompts, hashes = dict[str, None](), dict[int, CaseHashes]()
    outputs = folder / "outputs.jsonl"
    with outputs.open("w", encoding="utf-8") as out:
        written = 0
        for case in _cases(store, info.run):
            at = case.item.case
            if at not in positions:
                positions[at] = len(cases)
                hashes[len(cases)] = CaseHashes(case.item.input_hash, case.item.expectation_hash)
                cases.append(_case(case.item, run.judges))
            if case.item.quorum is None and case.item.repeat:  # its last answer says how many there are
                cases[positions[at]] |= {"repeat": case.item.repeat + 1}
            if case.item.prompt_id is not None:
                prompts[case.item.prompt_id] = None
                rendered = cases[positions[at]].setdefault("vars", {}).setdefault(RENDERED, {})
                rendered[case.item.prompt_id] = case.item.input
            if (row := written_output(case, at if config else positions[at])) is not None:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
    if not written:
        raise UsageError(f"{info.run} has no answers to judge", hint="`proctor results` shows why")
    if config is not None:
        return Rewritten(config, outputs, {})
    shared_vars = read_shared_vars(run, partial(store.file, info.run))
    return Rewritten(_bench(folder, run, cases, list(prompts), shared_vars), outputs, hashes)


def _cases(store: RunStore, run: str) -> Iterator[OpenedCase]:
    """Reads the run."""
    return (case for rows in store.item_pages(run, with_payload=True) for case in opened(rows))


def _case(item: CasePayload, judges: Iterable[str]) -> dict[str, Any]:
    """Writes a case as a bench has it; of its prompts, each has its rendered text as a variable."""
    case: dict[str, Any] = {
        "id": item.id,
        "input": item.input,
        "vars": item.vars,
        "tags": item.tags,
        "metadata": item.metadata,
        "weight": None if item.weight == 1 else item.weight,
        "repeat": item.quorum and item.quorum.written,
        **item.criteria,
    }
    if item.messages is not None and item.prompt_id is None:
        case["messages"] = item.messages
        del case["input"]
    if item.criteria.get("checks"):
        case["checks"] = written_checks(item.criteria["checks"], judges)
    return {key: value for key, value in case.items() if value not in (None, {}, [])}


def written_checks(checks: Sequence[Any], judges: Iterable[str] = ()) -> list[Any]:
    """Writes checks that travelled as a bench has them; what was rendered is not rendered again.

    Args:
        checks: as they travelled.
        judges: those of the run.

    >>> written_checks([{"check": "contains", "argument": "{{x}}", "options": {"ignore_case": True}}])
    [{'contains': "{{ '{' }}{{ '{' }}x}}", 'ignore_case': True}]
    >>> written_checks([{"check": "not", "checks": [{"check": "refusal"}]}])
    [{'not': {'refusal': None}}]
    >>> rubric = {"check": "rubric", "argument": "Brief.", "options": {"models": ["a", "b"]}}
    >>> written_checks([rubric], ["c", "d"]), written_checks([rubric], ["a", "b"])
    ([{'rubric': 'Brief.', 'models': ['a', 'b']}], [{'rubric': 'Brief.'}])
    """
    from worker.validation.checks import (  # noqa: PLC0415 - start-up: only runs with checks need it
        CHECK_KINDS,
        label,
        render_checks,
    )

    added = list(judges)

    def written(check: Check) -> dict[str, Any]:
        """Writes one check; judges that the run adds are added again, and its own are kept."""
        options = {key: value for key, value in check.options.items() if key != "models" or value != added}
        common = {key: getattr(check, key) for key in ("name", "at_least", "weight", "json_path")}
        common["transform"] = msgspec.to_builtins(check.transform)
        defaults = {"name": "", "at_least": None, "weight": 1.0, "json_path": "", "transform": None}
        if check.written:
            common["name"] = label(check)  # what was rendered would be another check in each case
        changed = {key: value for key, value in common.items() if value != defaults[key]}
        argument, nested = check.argument, CHECK_KINDS[check.check].nested
        if nested is not None:
            argument = nested.join(argument, [written(each) for each in check.checks])
        return {check.check: argument, **options, **changed}

    raw = [written(msgspec.convert(each, Check)) for each in checks]
    rendered: list[Any] = render_checks(raw, lambda text, _path: text.replace("{", "{{ '{' }}"))
    return rendered


def written_output(case: OpenedCase, position: int) -> dict[str, Any] | None:
    """Writes an answer as `--outputs` takes it; None where there is none."""
    result, row, item = case.answer, case.row, case.item
    if result.raw_output is None:
        return None
    first_ms = result.measured.first_token_ms
    settings = {
        "first_token_seconds": None if first_ms is None else first_ms / 1000,
        "latency_seconds": None if row.latency_ms is None else row.latency_ms / 1000,
        "cached": (CACHED in row.code) or None,
        "cost_usd": row.cost_usd,
        "prompt_tokens": result.usage.prompt_tokens,
        "completion_tokens": result.usage.completion_tokens,
        "cached_input_tokens": result.usage.cached_input_tokens,
        "reasoning_tokens": result.usage.reasoning_tokens,
        "reasoning": result.reasoning or None,
        "prompt": item.prompt_id,
        "tool_calls": result.tool_calls or None,
        "refusal": result.refusal or None,
        "is_json": result.is_json is True or None,
    }
    answer = {"case": item.id or position, "model": item.model, "repeat": item.repeat}
    known = {key: value for key, value in settings.items() if value is not None}
    return {**answer, "output": result.raw_output, **known}


def _bench(
    folder: Path,
    run: CaseRun,
    cases: list[dict[str, Any]],
    prompts: Sequence[str],
    shared_vars: Mapping[str, Any],
) -> Path:
    """Writes the run's own settings as a bench, and its cases beside it; JSON is YAML."""
    judging = {**run.judges, **run.check_models}
    targets = {**run.models, **judging}
    several = len(run.judges) > 1
    judges = {"judge_models": list(run.judges)} if several else {"judge_model": run.judge_model}
    bench: dict[str, Any] = {
        "name": run.name,
        **({"system_prompt": run.system_prompt} if run.system_prompt else {}),
        "models": list(run.models),
        "vars": dict(shared_vars),
        "model_configs": {
            name: model_config(name, target, run.prices, run.transforms)
            | (hosted_config(target, folder) if name in judging else {})
            for name, target in targets.items()
        },
        "config": {
            **judges,
            "temperature": run.temperature,
            "concurrency": run.concurrency,
            "max_cost": run.max_cost,
            "json_extraction": run.json_extraction,
        },
        "test_cases_file": "cases.jsonl",
    }
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    if prompts:
        bench["prompts"] = [
            {"id": prompt, "user": f"{{{{ {RENDERED}[{json.dumps(prompt)}] }}}}"} for prompt in prompts
        ]
    if run.validators is not None:
        (folder / "validators.py").write_text(run.validators.source, encoding="utf-8")
        bench["validators_file"] = "validators.py"
    if run.schema is not None:
        (folder / "schema.json").write_text(json.dumps(run.schema), encoding="utf-8")
        bench["schema_path"] = "schema.json"
    path = folder / "bench.yaml"
    path.write_text(json.dumps(bench, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def hosted_config(target: ModelTarget, folder: Path) -> dict[str, Any]:
    """Returns the rest of `model_configs` for a target that is called in place of an endpoint.

    Args:
        target: a plug-in, or code, whose files are written.
        folder: the folder of the bench.
    """
    config = {"config": dict(target.config)} if target.config else {}
    if target.plugin:
        return {"plugin": target.plugin, **config}
    if (code := target.code) is None:
        return {}
    code.write(folder / code.sha256)
    named = f"{code.sha256}/{code.name}{code.function and ':'}{code.function}"
    return {code.language: named, "role": code.role, "env": code.env, **config}


def model_config(
    name: str, target: ModelTarget, prices: Mapping[str, GivenPrice], transforms: Mapping[str, Transform]
) -> dict[str, Any]:
    """Writes a target as a bench has it in `model_configs`.

    Args:
        name: what it is called there.
        target: the model.
        prices: those of the run, by the model that is called.
        transforms: those of the run, by name.

    >>> model_config("small", ModelTarget("m", "http://h/v1"), {}, {})
    {'model': 'm', 'api_base': 'http://h/v1'}
    """
    written = {
        "model": "" if name == target.model or target.http or target.is_hosted else target.model,
        "api_base": "" if target.is_hosted else target.api_base,
        "api_key_env": target.api_key_env,
        "headers": dict(target.headers),
        "prices": msgspec.to_builtins(prices.get(target.model)),
        "transform": msgspec.to_builtins(transforms.get(name)),
    }
    return {key: value for key, value in written.items() if value}
