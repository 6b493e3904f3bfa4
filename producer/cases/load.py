"""Builds a run from a configuration and the command line: its settings, items in order, and chunks.

Longer than 500 lines, because each step from a bench to its chunks is here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from producer.cases.bench_cases import BenchCase
from producer.cases.bench_config import Bench, read_bench
from producer.cases.bench_prompts import BenchPrompt, conversation, merged_calls
from producer.cases.chosen_cases import CaseLines, Facts, choose_cases
from producer.cases.http_models import check_judge, check_request, check_session
from producer.cases.recorded import Outputs, outputs_of
from producer.cases.redacted_items import redacted_files, redacted_items, redacted_run
from producer.git_state import git_info
from producer.load.chunks import TYPICAL_CASE, Chunk, RunInput, chunk_size, dictionary_of, name_of, shape_of
from producer.load.kept_values import KeptValues
from producer.load.problems import Place, Problems
from producer.load.source import Source
from producer.options import CaseChoice, CaseItem, SubmitOptions, case_key
from producer.text import shown
from shared.contracts.case_config import BenchConfig, RunSettings, quorum_of
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
    Template,
    decode_case,
    encode_case,
)
from shared.contracts.merged_options import sent
from shared.errors import ConfigError, InputError
from shared.ledger import ChunkPlan
from shared.ledger.bounds import TARGETS_LAYOUT
from shared.plugins import CODE, lacking, plugin_key
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import FLEX, SERVICE_TIER, GivenPrice, tariff_of

_CASES: Final = "test_cases"
CHUNK_BYTES_MOST: Final = 2 << 20
"""Largest chunk, unless a single item is larger."""
OPTIONS_OF_RUN: Final = (
    "concurrency",
    "together",
    "timeout_s",
    "stream",
    "cache",
    "written_at",
    "all_repeats",
)
"""Settings that change how a run is processed, and not its results."""
STORED_SETTINGS: Final = RunSettings.model_fields.keys() & set(CaseRun.__struct_fields__) - {
    "temperature",
    "repeat",
}
"""Settings of a file that a run stores under their own names."""
TARGETS: Final = ("models", "judges", "check_models")
"""Settings whose values are targets by model."""
COPIED_VARS_BYTES: Final = 1_000
"""Variables of a bench up to this size are copied into each item and row; larger ones are stored once."""
ONE_LABEL: Final = "label: people's word is about one answer: give it with the recorded output of one model"
ONE_ANSWER: Final = "select_best: there is one model and one prompt, so that no answer is compared"


def load_cases(source: Source, options: SubmitOptions) -> RunInput:
    """Begins to load the cases of a configuration.

    Raises:
        InputError: it breaks the contract.
        ConfigError, UsageError: as `plan_run`.
    """
    plan = options.plan if isinstance(options.plan, PlannedRun) else plan_run(source, options.cases)
    for warning in plan.warnings:
        options.on_warning(warning)
    if plan.run.recorded:  # no model is waited for: whole chunks at a time, as many as there are workers
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
        files={**files, **dictionary, PLACES_FILE: plan.facts.places.stored()},
        layout=TARGETS_LAYOUT,
    )


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run, ready to be loaded."""

    run: CaseRun
    """Its settings."""
    asked: KeptValues[CasePayload]
    """Rendered items, as `_rendered` makes them; `repeat` counts their repeats."""
    facts: Facts
    """What the cases have in common."""
    prompts: Sequence[BenchPrompt]
    """Templates of what is sent; empty: cases are sent unchanged."""
    files: Mapping[str, bytes]
    """What items share, by hash: the images of the chosen cases, and large variables of the bench."""
    outputs: Outputs | None
    """Recorded outputs; None: models are asked."""
    warnings: Sequence[str]
    """Settings that are probably mistakes."""
    bench: Bench
    """The configuration as the file states it."""
    only: frozenset[CaseItem] | None = None
    """The only combinations of case, model and prompt that are run; None: all."""

    @property
    def total(self) -> int:
        """How many items there are."""
        if self.is_whole:
            return self.facts.answers * len(self.run.models) * max(1, len(self.prompts))
        return sum(len(self.models_of(each)) * each.repeat for each in self.asked)

    @property
    def is_whole(self) -> bool:
        """Whether each case is put to each model with each prompt."""
        return self.only is None and not self.bench.is_partial

    @property
    def quorums(self) -> Sequence[Quorum]:
        """The distinct quorums of the cases; empty if all answers are requested."""
        return [] if self.run.all_repeats else list(self.facts.quorums)

    def models_of(self, asked: CasePayload) -> list[str]:
        """Returns the models that are sent a case with its prompt."""
        models = [asked.model] if asked.model else self.run.models
        name, by = case_key(asked.case, asked.id), asked.prompt_id or ""
        found = self.bench.asked_of(models, asked.case, by)
        return [each for each in found if self.only is None or CaseItem(name, each, by) in self.only]

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names that gates can refer to: checks, prompts and tags."""
        prompts = [prompt.id for prompt in self.prompts]
        return {"check": list(self.facts.checks), "prompt": prompts, "tag": list(self.facts.tags)}

    def items(self) -> Iterator[CasePayload]:
        """Yields the items in the order of results: by model, by prompt, by case, by repetition.

        Where checks compare the answers to a case, the case comes before model and prompt.
        """
        if not self.bench.compares:
            yield from self._items_of(self.asked)
            return
        of_case = dict[int, list[int]]()
        for at, asked in enumerate(self.asked):
            of_case.setdefault(asked.case, []).append(at)
        for positions in of_case.values():
            found = list(self._items_of([self.asked[at] for at in positions]))
            for item in found:
                others = (each for each in found if each.repeat == item.repeat and each is not item)
                yield msgspec.structs.replace(item, rivals=[each.as_rival for each in others])

    def _items_of(self, several: Iterable[CasePayload]) -> Iterator[CasePayload]:
        """Yields the items of some cases with their prompts."""
        for model in self.run.models:
            for asked in several:
                if (asked.model or not self.is_whole) and model not in self.models_of(asked):
                    continue
                for repeat in range(asked.repeat):
                    recorded = (
                        self.outputs.of(asked.case, model, asked.prompt_id, repeat) if self.outputs else None
                    )
                    yield msgspec.structs.replace(asked, model=model, repeat=repeat, recorded=recorded)


def plan_run(source: Source, choice: CaseChoice) -> PlannedRun:
    """Reads a configuration and applies the options of the command line.

    Raises:
        InputError: it, or a file that it names, breaks the contract; or no case is left.
        ConfigError: as `read_bench`, or a cost cap cannot be enforced.
        UsageError: an option does not fit.
    """
    own, above = choice.validators_file, choice.settings
    bench = read_bench(source, validators_file=own, above=above, allow_code=choice.allow_code)
    outputs = outputs_of(bench, choice.outputs)
    models, only = _models(bench.config, choice, outputs), choice.only
    models = [model for model in models if only is None or any(item.model == model for item in only)]
    chosen = choose_cases(bench, choice)
    shared_vars = _shared_vars(bench.config.vars)
    fixed = above is not None and above.temperature is not None
    calls = merged_calls(bench.config, models, bench.prompts, fixed_temperature=fixed)
    run = msgspec.structs.replace(
        _settings(bench),
        shared_vars=next(iter(shared_vars), ""),
        models={model: _tested(bench, model, choice, calls.get(model, {})) for model in models},
        written_at=_written_at(bench, models, choice),
        prompts=[prompt.id for prompt in bench.prompts],
        templates={prompt.id: Template(prompt.system, prompt.turns) for prompt in bench.prompts},
        calls=calls,
        recorded=outputs is not None,
        stream=bench.settings.stream or bench.needs_stream or choice.is_timed,
        all_repeats=choice.all_repeats,
        prices=_prices(bench.config, models, choice),
    )
    with closing(bench.code):
        asked, facts = _rendered(bench, run, chosen, choice.hashes)
    run = msgspec.structs.replace(
        run,
        check_models={model: bench.judge(model) for model in _asked_beside(bench, facts)},
        mode=FREEFORM if run.schema is None and facts.is_freeform else STANDARD,
        has_quorums=bool(facts.quorums),
        cases=facts.cases,
    )
    run = msgspec.structs.replace(run, plugins=sorted(facts.plugins | _needed(run, facts) | bench.extras))
    _check_run(run, bench, has_expected=facts.has_expected)
    files = shared_vars | {name: data for name, data in bench.images.items() if name in facts.images}
    doubts = _warnings(bench, run, facts, outputs)
    plan = PlannedRun(run, asked, facts, bench.prompts, files, outputs, doubts, bench, only)
    if not plan.total:
        raise InputError("nothing is left to run", hint="what failed before is not in the file any more")
    return plan


def _warnings(bench: Bench, run: CaseRun, facts: Facts, outputs: Outputs | None) -> list[str]:
    """Names settings that are probably mistakes."""
    is_doubtful = facts.has_label and (outputs is None or len(run.models) > 1)
    missing = ", ".join(lacking(run.plugins, allow_code=True))  # without the permission nothing was read
    has_one = bench.compares and len(run.models) <= 1 >= len(bench.prompts)
    waits = f"the plug-in {missing} is not installed here: the run waits for a worker that has it"
    found = ((is_doubtful, ONE_LABEL), (has_one, ONE_ANSWER), (missing, waits))
    return [*bench.warnings, *(text for is_found, text in found if is_found)]


def _asked_beside(bench: Bench, facts: Facts) -> list[str]:
    """Names the models that checks ask, and that which compares answers."""
    return [*facts.check_models, *([found.model] if (found := bench.config.pairwise) else ())]


def _needed(run: CaseRun, facts: Facts) -> set[str]:
    """Names what the models that a run calls need of workers."""
    under_test = () if run.recorded else run.models.values()
    called = [*run.judges.values(), *map(run.check_models.__getitem__, facts.check_models), *under_test]
    clients = {plugin_key("clients", target.plugin) for target in called if target.plugin}
    return clients | ({CODE} if any(target.code for target in called) else set())


def _check_run(run: CaseRun, bench: Bench, *, has_expected: bool) -> None:
    """Checks that answers are kept if checks compare them, and every price known if there is a cost cap.

    Raises:
        ConfigError: the cache is off, or a price is not known.
    """
    if bench.compares and not run.cache:
        what = "select_best finds the answers of other models in the cache, which is off"
        raise ConfigError(what, hint="leave out `cache: false` and --no-cache")
    if run.max_cost is None:
        return
    judges = run.judges if has_expected else ()
    called = {**({} if run.recorded else run.models), **{name: run.judges[name] for name in judges}}
    for model, target in {**called, **run.check_models}.items():
        if not target.is_free and tariff_of(target.model, run.prices) is None:
            what = f"max_cost: the price of {shown(model)} is not known, so that no cap can be kept"
            given = "prices: {prompt_per_million: …, completion_per_million: …}"
            option = "give --price IN/OUT, or " if model in run.models and not run.recorded else ""
            raise ConfigError(what, hint=f"{option}write model_configs: {{{json.dumps(model)}: {{{given}}}}}")


def _shared_vars(written: Mapping[str, Any]) -> dict[str, bytes]:
    """Returns the variables of a bench as a file of the run, by its hash; empty if they are small."""
    encoded = msgspec.json.encode(written, order="deterministic")
    return {sha256(encoded).hexdigest(): encoded} if len(encoded) > COPIED_VARS_BYTES else {}


def _rendered(
    bench: Bench, run: CaseRun, chosen: Sequence[int], hashes: Mapping[int, CaseHashes]
) -> tuple[KeptValues[CasePayload], Facts]:
    """Renders every template, before anything is sent: by prompt, by model where code makes it, and by case.

    Args:
        bench: the configuration.
        run: its settings, except those that depend on cases.
        chosen: positions of the chosen cases.
        hashes: hashes of cases that come from another run; all others are computed.

    Raises:
        InputError: a template cannot be rendered, or a case has no input.
    """
    problems, facts = Problems(), Facts(CaseLines(bench.root))
    applications = [] if run.recorded else [target for target in run.models.values() if target.http]
    for target in (*applications, *run.judges.values()):
        problems.attempt(partial(check_session, target, bench.root))
    for judge in run.judges.values():
        problems.attempt(partial(check_judge, judge, bench.root))
    asked, of_bench = KeptValues[CasePayload](encode_case, decode_case), bench.config.vars
    is_whole, only_checked = len(chosen) == len(bench.cases), bench.only_checked()
    prompts = bench.prompts or (None,)
    blocks = [(each, model) for each in prompts for model in (run.models if each and each.make else ("",))]
    for number, (prompt, model) in enumerate(blocks):
        for at, case in enumerate(bench.cases) if is_whole else ((at, bench.cases[at]) for at in chosen):
            if not number:
                facts.add(at, case)
            if not bench.asked_of([model] if model else run.models, at, prompt.id if prompt else ""):
                continue
            known = hashes.get(at) or case.hashes(only_checked, of_bench)
            payload = problems.attempt(partial(_payload, at, case, prompt, run, of_bench, known, model))
            if payload is not None:
                asked.add(payload)
                for target in applications:
                    values = {**of_bench, **case.vars}
                    problems.attempt(partial(_check_sent, target, case.place, payload, run, values))
    problems.raise_found()
    return asked, facts


def _check_sent(
    target: ModelTarget, place: Place, asked: CasePayload, run: CaseRun, values: Mapping[str, Any]
) -> None:
    """Checks that the request to an application can be rendered."""
    system = run.system_prompt if asked.system is None else asked.system
    turns = asked.messages or [{"role": "user", "content": asked.input}]
    first = [{"role": "system", "content": system}] if system else []
    check_request(target, place, [*first, *turns], asked.input, values)


def _payload(  # noqa: PLR0917 - one call, above
    at: int,
    case: BenchCase,
    prompt: BenchPrompt | None,
    run: CaseRun,
    of_bench: Mapping[str, Any],
    hashes: CaseHashes,
    model: str,
) -> CasePayload:
    """Makes the item of a case, without repetition and recorded output; `model` is empty for any."""
    provider = {"id": run.models[model].model, "label": model} if model else {}
    filled = conversation(case, case.values(of_bench), prompt, run.system_prompt, provider=provider)
    return CasePayload(
        at,
        model,
        filled.input,
        id=case.id,
        prompt_id=prompt.id if prompt else None,
        system=None if filled.system == run.system_prompt else filled.system,
        messages=None if filled.messages is None else [dict(each) for each in filled.messages],
        images=list(case.images),
        vars=case.vars if run.shared_vars or not of_bench else {**of_bench, **case.vars},
        tags=list(case.tags),
        metadata=case.metadata,
        weight=case.weight,
        criteria=case.criteria,
        repeat=case.times,
        quorum=case.quorum,
        input_hash=hashes.input,
        expectation_hash=hashes.expectation,
    )


def settings_digest(run: CaseRun) -> str:
    """Returns a digest of the settings that affect results, for the idempotency key."""
    settings = {key: value for key, value in msgspec.to_builtins(run).items() if key not in OPTIONS_OF_RUN}
    for target in chain.from_iterable(settings[asked].values() for asked in TARGETS):
        del target["timeout_s"]
    return sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest()


def shape_of_cases(items: int, concurrency: int, quorums: Sequence[Quorum]) -> tuple[int, int]:
    """As `shape_of`, for cases with a quorum, whose answers are requested a few at a time.

    >>> shape_of_cases(1_000, 10, [Quorum(8, 10)]), shape_of_cases(20_000, 100, [Quorum(8, 10)])
    ((2, 10), (20, 34))
    """
    size, most = shape_of(items, concurrency)
    cases = -(-size // min(quorum.times for quorum in quorums))
    filled = -(-concurrency // (cases * min(quorum.left(0, 0) for quorum in quorums)))
    return size, max(most, 2 * filled if concurrency > 1 else 1)


def case_chunks(items: Iterator[CasePayload], size: int) -> Iterator[Chunk]:
    """Cuts a run's items into chunks, smaller ones if the items are large.

    The answers to a case with a quorum are in one chunk, so that one worker knows when its verdict is
    certain; only large ones are split, which may cost unnecessary calls. So are answers that are compared.

    >>> plans = [chunk.plan for chunk in case_chunks(iter([CasePayload(0, "m", "Hi")] * 3), 2)]
    >>> [(plan.first, list(plan.parts)) for plan in plans]
    [('case 1 · m', ['0', '1']), ('case 1 · m', ['2'])]
    """
    number, weight, first, compared = 0, 0, "", -1
    held = dict[str, bytes]()
    for index, item in enumerate(items):
        payload = encode_case(item)
        is_full = len(held) >= size and (item.quorum is None or not item.repeat) and item.case != compared
        compared = item.case if item.rivals else -1
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
    """Returns the settings that do not depend on cases."""
    config, settings = bench.config, bench.settings
    return CaseRun(
        name=config.name,
        system_prompt=config.system_prompt or "",
        schema=bench.schema,
        validators=bench.validators,
        judges={judge: bench.judge(judge) for judge in settings.judges},
        judge_params=sent(config.judge_params.given),
        transforms=bench.transforms,
        pairwise={} if config.pairwise is None else config.pairwise.model_dump(),
        temperature=DEFAULT_TEMPERATURE if settings.temperature is None else settings.temperature,
        repeat=settings.times,
        quorum=quorum_of(settings.repeat),
        **settings.model_dump(include=STORED_SETTINGS),
    )


def _tested(
    bench: Bench, model: str, choice: CaseChoice, calls: Mapping[str, Mapping[str, Any]]
) -> ModelTarget:
    """Returns where a model under test is called; `--api-base` applies to all, with OpenAI's protocol.

    Args:
        bench: the configuration.
        model: its name.
        choice: options of the command line.
        calls: the options of its calls by prompt.
    """
    tiers = {call.get("params", {}).get(SERVICE_TIER) for call in calls.values()}
    own, above = bench.target(model, FLEX if FLEX in tiers else None), choice.model_config
    if above is None or own.is_hosted:
        return own
    base, variable = above.api_base or own.api_base, above.api_key_env or own.api_key_env
    target = msgspec.structs.replace(own, api_base=base, api_key_env=variable)
    return target.compatible() if above.api_base else target


def _written_at(bench: Bench, models: Sequence[str], choice: CaseChoice) -> dict[str, str]:
    """Names the option or the line that gives the `api_base` of each model that has one."""
    if choice.model_config is not None and choice.model_config.api_base:
        return dict.fromkeys(models, "--api-base")
    return {
        model: str(bench.root.at("model_configs", model, "api_base"))
        for model in models
        if bench.config.config_of(model).api_base
    }


def _prices(config: BenchConfig, models: Sequence[str], choice: CaseChoice) -> dict[str, GivenPrice]:
    """Returns the given prices; one on the command line applies to all models under test."""
    today = datetime.now(UTC).date().isoformat()
    given = config.prices_on(today)
    if choice.model_config is not None and choice.model_config.prices:
        called = (config.config_of(model).model or model for model in models)
        given |= dict.fromkeys(called, choice.model_config.prices.given)
    return given


def _models(config: BenchConfig, choice: CaseChoice, outputs: Outputs | None) -> list[str]:
    """The models of the run, each once.

    With recorded outputs: the configured models and all others with an output; if no configured model has
    one, only the models with an output.
    """
    named = list(dict.fromkeys(choice.models or config.model_names))
    if outputs is None:
        return named
    recorded = list(outputs.models)
    if choice.models:
        return named
    return list(dict.fromkeys([*named, *recorded])) if set(named) & set(recorded) else recorded
