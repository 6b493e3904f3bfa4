"""The loaders and parsers that are fuzzed: good documents to start from, and what reading bytes may end in.

tests/property/test_parsers.py tries each for a bounded number of examples, `make fuzz` for a given time.
Longer than 300 lines, because it is a table of all parsers with their documents.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from producer.aggregate.gates import parse_gate
from producer.cases.bench_cases import BenchCase, BenchCases
from producer.cases.bench_config import check_schema
from producer.cases.bench_files import TextFile, check_validators, text_lines
from producer.cases.bench_files import decoded as text_of
from producer.cases.data_rows import Columns, ReadValue, as_written, case_of, cell, json_rows, table_rows
from producer.cases.load import plan_run
from producer.cases.recorded import read_recorded
from producer.cli.options.choices import price_of
from producer.env_files import variables_in
from producer.load.baselines import encode_baseline, read_baselines
from producer.load.detect import detect_kind
from producer.load.problems import Place, Problems
from producer.load.source import Source
from producer.load.strict_json import parse_json
from producer.options import CaseChoice
from shared.codecs.json_pointers import at
from shared.codecs.parked_items import decode_parked
from shared.contracts.call_options import Params
from shared.contracts.case_run import CasePayload, encode_case
from shared.contracts.merged_options import merge, sent, split_temperature
from shared.contracts.query_environment import api_url, delay_s
from shared.contracts.query_vocabulary import id_order
from shared.errors import ConfigError, InputError, UsageError, ValidatorSecurityError, WrongInput
from shared.runs.waiting import describe_parked
from shared.scrubbing import kept
from shared.server.redis_url import mask_password, parse_redis_url
from shared.settings import Settings, variable_of
from shared.upstream.addresses import address_problem, with_path
from shared.upstream.limits import Scope, limit_key
from shared.upstream.model_target import ModelTarget
from tests.support.turn_files import read_turns
from worker.breakpoint.model_reply import read_reply as read_model_reply
from worker.breakpoint.turn_wire import decode_turns
from worker.queries.reply import read_reply
from worker.sandbox.child import RETURNED, ChildAnswer, failure_of
from worker.upstream.completion import StreamReader, WireProtocol, decoded, error_text, read_whole
from worker.upstream.embeddings import read_embeddings
from worker.upstream.endpoints import model_endpoint
from worker.upstream.failures import UpstreamError
from worker.upstream.protocols.wire_protocols import WIRE_PROTOCOLS
from worker.upstream.retry_after import MAX_WAIT_S, read_retry_after, requested_wait_s
from worker.validation.checks import Subject, parse_checks
from worker.validation.checks.equivalent import read_verdict
from worker.validation.checks.walks import needs_sandbox
from worker.validation.extraction import ExtractionError, extract
from worker.validation.json_path import JsonPathError, select
from worker.validation.pairwise import read_choice
from worker.validation.schema import SchemaValidator
from worker.validation.scoring import run_deterministic

NAME: Final = "stdin"
"""What errors call a document that came as a stream."""
SETTINGS: Final = tuple(
    variable_of(name)
    for name in (
        "redis_url",
        "broker_url",
        "lease_s",
        "processes",
        "log_level",
        "data_dir",
        "allowed_hosts",
        "results_ttl_s",
        "flower_basic_auth",
    )
)  # fmt: skip - a list of words


class Target(NamedTuple):
    """Something that reads bytes."""

    read: Callable[[bytes], object]
    """Reads them, and proves what it can of the value."""
    errors: tuple[type[Exception], ...]
    """How it may refuse; anything else is a bug."""
    seeds: tuple[bytes, ...]
    """Good documents."""


def source_of(data: bytes) -> Source:
    """Bytes as standard input."""
    return Source("-", stdin=BytesIO(data))


def _placed(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Demands that every refusal names the file, in one printable line, and says how to mend it."""

    def proved(data: bytes) -> object:
        try:
            return read(data)
        except InputError as error:
            if not error.message.startswith(NAME) or not error.hint:
                raise AssertionError(f"{error.message!r} names no place, or no way to mend it") from None
            raise

    return proved


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Reads text, with everything that a Python text may hold."""
    return lambda data: read(data.decode(errors="surrogateescape"))


def _cases(name: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> list[bytes]:
        problems, columns = Problems(), Columns({})
        lines = text_lines(iter([data]), f"{NAME}.{name}")
        is_table = name == "csv"
        read: ReadValue = cell if is_table else as_written
        rows = (
            table_rows(f"{NAME}.{name}", lines, columns, problems)
            if is_table
            else json_rows(f"{NAME}.{name}", lines, problems)
        )
        cases = (problems.attempt(partial(case_of, row, columns, read)) for row in rows)
        found = [case for case in cases if case is not None]
        problems.raise_found()
        return [encode_case(CasePayload(0, "m", case.input or "", criteria=case.criteria)) for case in found]

    return read


def _plan(data: bytes) -> None:
    plan = plan_run(source_of(data), CaseChoice())
    json.dumps(msgspec.to_builtins(plan.run))
    for item, _ in zip(plan.items(), range(100), strict=False):
        encode_case(item)


def _outputs(data: bytes) -> object:
    cases = BenchCases(Place(NAME))
    cases.add(BenchCase(Place(NAME), "one"))
    cases.add(BenchCase(Place(NAME)))
    return read_recorded(NAME, text_lines(iter([data]), NAME), cases)


def _schema(data: bytes) -> None:
    try:
        schema = parse_json(data.decode())
    except (ValueError, RecursionError):
        return
    check_schema(NAME, schema)
    SchemaValidator(schema)


def _settings(text: str) -> None:
    for variable in SETTINGS:
        try:
            repr(Settings.from_environment({variable: text}))
        except ConfigError as error:
            if variable not in error.message:
                raise AssertionError(f"{error.message!r} does not name {variable}") from None


def _variables(data: bytes) -> None:
    found = variables_in(data.decode("utf-8-sig")).found
    assert "\0" not in "".join([*found, *found.values()])


def _urls(text: str) -> None:
    mask_password(text)
    if not address_problem(text):
        with_path(text, "/chat/completions")
        limit_key(text)
        model_endpoint(ModelTarget("m", api_base=text), "")


def _reply_body(data: bytes) -> None:
    reply = decoded(data)
    error_text(reply)
    for protocol in WIRE_PROTOCOLS.values():
        with suppress(UpstreamError):
            completion = read_whole(protocol, reply)
            completion.text.encode()
            completion.reasoning.encode()
            json.dumps([completion.tool_calls, completion.refusal], ensure_ascii=False).encode()


def _embeddings(data: bytes) -> None:
    reply = decoded(data)
    for count in (1, 2):
        try:
            assert len(read_embeddings(reply, count)) == count
        except UpstreamError as error:
            str(error).encode()


def _options(data: bytes) -> None:
    written = Params.model_validate(parse_json(data.decode()))
    merged = sent(merge(written.given, written.given))
    temperature, others = split_temperature(merged, 0.1)
    json.dumps([temperature, others, written.headers], allow_nan=False).encode()


def _stream(data: bytes) -> None:
    for protocol in WIRE_PROTOCOLS.values():
        with suppress(UpstreamError):
            _stream_of(protocol, data)


def _stream_of(protocol: WireProtocol, data: bytes) -> None:
    whole, parts = StreamReader(protocol), StreamReader(protocol)
    whole.feed(data + b"\n")
    for start in range(0, len(data), 1 + len(data) // 7):
        parts.feed(data[start : start + 1 + len(data) // 7])
    parts.feed(b"\n")
    completion = whole.finish()
    completion.text.encode()
    json.dumps([completion.tool_calls, completion.refusal], ensure_ascii=False).encode()
    assert parts.finish() == completion


def _wait(text: str) -> None:
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens")
    for wait in (
        read_retry_after(text, now_s=1e9),
        *(requested_wait_s({name: text}, now_s=1e9) for name in names),
    ):
        assert wait is None or 0 <= wait <= MAX_WAIT_S


def _query_reply(data: bytes) -> None:
    for status in (200, 400, 429, 503):
        json.dumps(read_reply(status_code=status, body=data, latency_ms=1).as_document()).encode()


def _names(text: str) -> None:
    model_endpoint(ModelTarget(text), "account")
    model_endpoint(ModelTarget(text, api_base="http://localhost:1/v1"), "")
    Scope.parse(text)
    id_order(text)
    describe_parked([decode_parked(text)])
    at({"a": [{"b": 1}]}, text)


def _answer(text: str) -> None:
    answer = ChildAnswer(text[:1].encode(errors="replace")[:1], text[1:])
    if answer.kind in RETURNED:
        repr(RETURNED[answer.kind](answer.text))
    else:
        failure_of(answer, "the check")


def _checks(text: str) -> None:
    """Reads checks, and evaluates those that need no sandbox on the text itself."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return
    checks = parse_checks(raw)
    if not needs_sandbox(checks):
        run_deterministic(checks, Subject(text))


def _extract(text: str) -> None:
    for lenient in (False, True):
        try:
            json.dumps(extract(text, lenient=lenient).value, ensure_ascii=False).encode()
        except ExtractionError as error:
            str(error).encode()


TURN: Final = (
    b'{"threadId":"t-1","messageId":"m1","message":"Let us ship on Friday",'
    b'"ts":"2026-02-01T10:00:00Z","role":"user","signals":'
    b'{"updatedAt":"2026-02-01T10:00:00Z","items":[{"endMessageId":"m1","kind":"decision_made","confidence":"high","source":"model"}]},"meta":{"a":[1,{"b":null}]}}'
)
WITH_MEMENTO: Final = (
    b'{"threadId":"t-1","message":"ok","context":{"thread_memento":{"mementoId":"m","threadId":"t-1",'
    b'"createdTs":"2026-02-01T00:00:00Z","version":"memento-v0.2","arc":"a","active":["b"],"parked":[],'
    b'"decisions":[],"next":[],"affect":{"points":[{"endMessageId":"m1","label":"insight","intensity":0.7,'
    b'"confidence":"high","source":"sentinel"}],"rollup":{"phase":"peak","intensityBucket":"high",'
    b'"updatedAt":"2026-02-01T00:00:00Z"}}}},"thread_memento_etag":"1"}'
)
BENCH: Final = (
    b'name: n\nsystem_prompt: "s"\nmodels: [m, "two words"]\nmodel_configs:\n  m: {api_base: "http://h:1/v1"}\n'
    b"config: {concurrency: 2, judge_model: null}\ntest_cases:\n"
    b"  - id: a\n    input: |\n      Hi\n    expected: {a: [1, 2.5]}\n"
    b'  - {input: "x", regex_pattern: "a+(b|c)", reference: &r "yes"}\n'
)
COMPLETION: Final = (
    (
        b'{"choices":[{"index":0,"message":{"content":"<think>a</think>Hi","tool_calls":null},'
        b'"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}'
    ),
    b'{"error":{"message":"slow down","code":"429"}}',
    b'{"choices":[{"message":{"content":[{"type":"text","text":"Hi"},{"type":"thinking","thinking":[]}]}}]}',
    (
        b'{"choices":[{"message":{"content":null,"refusal":"No.","tool_calls":[{"id":"c1","type":"function",'
        b'"function":{"name":"f","arguments":"{\\"a\\":1}"}}]},"finish_reason":"tool_calls"}]}'
    ),
)
STREAM: Final = (
    b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}\n\n: ping\r\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
    b"data: [DONE]\n\n"
)
STREAMED_CALLS: Final = (
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1",'
    b'"function":{"name":"f","arguments":"{"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"refusal":"No."},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
)
VALIDATOR: Final = (
    b'import re\n\ndef good(output: str):\n    return bool(re.search("a", output)), f"{output!r}"\n'
)
SCHEMA: Final = (
    b'{"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"pattern":"^a+$"}},'
    b'"required":["a"]}'
)
BASELINES: Final = (
    b'{"version":"1.0","queries":[{"id":"Q-01","category":"booking","query":"How?","is_oos":false,'
    b'"expected_docs":["BK-01"],"must_contain":["a"],"must_not_contain":[],"should_contain":[],"oos_decline_signals":[]}]}'
)
ADDRESSES: Final = (
    b"redis://me:p%40ss@[::1]:6379/2",
    b"rediss://db.example:6380?ssl_cert_reqs=none",
    b"unix:///run/r.sock?db=1",
    b"sentinel://:pw@a:26379,b:26379/master/1",
    b"https://h:8443/v1?x=1",
)  # fmt: skip - a list of words
WAITS: Final = (
    b"120",
    b"0.5",
    b"Thu, 01 Jan 2026 00:01:00 GMT",
    b"6m0.5s",
    b"17ms",
    b"1700000000",
    b"Thu, 32 Jan 10000 25:61:00 -9999",
)
OUTPUTS: Final = (
    b'{"a": [1, {"b": "c"}]}',
    b'Sure!\n```json\n{"code": "```"}\n```\nBye',
    b"<think>{}</think> It is {'a': 1}. {\"a\": 1}",
    b"PASS",
    b'{"response": "Hi", "affect_signal": {"label": "insight", "intensity": "0.7"}, "shape": {"arc": "a"}}',
)  # fmt: skip - a list of words
NAMES: Final = (
    b"openai/gpt-4o",
    b"mine @http://localhost:1/v1 1f2e",
    b"upstream_timeout 1 350 rate",
    b"judge 2 a 0 350|1  0 0",
    b'{"reason":"retry","judges":[[2,0,350,"upstream_timeout"]]}',
    b"/a/0/b",
    b"Q-10",
)

TARGETS: Final[Mapping[str, Target]] = {
    "kind": Target(lambda data: detect_kind(source_of(data)), (InputError,), (TURN, BENCH, BASELINES)),
    "turns": Target(
        _placed(lambda data: read_turns(source_of(data))),
        (InputError,),
        (TURN, WITH_MEMENTO, TURN + b"\n" + TURN),
    ),
    "turn wire": Target(decode_turns, (), (TURN, WITH_MEMENTO, TURN + b"\n" + TURN)),
    "baselines": Target(
        _placed(lambda data: [encode_baseline(query) for query in read_baselines(source_of(data)).queries]),
        (InputError,),
        (BASELINES, b"[" + BASELINES[27:-1]),
    ),
    "bench": Target(
        _plan,
        (InputError, ConfigError, UsageError, ValidatorSecurityError),
        (BENCH, b'{"name":"n","models":["m"]}'),
    ),
    "cases.csv": Target(
        _placed(_cases("csv")), (InputError,), (b'input,expected,id\n"Hi, you","{""a"": 1}",x\nHo,,y\n',)
    ),
    "cases.jsonl": Target(
        _placed(_cases("jsonl")),
        (InputError,),
        (b'{"input": "Hi", "expected": {"a": [1]}}\n\n{"input": "Ho", "id": "b"}',),
    ),
    "recorded outputs": Target(
        _placed(_outputs),
        (InputError,),
        (b'{"case": 0, "model": "m", "output": "x", "repeat": 1}\n{"case":"one","model":"n","output":""}',),
    ),
    "schema": Target(_schema, (ConfigError, UnicodeDecodeError), (SCHEMA,)),
    "validators": Target(
        _placed(lambda data: check_validators(TextFile(NAME, text_of(NAME, data)))),
        (InputError, ValidatorSecurityError),
        (VALIDATOR,),
    ),
    "settings": Target(
        _text(_settings), (), (*ADDRESSES, b"5", b"0.5", b"info", b"user:password", b"a.example, b.example")
    ),
    "env file": Target(
        _placed(_variables),
        (InputError, UnicodeDecodeError),
        (b"# keys\nA=1\nexport B='two words' # note\n",),
    ),
    "redis url": Target(_text(parse_redis_url), (ConfigError,), ADDRESSES),
    "addresses": Target(_text(_urls), (), ADDRESSES),
    "limit key": Target(_text(limit_key), (UsageError,), (*ADDRESSES, *NAMES)),
    "api url": Target(_text(lambda text: api_url(text, {})), (ConfigError,), ADDRESSES),
    "delay": Target(
        _text(lambda text: delay_s(None, {"EVAL_DELAY_SECONDS": text})), (ConfigError,), (b"5", b"30")
    ),
    "retry-after": Target(_text(_wait), (), WAITS),
    "reply": Target(_reply_body, (UpstreamError,), COMPLETION),
    "embeddings": Target(
        _embeddings,
        (UpstreamError,),
        (b'{"data":[{"index":1,"embedding":[1,2.5]},{"index":0,"embedding":[1e-3,-2]}],"usage":{}}',),
    ),
    "stream": Target(_stream, (UpstreamError,), (STREAM, STREAMED_CALLS)),
    "query reply": Target(
        _query_reply, (), (b'{"answer": "Yes.", "sources": [{"url": "x"}], "metadata": {"latencyMs": 3}}',)
    ),
    "json in an output": Target(_text(_extract), (), OUTPUTS),
    "reply to a turn": Target(_text(read_model_reply), (), OUTPUTS),
    "checks": Target(
        _text(_checks),
        (WrongInput,),
        (
            b'[{"contains":"Paris","ignore_case":true,"weight":2},"refusal",{"not":{"regex":"(?i)x"}}]',
            b'[{"number":2.1,"tolerance":"5%","json_path":"$.a[?@.b>1]"},{"length":{"min":1,"max":2}}]',
            b'[{"any":[{"tool_call":{"name":"f","arguments":{"json_equals":{"a":1}}}}]},{"rouge_l":"a","at_least":0.5}]',
        ),
    ),
    "JSONPath": Target(
        _text(lambda text: select(text, {"a": [{"b": 1, "c": "d"}, 2, None], "e": {"f": []}})),
        (JsonPathError,),
        (
            b"$.a[?@.b==1 && @.c != 'x']",
            b"$..[0:2,'e',*]",
            b'$["a"][?length(@.c)<count($..*)]',
            b"$.a[?!@.b]",
        ),
    ),
    "verdict": Target(_text(read_verdict), (), (*OUTPUTS, b"PASS.", b"**FAIL**, not PASS")),
    "choice": Target(_text(read_choice), (), (*OUTPUTS, b'{"winner":"A"}', b'It is {"winner": ["tie"]}')),
    "call options": Target(
        _options,
        (ValidationError, ValueError, RecursionError),  # the last as `parse_json` says, which loaders catch
        (
            (
                b'{"temperature":null,"stop":["a"],"tools":[{"type":"function","function":{"name":"f"}}],'
                b'"extra_body":{"a":1},"headers":{"X-A":"env:B"}}'
            ),
        ),
    ),
    "names": Target(_text(_names), (), NAMES),
    "sandbox answer": Target(
        _text(_answer), (), (b"c11", b"c9", b"i12", b"oMatch", b"tsaid", b"xdied", b"I0.5\nhalf")
    ),
    "gate": Target(
        _text(parse_gate), (UsageError,), (b"pass_rate<0.9", b"error_rate > 1%", b"latency_p95_ms>=5000")
    ),
    "price": Target(_text(price_of), (UsageError,), (b"0.15/0.60", b"nan/1", b"1e9/2")),
    "secrets": Target(
        _text(
            lambda text: kept(text, {"A_KEY": "abcdefgh", "URL": "a://b:cdefghij@k"}).encode(errors="replace")
        ),
        (),
        (b"Bearer abc.def-123 redis://a:b@c?api_key=x", b"eyJhbGciOi.eyJzdWIiOi.c2ln"),
    ),
}  # fmt: skip - a table
"""By name."""


def read(target: Target, data: bytes) -> Any:
    """Reads bytes; what is refused as it may be is None."""
    try:
        return target.read(data)
    except target.errors:
        return None
