"""Makes a run of a configuration: what the command line changes, its items in order, and how they are cut.

Longer than 500 lines, because all of these need the settings and cases that were chosen.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from producer.cases.bench_config import Bench, BenchCase, check_models, outputs_of, read_bench
from producer.cases.bench_files import DATA_BYTES, read_source
from producer.cases.bench_prompts import BenchPrompt, SentMessages, conversation, merged_calls
from producer.cases.checks import labels_of
from producer.cases.http_models import check_request, check_session
from producer.cases.recorded import Key, read_recorded, readable, recorded_for
from producer.cases.redacted_items import redacted_files, redacted_items, redacted_run
from producer.git_state import git_info
from producer.load.chunks import (
    TYPICAL_CASE,
    Chunk,
    RunInput,
    chunk_size,
    dictionary_of,
    name_of,
    shape_of,
)
from producer.load.problems import Place, Problems, nearest
from producer.load.source import Source
from producer.load.yaml_text import lines_below
from producer.options import CaseChoice, CaseItem, SubmitOptions, case_key, pick_items
from producer.text import count, shown
from shared.contracts.call_options import sent
from shared.contracts.case_config import BenchConfig, RunSettings, quorum_of, times_of
from shared.contracts.case_hashes import CaseHashes
from shared.contracts.case_run import (
    DEFAULT_TEMPERATURE,
    FREEFORM,
    GIT_KEY,
    PLACES_FILE,
    SNAPSHOT_KEY,
    STANDARD,
    CasePayload,
    CaseRun,
    Quorum,
    Recorded,
    Template,
    encode_case,
)
from shared.errors import ConfigError, InputError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.bounds import TARGETS_LAYOUT
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import FLEX, SERVICE_TIER, GivenPrice, tariff_of

_CASES: Final = "test_cases"
CHUNK_BYTES_MOST: Final = 2 << 20
"""A chunk closes here whatever it holds, unless one item alone is larger."""
OPTIONS_OF_RUN: Final = (
    "concurrency",
    "together",
    "timeout_s",
    "stream",
    "cache",
    "written_at",
    "all_repeats",
)
"""Settings that change how a run is worked on, and not what comes out."""
STORED_SETTINGS: Final = RunSettings.model_fields.keys() & set(CaseRun.__struct_fields__) - {
    "temperature",
    "repeat",
}
"""Settings of a file that a run stores under their own names."""
TARGETS: Final = ("models", "judges", "check_models")
"""Settings whose values are targets by model."""
COPIED_VARS_BYTES: Final = 1_000
"""Variables of a bench up to this size are copied into each item and row; larger ones are stored once."""
RENDERED_CHARS_MOST: Final = 16 << 20
"""Characters of rendered prompts that are kept for the second and further models."""

LABEL_OF_MANY: Final = (
    "label: people's word is about one answer: give it with the recorded output of one model"
)


def load_cases(source: Source, options: SubmitOptions) -> RunInput:
    """Begins to load the cases of a configuration.

    Raises:
        InputError: it breaks the contract.
        ConfigError, UsageError: as `plan_run`.
    """
    plan = options.plan if isinstance(options.plan, PlannedRun) else plan_run(source, options.cases)
    for warning in plan.warnings:
        options.on_warning(warning)
    if plan.run.recorded:  # nothing waits for anybody: whole chunks at a time, as many as there are workers
        size, open_chunks = chunk_size(plan.total), 0
    elif quorums := plan.quorums:
        size, open_chunks = shape_of_cases(plan.total, plan.run.concurrency, quorums)
    else:
        size, open_chunks = shape_of(plan.total, plan.run.concurrency)
    together = size if plan.run.recorded else min(plan.run.concurrency, size)
    run = msgspec.structs.replace(plan.run, together=together)
    items, files, redactor = plan.items, plan.files, options.redactor
    if redactor is not None:
        run, files = redacted_run(run, redactor), redacted_files(run, files, redactor)
        items = partial(redacted_items, items, redactor)
    dictionary = dictionary_of(map(encode_case, items()), plan.total, TYPICAL_CASE)
    described = plan.bench.config.description
    if described and redactor is not None:
        described = redactor.text(described)
    return RunInput(
        case_chunks(items(), size),
        {
            SNAPSHOT_KEY: msgspec.to_builtins(run),
            GIT_KEY: git_info(source.path.parent if source.path else Path()),
            **({"description": described} if described else {}),
        },
        [f"cases={settings_digest(run)}"],
        max_open_chunks=open_chunks,
        files={**files, **dictionary, PLACES_FILE: stored_places(plan.bench.root, plan.cases)},
        layout=TARGETS_LAYOUT,
    )


Rendered: TypeAlias = tuple[BenchPrompt | None, int, BenchCase, SentMessages]
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
    hashes: Mapping[int, CaseHashes] = field(default_factory=dict)
    """Those of cases that come from another run, which a bench made of it does not have."""

    @property
    def total(self) -> int:
        """How many items there are."""
        if self.only is None:
            times = sum(times_of(case.repeat) for _, case in self.cases)
            return times * len(self.run.models) * max(1, len(self.prompts))
        pairs = [(at, case, prompt) for prompt in self.prompts or (None,) for at, case in self.cases]
        return sum(len(self.models_of(*pair)) * times_of(pair[1].repeat) for pair in pairs)

    @property
    def quorums(self) -> Sequence[Quorum]:
        """Those of the cases that have one; empty where all answers are asked for."""
        found = [quorum_of(case.repeat) for _, case in self.cases]
        return [] if self.run.all_repeats else [quorum for quorum in found if quorum is not None]

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
            "check": labels_of([check for case in cases for check in case.checks]),
            "prompt": [prompt.id for prompt in self.prompts],
            "tag": list(dict.fromkeys(tag for case in cases for tag in case.entry.tags)),
        }

    def items(self) -> Iterator[CasePayload]:
        """Yields the items in the order of results: by model, by prompt, by case, by repetition."""
        only_checked = self.bench.only_checked()
        for model in self.run.models:
            for prompt, at, case, filled in self.conversations():
                if self.only is not None and model not in self.models_of(at, case, prompt):
                    continue
                hashes = self.hashes.get(at) or case.hashes(only_checked)
                payload = _payload(at, model, case, prompt, filled, self.run, hashes)
                for repeat in range(times_of(case.repeat)):
                    recorded = recorded_for(self.outputs, at, model, payload.prompt_id, repeat)
                    yield msgspec.structs.replace(
                        payload, repeat=repeat, recorded=recorded, quorum=quorum_of(case.repeat)
                    )

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
                yield prompt, at, case, _sent(case, prompt, self.run.system_prompt)


def plan_run(source: Source, choice: CaseChoice) -> PlannedRun:
    """Reads a configuration and applies what the command line says.

    Raises:
        InputError: it, or a file that it names, breaks the contract; or no case is left.
        ConfigError: as `read_bench`, or a cost cap cannot be kept.
        UsageError: an option does not fit.
    """
    bench = read_bench(source, validators_file=choice.validators_file, above=choice.settings)
    outputs = _outputs(bench, choice)
    models = _models(bench.config, choice, outputs)
    cases = _chosen(bench.cases, choice)
    if choice.only is not None:
        models = [model for model in models if any(item.model == model for item in choice.only)]
    settings = _settings(bench)
    asked_by_checks = check_models([case for _, case in cases])
    if bench.config.pairwise is not None:
        asked_by_checks = [*asked_by_checks, bench.config.pairwise.model]
    fixed = choice.settings is not None and choice.settings.temperature is not None
    calls = merged_calls(bench.config, models, bench.prompts, fixed_temperature=fixed)
    shared_vars = _shared_vars(bench.config.vars)
    run = msgspec.structs.replace(
        settings,
        shared_vars=next(iter(shared_vars), ""),
        models={model: _tested(bench.config, model, choice, calls.get(model, {})) for model in models},
        written_at=_written_at(bench, models, choice),
        prompts=[prompt.id for prompt in bench.prompts],
        templates={prompt.id: Template(prompt.system, prompt.turns) for prompt in bench.prompts},
        calls=calls,
        check_models={model: bench.config.judge(model) for model in asked_by_checks},
        mode=FREEFORM if settings.schema is None and all(c.is_freeform for _, c in cases) else STANDARD,
        recorded=outputs is not None,
        has_quorums=any(quorum_of(case.repeat) for _, case in cases),
        all_repeats=choice.all_repeats,
        cases=len(cases),
        prices=_prices(bench.config, models, choice),
    )
    _check_prices(run, has_expected=any(case.entry.expected is not None for _, case in cases))
    warnings = list(bench.warnings)
    if any(case.entry.label for _, case in cases) and (outputs is None or len(models) > 1):
        warnings.append(LABEL_OF_MANY)
    used = {name for _, case in cases for name in case.images}
    files = shared_vars | {name: data for name, data in bench.images.items() if name in used}
    plan = PlannedRun(run, cases, bench.prompts, files, outputs or {}, warnings, bench, choice.only)
    rendered = _rendered(plan)
    if not plan.total:
        raise InputError("nothing is left to run", hint="what failed before is not in the file any more")
    return replace(plan, rendered=rendered, hashes=choice.hashes)


def _check_prices(run: CaseRun, *, has_expected: bool) -> None:
    """Proves that a run with a cost cap can be held to it: every price is known.

    Raises:
        ConfigError: one is not.
    """
    if run.max_cost is None:
        return
    judges = run.judges if has_expected else ()
    called = [*(() if run.recorded else run.models), *judges, *run.check_models]
    for model in dict.fromkeys(called):
        if tariff_of(model, run.prices) is None:
            what = f"max_cost: the price of {shown(model)} is not known, so that no cap can be kept"
            given = "prices: {prompt_per_million: …, completion_per_million: …}"
            option = "give --price IN/OUT, or " if model in run.models and not run.recorded else ""
            raise ConfigError(what, hint=f"{option}write model_configs: {{{json.dumps(model)}: {{{given}}}}}")


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
    applications = [] if plan.run.recorded else [each for each in plan.run.models.values() if each.http]
    for target in applications:
        problems.attempt(partial(check_session, target, plan.bench.root))
    for prompt in plan.prompts or (None,):
        for at, case in plan.cases:
            filled = problems.attempt(partial(_sent, case, prompt, plan.run.system_prompt))
            if filled is None:
                continue
            for target in applications:
                problems.attempt(partial(_check_sent, target, case, filled))
            if size <= RENDERED_CHARS_MOST:
                size += len(filled.input) + sum(len(str(turn)) for turn in filled.messages or ())
                kept.append((prompt, at, case, filled))
    problems.raise_found()
    return kept if size <= RENDERED_CHARS_MOST else None


def _sent(case: BenchCase, prompt: BenchPrompt | None, system_prompt: str) -> SentMessages:
    return conversation(case.entry, case.values, case.place, prompt, system_prompt)


def _check_sent(target: ModelTarget, case: BenchCase, filled: SentMessages) -> None:
    """Renders what an application is sent."""
    system = [{"role": "system", "content": filled.system}] if filled.system else []
    turns = filled.messages or [{"role": "user", "content": filled.input}]
    check_request(target, case.place, [*system, *turns], filled.input, case.vars)


def _payload(  # noqa: PLR0917 - one call, above
    at: int,
    model: str,
    case: BenchCase,
    prompt: BenchPrompt | None,
    filled: SentMessages,
    run: CaseRun,
    hashes: CaseHashes,
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
        input_hash=hashes.input,
        expectation_hash=hashes.expectation,
    )


def settings_digest(run: CaseRun) -> str:
    """What decides about a run's results, for its idempotency key."""
    settings = {key: value for key, value in msgspec.to_builtins(run).items() if key not in OPTIONS_OF_RUN}
    for target in chain.from_iterable(settings[asked].values() for asked in TARGETS):
        del target["timeout_s"]
    return sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()


def shape_of_cases(items: int, concurrency: int, quorums: Sequence[Quorum]) -> tuple[int, int]:
    """Returns what `shape_of` does, for cases of which only some answers are asked for at a time.

    >>> shape_of_cases(1_000, 10, [Quorum(8, 10)]), shape_of_cases(20_000, 100, [Quorum(8, 10)])
    ((2, 10), (20, 34))
    """
    size, most = shape_of(items, concurrency)
    cases = -(-size // min(quorum.times for quorum in quorums))
    filled = -(-concurrency // (cases * min(quorum.left(0, 0) for quorum in quorums)))
    return size, max(most, 2 * filled if concurrency > 1 else 1)


def case_chunks(items: Iterator[CasePayload], size: int) -> Iterator[Chunk]:
    """Cuts a run's items into chunks, smaller ones where the items are heavy.

    The answers to a case with a quorum lie in one chunk, so that one worker knows when its verdict is
    certain; only heavy ones are cut apart, which may cost calls that were not needed.

    >>> plans = [chunk.plan for chunk in case_chunks(iter([CasePayload(0, "m", "Hi")] * 3), 2)]
    >>> [(plan.first, list(plan.parts)) for plan in plans]
    [('case 1 · m', ['0', '1']), ('case 1 · m', ['2'])]
    """
    number, weight, first = 0, 0, ""
    held = dict[str, bytes]()
    for index, item in enumerate(items):
        payload = encode_case(item)
        is_full = len(held) >= size and (item.quorum is None or not item.repeat)
        if held and (is_full or weight + len(payload) > CHUNK_BYTES_MOST):
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


def _settings(bench: Bench) -> CaseRun:
    """The settings that need no case."""
    config, settings = bench.config, bench.settings
    return CaseRun(
        name=config.name,
        system_prompt=config.system_prompt or "",
        schema=bench.schema,
        validators=bench.validators,
        judges={judge: config.judge(judge) for judge in settings.judges},
        judge_params=sent(config.judge_params.given),
        pairwise={} if config.pairwise is None else config.pairwise.model_dump(),
        temperature=DEFAULT_TEMPERATURE if settings.temperature is None else settings.temperature,
        repeat=settings.times,
        quorum=quorum_of(settings.repeat),
        **settings.model_dump(include=STORED_SETTINGS),
    )


def _tested(
    config: BenchConfig, model: str, choice: CaseChoice, calls: Mapping[str, Mapping[str, Any]]
) -> ModelTarget:
    """Where a model under test is called; an `--api-base` goes for all of them.

    Args:
        config: the bench.
        model: its name.
        choice: what the command line says.
        calls: the options of its calls by prompt.
    """
    tiers = {call.get("params", {}).get(SERVICE_TIER) for call in calls.values()}
    own, above = config.target(model, FLEX if FLEX in tiers else None), choice.model_config
    if above is None:
        return own
    base, variable = above.api_base or own.api_base, above.api_key_env or own.api_key_env
    return msgspec.structs.replace(own, api_base=base, api_key_env=variable)


def _written_at(bench: Bench, models: Sequence[str], choice: CaseChoice) -> dict[str, str]:
    """Names the option or the line that gives the `api_base` of each model that has one."""
    if choice.model_config is not None and choice.model_config.api_base:
        return dict.fromkeys(models, "--api-base")
    return {
        model: str(bench.root.at("model_configs", model, "api_base"))
        for model in models
        if (own := bench.config.model_configs.get(model)) and own.api_base
    }


def _prices(config: BenchConfig, models: Sequence[str], choice: CaseChoice) -> dict[str, GivenPrice]:
    """The prices that were given; the one of the command line is that of all models under test."""
    today = datetime.now(UTC).date().isoformat()
    given = {model: own.price_on(today) for model, own in config.model_configs.items()}
    if choice.model_config is not None and choice.model_config.prices:
        given |= dict.fromkeys(models, choice.model_config.prices.given)
    return {model: price for model, price in given.items() if price is not None}


def _outputs(bench: Bench, choice: CaseChoice) -> dict[Key, Recorded] | None:
    """Recorded outputs: of `--outputs`, else those that stand with the cases; None: models are asked."""
    if choice.outputs is not None:
        file = read_source(Source(choice.outputs), DATA_BYTES)
        ids, prompts = [case.entry.id for case in bench.cases], [prompt.id for prompt in bench.prompts]
        repeats = [times_of(case.repeat) for case in bench.cases]
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
    hints = [numbers] if is_number or not ids else []
    if ids:
        hints.append(nearest(name, list(ids)))
    raise UsageError(f"--case: no case is called {shown(name)}", hint="; ".join(hints))


def stored_places(root: Place, cases: Iterable[tuple[int, BenchCase]]) -> bytes:
    """Packs the places of cases by their positions; paths are absolute.

    Args:
        root: the configuration.
        cases: with their positions.
    """
    lines, found = lines_below(root.text, (_CASES,)), dict[int, tuple[str, int]]()
    for at, case in cases:
        line = case.place.line  # of a data file; a configuration is read once for the lines of all its cases
        if case.place.text:
            line = next((lines[at] for at in case.place.path[1:2] if isinstance(at, int) and at in lines), 0)
        if line:
            found[at] = (case.place.file, line)
    names = list(dict.fromkeys(file for file, _ in found.values()))
    rows = {at: (names.index(file), line) for at, (file, line) in found.items()}
    return msgspec.msgpack.encode(([str(Path(name).absolute()) for name in names], rows))
