"""Makes a run of a configuration: what the command line changes, its items in order, and how they are cut."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from producer.load.bench_cases import CHECKS_LAYOUT, SHARED_VARS_LAYOUT, BenchCase, layout_of
from producer.load.bench_config import Bench, check_models, outputs_of, read_bench
from producer.load.call_params import headers_of, merged_calls
from producer.load.case_contract import nearest
from producer.load.case_files import DATA_BYTES, read_source
from producer.load.case_messages import Conversation, conversation
from producer.load.case_places import PLACES_FILE, stored_places
from producer.load.case_preconditions import check_prices
from producer.load.case_prompts import BenchPrompt
from producer.load.chunks import Chunk, RunInput, chunk_size, name_of, shape_of
from producer.load.dictionaries import TYPICAL_CASE, dictionary_of
from producer.load.picking import pick_items
from producer.load.problems import Problems, shown
from producer.load.recorded import Key, read_recorded, readable, recorded_for
from producer.load.source import Source
from producer.options import CaseChoice, CaseItem, SubmitOptions, case_key
from producer.text import count
from shared.contracts.call_options import merge_headers, sent
from shared.contracts.case_config import BenchConfig
from shared.contracts.case_run import (
    DEFAULT_TEMPERATURE,
    FREEFORM,
    GIT_KEY,
    SNAPSHOT_KEY,
    STANDARD,
    WRITTEN_IF_USED,
    CasePayload,
    CaseRun,
    Endpoint,
    Recorded,
    Template,
    encode_case,
)
from shared.errors import InputError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.bounds import FIRST_LAYOUT, PACKED_LAYOUT

CHUNK_BYTES_MOST: Final = 2 << 20
"""A chunk closes here whatever it holds, unless one item alone is larger."""
OPTIONS_OF_RUN: Final = ("concurrency", "together", "timeout_s", "stream", "cache", "written_at")
"""Settings that change how a run is worked on, and not what comes out."""
NEW_SETTINGS: Final = frozenset(WRITTEN_IF_USED) - {"pairwise", "check_models", "templates", "written_at"}
"""Settings that the first workers ignore and that change results; models of checks come with checks."""
COPIED_VARS_BYTES: Final = 1_000
"""Variables of a bench up to this size are copied into each item and row; larger ones are stored once."""
RENDERED_CHARS_MOST: Final = 16 << 20
"""Characters of rendered prompts that are kept for the second and further models."""
GIT_PATIENCE_S: Final = 2.0
"""How long git is waited for; a report can do without it."""
_GIT: Final = (
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.checkStat=minimal",
    "-c",
    "core.trustctime=false",
)
"""Runs nothing that the configuration of a repository names, and compares files by size and whole seconds."""
SHORT_COMMIT_CHARS: Final = 7
_DETACHED: Final = "HEAD"


def load_cases(source: Source, options: SubmitOptions) -> RunInput:
    """Begins to load the cases of a configuration.

    Raises:
        InputError: it breaks the contract.
        ConfigError, UsageError: as `plan_run`.
    """
    plan = options.plan or plan_run(source, options.cases)
    for warning in plan.warnings:
        options.on_warning(warning)
    if plan.run.recorded:  # nothing waits for anybody: whole chunks at a time, as many as there are workers
        size, open_chunks = chunk_size(plan.total), 0
    else:
        size, open_chunks = shape_of(plan.total, plan.run.concurrency)
    together = size if plan.run.recorded else min(plan.run.concurrency, size)
    run = replace(plan.run, together=together)
    dictionary = dictionary_of(map(encode_case, plan.items()), plan.total, TYPICAL_CASE)
    return RunInput(
        case_chunks(plan.items(), size),
        {
            SNAPSHOT_KEY: run.as_snapshot(),
            GIT_KEY: git_info(source.path.parent if source.path else Path()),
            **({"description": described} if (described := plan.bench.config.description) else {}),
        },
        [f"cases={settings_digest(run)}"],
        max_open_chunks=open_chunks,
        files={**plan.files, **dictionary, PLACES_FILE: stored_places(plan.bench.root, plan.cases)},
        layout=PACKED_LAYOUT if dictionary else plan.layout,
    )


Rendered: TypeAlias = tuple[BenchPrompt | None, int, BenchCase, Conversation]
"""A prompt, the position of a case, the case, and what a model is sent."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run, ready to be loaded."""

    run: CaseRun
    """Its settings."""
    cases: Sequence[tuple[int, BenchCase]]
    """The chosen cases with their positions among all."""
    prompts: Sequence[BenchPrompt]
    """Templates of what is sent; empty: cases are sent as they are."""
    files: Mapping[str, bytes]
    """What items share, by hash: the images of the chosen cases, and large variables of the bench."""
    outputs: Mapping[Key, Recorded]
    """Recorded outputs, if any."""
    warnings: Sequence[str]
    """What is probably not meant."""
    bench: Bench
    """The configuration as it is written."""
    only: frozenset[CaseItem] | None = None
    """The only combinations of case, model and prompt that are run; None: all."""
    rendered: Sequence[Rendered] | None = None
    """What each model is sent, if that is little; None: it is rendered again for each."""

    @property
    def total(self) -> int:
        """How many items there are."""
        if self.only is None:
            return len(self.cases) * len(self.run.models) * max(1, len(self.prompts)) * self.run.repeat
        pairs = [(at, case, prompt) for prompt in self.prompts or (None,) for at, case in self.cases]
        return sum(len(self.models_of(*pair)) for pair in pairs) * self.run.repeat

    def models_of(self, at: int, case: BenchCase, prompt: BenchPrompt | None) -> list[str]:
        """Returns the models that a case is put to by a prompt."""
        if self.only is None:
            return list(self.run.models)
        name, by = case_key(at, case.entry.id), prompt.id if prompt else ""
        return [model for model in self.run.models if CaseItem(name, model, by) in self.only]

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """What gates can name of the run: its checks, prompts and tags."""
        cases = [case for _, case in self.cases]
        return {
            "check": list(dict.fromkeys(check.label for case in cases for check in case.checks)),
            "prompt": [prompt.id for prompt in self.prompts],
            "tag": list(dict.fromkeys(tag for case in cases for tag in case.entry.tags)),
        }

    @property
    def layout(self) -> int:
        """The layout that workers have to know: the first ones would ignore checks, prompts and options."""
        has_new_settings = bool(self.run.as_snapshot().keys() & NEW_SETTINGS)
        has_new_outputs = any(output.tool_calls or output.refusal for output in self.outputs.values())
        of_run = CHECKS_LAYOUT if has_new_settings or has_new_outputs else FIRST_LAYOUT
        if self.run.shared_vars:
            return SHARED_VARS_LAYOUT
        return max([of_run, *(layout_of(case) for _, case in self.cases)])

    def items(self) -> Iterator[CasePayload]:
        """Yields the items in the order of results: by model, by prompt, by case, by repetition."""
        for model in self.run.models:
            for prompt, at, case, filled in self.conversations():
                if self.only is not None and model not in self.models_of(at, case, prompt):
                    continue
                payload = _payload(at, model, case, prompt, filled, self.run)
                for repeat in range(self.run.repeat):
                    recorded = recorded_for(self.outputs, at, model, payload.prompt_id, repeat)
                    yield msgspec.structs.replace(payload, repeat=repeat, recorded=recorded)

    def conversations(self) -> Iterator[Rendered]:
        """Yields what each model is sent: by prompt, by case.

        Raises:
            InputError: a template cannot be rendered, or a case has no input.
        """
        if self.rendered is not None:
            yield from self.rendered
            return
        for prompt in self.prompts or (None,):
            for at, case in self.cases:
                yield prompt, at, case, conversation(case, prompt, self.run.system_prompt)


def plan_run(source: Source, choice: CaseChoice) -> PlannedRun:
    """Reads a configuration and applies what the command line says.

    Raises:
        InputError: it, or a file that it names, breaks the contract; or no case is left.
        ConfigError: as `read_bench`, or a cost cap cannot be kept.
        UsageError: an option does not fit.
    """
    bench = read_bench(source, validators_file=choice.validators_file, judges=choice.judges)
    outputs = _outputs(bench, choice)
    models = _models(bench.config, choice, outputs)
    cases = _chosen(bench.cases, choice)
    if choice.only is not None:
        models = [model for model in models if any(item.model == model for item in choice.only)]
    settings = _settings(bench, choice)
    asked_by_checks = check_models([case for _, case in cases])
    if bench.config.pairwise is not None:
        asked_by_checks = [*asked_by_checks, bench.config.pairwise.model]
    fixed = choice.temperature is not None
    shared_vars = _shared_vars(bench.config.vars)
    run = replace(
        settings,
        shared_vars=next(iter(shared_vars), ""),
        models={model: _endpoint(bench.config, model, choice) for model in models},
        written_at=_written_at(bench, models, choice),
        prompts=[prompt.id for prompt in bench.prompts],
        templates={prompt.id: Template(prompt.system, prompt.turns) for prompt in bench.prompts},
        calls=merged_calls(bench.config, models, bench.prompts, fixed_temperature=fixed),
        model_headers=_judge_headers(bench.config, [*settings.judges, *asked_by_checks]),
        check_models={model: _endpoint(bench.config, model, CaseChoice()) for model in asked_by_checks},
        mode=FREEFORM if settings.schema is None and all(c.is_freeform for _, c in cases) else STANDARD,
        recorded=outputs is not None,
        cases=len(cases),
        prices=_prices(bench.config, models, choice),
    )
    check_prices(run, has_expected=any(case.entry.expected is not None for _, case in cases))
    warnings = list(bench.warnings)
    if any(case.entry.label for _, case in cases) and (outputs is None or len(models) > 1):
        warnings.append(
            "label: people's word is about one answer: give it with the recorded output of one model"
        )
    used = {name for _, case in cases for name in case.images}
    files = shared_vars | {name: data for name, data in bench.images.items() if name in used}
    plan = PlannedRun(run, cases, bench.prompts, files, outputs or {}, warnings, bench, choice.only)
    rendered = _rendered(plan)
    if not plan.total:
        raise InputError("nothing is left to run", hint="what failed before is not in the file any more")
    return replace(plan, rendered=rendered)


def _shared_vars(written: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the variables of a bench as a file of the run, by its hash; empty if they are small."""
    encoded = msgspec.json.encode(written, order="deterministic")
    return {sha256(encoded).hexdigest(): encoded} if len(encoded) > COPIED_VARS_BYTES else {}


def _rendered(plan: PlannedRun) -> Sequence[Rendered] | None:
    """Renders every template, before anything is sent; None when the result is too long to be kept.

    Raises:
        InputError: one cannot be rendered, or a case has no input.
    """
    problems, kept, size = Problems(), list[Rendered](), 0
    for prompt in plan.prompts or (None,):
        for at, case in plan.cases:
            filled = problems.attempt(partial(conversation, case, prompt, plan.run.system_prompt))
            if filled is not None and size <= RENDERED_CHARS_MOST:
                size += len(filled.input) + sum(len(str(turn)) for turn in filled.messages or ())
                kept.append((prompt, at, case, filled))
    problems.raise_found()
    return kept if size <= RENDERED_CHARS_MOST else None


def _payload(  # noqa: PLR0917 - one call, above
    at: int, model: str, case: BenchCase, prompt: BenchPrompt | None, filled: Conversation, run: CaseRun
) -> CasePayload:
    """Makes the item of a case, without repetition and recorded output."""
    entry = case.entry
    return CasePayload(
        at,
        model,
        filled.input,
        id=entry.id,
        prompt_id=prompt.id if prompt else None,
        system=None if filled.system == run.system_prompt else filled.system,
        messages=None if filled.messages is None else [dict(each) for each in filled.messages],
        images=list(case.images),
        vars=dict((case.entry.vars or {}) if run.shared_vars else case.vars),
        tags=list(entry.tags),
        metadata=entry.metadata or {},
        weight=1.0 if entry.weight is None else entry.weight,
        criteria=case.criteria,
    )


def settings_digest(run: CaseRun) -> str:
    """What decides about a run's results, for its idempotency key."""
    settings = {key: value for key, value in run.as_snapshot().items() if key not in OPTIONS_OF_RUN}
    return sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()


def case_chunks(items: Iterator[CasePayload], size: int) -> Iterator[Chunk]:
    """Cuts a run's items into chunks, smaller ones where the items are heavy.

    >>> plans = [chunk.plan for chunk in case_chunks(iter([CasePayload(0, "m", "Hi")] * 3), 2)]
    >>> [(plan.first, list(plan.parts)) for plan in plans]
    [('case 1 · m', ['0', '1']), ('case 1 · m', ['2'])]
    """
    number, weight, first = 0, 0, ""
    held = dict[str, bytes]()
    for index, item in enumerate(items):
        payload = encode_case(item)
        if held and (len(held) == size or weight + len(payload) > CHUNK_BYTES_MOST):
            yield _chunk(number, first, held)
            number, weight, held = number + 1, 0, {}
        if not held:
            first = item.first
        held[str(index)] = payload
        weight += len(payload)
    if held:
        yield _chunk(number, first, held)


def _chunk(number: int, first: str, held: dict[str, bytes]) -> Chunk:
    """Packs the items of a chunk."""
    plan = ChunkPlan(name_of(first), list(held))
    return Chunk(str(number), plan, held, b"\n".join(held.values()), len(held))


def _settings(bench: Bench, choice: CaseChoice) -> CaseRun:
    """The configuration's settings; what the command line says goes before them."""
    config, written = bench.config, bench.config.settings
    temperature = written.temperature if choice.temperature is None else choice.temperature
    judges = config.judges if choice.judges is None else choice.judges
    panel = {judge: _endpoint(config, judge, CaseChoice()) for judge in judges}
    alone = next(iter(panel)) if len(panel) == 1 else None
    return CaseRun(
        name=config.name,
        system_prompt=config.system_prompt or "",
        judge=panel.pop(alone) if alone is not None else Endpoint(),
        schema=bench.schema,
        validators=bench.validators,
        judge_model=alone,
        panel=panel,
        judge_params=sent(config.judge_params.given),
        pairwise={} if config.pairwise is None else config.pairwise.model_dump(),
        temperature=DEFAULT_TEMPERATURE if temperature is None else temperature,
        concurrency=choice.concurrency or written.concurrency,
        max_cost=written.max_cost if choice.max_cost is None else choice.max_cost,
        timeout_s=written.timeout_s,
        stream=written.stream or choice.stream,
        cache=written.cache and choice.cache,
        repeat=choice.repeat or written.repeat,
        json_extraction=written.json_extraction,
        fail_fast=written.fail_fast or choice.fail_fast,
    )


def _endpoint(config: BenchConfig, model: str, choice: CaseChoice) -> Endpoint:
    """Where a model is asked; an `--api-base` goes for all models under test."""
    own = config.model_configs.get(model)
    api_base = choice.api_base or (own.api_base if own else "") or ""
    return Endpoint(api_base, choice.api_key_env or (own.api_key_env if own else "") or "")


def _written_at(bench: Bench, models: Sequence[str], choice: CaseChoice) -> dict[str, str]:
    """Names the option or the line that gives the `api_base` of each model that has one."""
    if choice.api_base:
        return dict.fromkeys(models, "--api-base")
    return {
        model: str(bench.root.at("model_configs", model, "api_base"))
        for model in models
        if (own := bench.config.model_configs.get(model)) and own.api_base
    }


def _judge_headers(config: BenchConfig, models: Sequence[str]) -> dict[str, dict[str, str]]:
    """Headers of those who judge: of `judge_params`, above them those of the model."""
    of_judges = config.judge_params.headers or {}
    own = {model: config.model_configs.get(model) for model in models}
    found = {
        model: merge_headers(of_judges, headers_of(each.params, each.headers) if each else {})
        for model, each in own.items()
    }
    return {model: headers for model, headers in found.items() if headers}


def _prices(config: BenchConfig, models: Sequence[str], choice: CaseChoice) -> dict[str, dict[str, float]]:
    """The prices that were given; the one of the command line is that of all models under test."""
    given = {
        model: own.prices.model_dump()
        for model, own in config.model_configs.items()
        if own.prices is not None
    }
    return given | ({model: dict(choice.price) for model in models} if choice.price else {})


def _outputs(bench: Bench, choice: CaseChoice) -> dict[Key, Recorded] | None:
    """Recorded outputs: of `--outputs`, else those that stand with the cases; None: models are asked."""
    if choice.outputs is not None:
        file = read_source(Source(choice.outputs), DATA_BYTES)
        ids, prompts = [case.entry.id for case in bench.cases], [prompt.id for prompt in bench.prompts]
        repeats = choice.repeat or bench.config.settings.repeat
        return read_recorded(file, ids, prompts, repeats=repeats)
    written = outputs_of(bench.cases)
    if not written:
        return None
    return {
        Key(at, model): Recorded(readable(text))
        for at, texts in written.items()
        for model, text in texts.items()
    }


def _models(config: BenchConfig, choice: CaseChoice, outputs: Mapping[Key, Recorded] | None) -> list[str]:
    """The models of the run, each once.

    Of recorded outputs: the configured models, as soon as one of them has an output, and then all others that
    have one; outputs of other models only stand for themselves.
    """
    named = list(dict.fromkeys(choice.models or config.models))
    if outputs is None:
        return named
    recorded = list(dict.fromkeys(key.model for key in outputs))
    if choice.models:
        return named
    return list(dict.fromkeys([*named, *recorded])) if set(named) & set(recorded) else recorded


def _chosen(cases: Sequence[BenchCase], choice: CaseChoice) -> list[tuple[int, BenchCase]]:
    """The cases that the command line leaves, in their order.

    Raises:
        UsageError: a name stands for no case.
        InputError: none is left.
    """
    found = list(enumerate(cases))
    if choice.only is not None:
        names = {item.case for item in choice.only}
        found = [(at, case) for at, case in found if case_key(at, case.entry.id) in names]
    if choice.cases:
        wanted = {_position(name, cases) for name in choice.cases}
        found = [(at, case) for at, case in found if at in wanted]
    found = pick_items(found, choice, lambda each: _text_of(each[1]))
    if not found:
        raise InputError(
            "no case is left to run", hint="--case, -k, --first, --sample or --last-failed leave none"
        )
    return found


def _text_of(case: BenchCase) -> str:
    """The text of a case in which `-k` looks for words."""
    entry = case.entry
    texts = [entry.id, entry.input, *map(str, case.vars.values())]
    texts += [message.content for message in entry.messages or () if isinstance(message.content, str)]
    return "\n".join(each or "" for each in texts)


def _position(name: str, cases: Sequence[BenchCase]) -> int:
    """Finds a case by its id, else by its number as it is shown, from 1: `6` or `case 6`."""
    ids = {case.entry.id: at for at, case in enumerate(cases) if case.entry.id is not None}
    if name in ids:
        return ids[name]
    digits = name.removeprefix("case ")
    is_number = digits.isascii() and digits.isdigit()
    if is_number and 1 <= int(digits[:9]) <= len(cases):
        return int(digits[:9]) - 1
    numbers = f"cases are numbered from 1 to {count(len(cases))}"
    hints = [numbers] * (is_number or not ids) + [nearest(name, list(ids))] * bool(ids)
    raise UsageError(f"--case: no case is called {shown(name)}", hint="; ".join(hints))


def git_info(folder: Path) -> dict[str, str | bool | None] | None:
    """Describes the state of the repository that a folder is in.

    Args:
        folder: of the configuration.

    Returns:
        `commit_hash`, `commit_short`, `branch` (None where no branch is checked out), `tag` (the last one,
        None without one) and `is_dirty`, whether tracked files differ from the commit; None where there is
        no repository, no commit or no git.
    """
    try:
        commit, branch = _git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
        tags = _git(folder, "tag", "--points-at", "HEAD")
        # Raw, because comparing contents may run filters that the repository configures.
        changes = _git(folder, "diff-index", "--raw", "HEAD", "--")
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return {
        "commit_hash": commit,
        "commit_short": commit[:SHORT_COMMIT_CHARS],
        "branch": None if branch == _DETACHED else branch,
        "is_dirty": bool(changes),
        "tag": tags[-1] if tags else None,
    }


def _git(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [*_GIT, *arguments], cwd=folder, capture_output=True, text=True, timeout=GIT_PATIENCE_S, check=True
    )
    return done.stdout.splitlines()
