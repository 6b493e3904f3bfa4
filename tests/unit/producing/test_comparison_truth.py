"""What differs between two runs is named wherever it was edited, and chance only where nothing was."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from producer.cli.comparison_output import print_comparison
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from producer.report.comparison.configurations import (
    query_configuration,
    query_inputs,
    turn_configuration,
    turn_inputs,
)
from producer.report.comparison.contents import Contents
from producer.report.comparison.to_html import comparison_page
from producer.report.comparison.to_markdown import comparison_markdown
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import SNAPSHOT_KEY as QUERY_KEY
from shared.contracts.query_run import QueryRun
from shared.kinds import QUERIES, TURNS, Kind
from shared.runs import TurnRow
from tests.support.benches import plan, write
from tests.support.comparisons import comparison, planned
from tests.support.query_results import answered
from tests.support.run_infos import info

BENCH: Final = """
name: capitals
system_prompt: Be friendly.
models: [fast, careful]
model_configs:
  fast: {api_base: "http://localhost:3000/v1", params: {max_tokens: 150}}
  careful: {api_base: "http://localhost:3000/v1", params: {max_tokens: 150}}
prompts:
  - {id: short, system: "Answer with one word.", user: "What is the capital of {{ country }}"}
  - {id: plain, user: "Capital of {{ country }}?"}
config: {judge_model: null}
test_cases:
  - {id: peru, vars: {country: Peru}, checks: [{contains: Lima}]}
  - {id: norway, vars: {country: Norway}, system_prompt: Be brief., checks: [{contains: Oslo}]}
"""


def page_text(contents: Contents) -> str:
    """The page of a comparison."""
    return b"".join(comparison_page(contents)).decode().replace("&#34;", '"')


@contextmanager
def edited(folder: Path, *edits: tuple[str, str], passes: bool = False) -> Iterator[Contents]:
    """Compares the bench with what edits make of it; all answers of the second run fail."""
    text = BENCH
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    before, one = planned(plan(write(folder, BENCH)))
    after, other = planned(plan(write(folder, text)), passes=passes)
    with comparison(before, after, configurations=(one, other)) as contents:
        yield contents


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "one word",
            "one polite sentence",
            'prompt short: system "Answer with one word." → "Answer with one polite sentence."',
        ),
        ("Be brief.", "Be rude.", "input of case norway"),
        (
            "What is the capital",
            "Name the capital",
            'prompt short: user "What is the capital of {{ country }}" → "Name the capital of {{ country }}"',
        ),
        ("max_tokens: 150", "max_tokens: 50", "params.max_tokens 150 → 50"),
        ("contains: Lima", "contains: Peru", "expectation of case peru"),
    ],
    ids=["prompt's system", "case's system", "prompt's user", "option", "check"],
)
def test_one_edit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    """The terminal, Markdown and the page name the edited setting, and only that."""
    with edited(tmp_path, (old, new)) as contents:
        expected = f"One thing differs: {sentence}" + ("" if sentence.endswith('."') else ".")
        assert contents.differences == expected
        print_comparison(Output(GlobalOptions()), contents, 20)
        markdown = "\n".join(comparison_markdown(contents))
        page = page_text(contents)
    assert expected in " ".join(capsys.readouterr().out.split())
    assert expected in markdown.replace("\\", "")
    assert expected in page


def test_nothing_is_chance_that_was_edited(tmp_path: Path) -> None:
    """Only where everything that was sent and every criterion is the same, chance is left."""
    with edited(tmp_path) as contents:
        assert (
            contents.differences == "No setting differs: what changed is chance, or happened behind the API."
        )
    with edited(tmp_path, passes=True) as contents:
        assert contents.differences == "No setting differs."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Be friendly.", "Be stern.", 'One thing differs: system prompt "Be friendly." → "Be stern."'),
        ("country: Peru", "country: Chile", "One thing differs: input of case peru."),
        (
            'careful: {api_base: "http://localhost:3000',
            'careful: {api_base: "http://localhost:4000',
            "endpoint of careful http://localhost:3000/v1 → http://localhost:4000/v1",
        ),
        (
            'careful: {api_base: "http://localhost:3000/v1"',
            'careful: {api_base: "http://localhost:3000/v1", protocol: anthropic',
            "endpoint.protocol of careful none → anthropic",
        ),
        (
            'careful: {api_base: "http://localhost:3000/v1"',
            'careful: {http: {url: "http://localhost:3000/v1", answer: /text}',
            "One thing differs: endpoint.http of careful",
        ),
        ("id: peru,", "id: peru, weight: 3,", "One thing differs: weight of case peru."),
        ("id: peru,", "id: peru, at_least: 0.5,", "One thing differs: expectation of case peru."),
        ("judge_model: null", "judge_model: openai/gpt-4o", "judges none → openai/gpt-4o"),
        ("judge_model: null", "judge_model: null, stream: true", "streaming false → true"),
        (
            "params: {max_tokens: 150}}\n  careful",
            "params: {max_tokens: 50}}\n  careful",
            "One thing differs: params.max_tokens of fast 150 → 50.",
        ),
        ("fast: {", "fast: {headers: {X-Team: a}, ", "headers.X-Team of fast none → a value"),
    ],
)
def test_other_edits_are_named_too(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """Endpoints, options of one model, judges, weights and thresholds; of headers not the values."""
    with edited(tmp_path, (old, new)) as contents:
        assert sentence in contents.differences


def test_a_variable_of_checks_alone_is_no_input(tmp_path: Path) -> None:
    """A column with the right answer decides the verdict, and one of the prompt the answer."""
    bench = BENCH.replace("checks: [{contains: Lima}]", 'checks: [{contains: "{{ capital }}"}]').replace(
        "{country: Peru}", "{country: Peru, capital: Lima}"
    )
    before, one = planned(plan(write(tmp_path, bench)))
    after, other = planned(
        plan(write(tmp_path, bench.replace("capital: Lima", "capital: Cusco"))), passes=False
    )
    with comparison(before, after, configurations=(one, other)) as contents:
        text = "\n".join(comparison_markdown(contents))
        page = page_text(contents)
        assert contents.differences == "One thing differs: expectation of case peru."
        assert contents.document.regressions == ()
    assert "| passed | failed | expectation changed; " in text
    assert page.count('<p class="note1">expectation changed</p>') == 4


def test_two_edits_are_both_named(tmp_path: Path) -> None:
    """A prompt explains what it renders, and not what cases changed besides."""
    edits = (
        ("one word", "two words"),
        ("Name", "Name"),
        ("country: Peru", "country: Chile"),
        ("Be brief.", "Hm."),
    )
    with edited(tmp_path, *[edit for edit in edits if edit[0] in BENCH]) as contents:
        sentence = contents.differences
    assert sentence == (
        'Two things differ: prompt short: system "Answer with one word." → "Answer with two words.";'
        " input of cases norway and peru."
    ).replace("Two", "2")


def lines_of(
    kind: Kind, snapshot: Mapping[str, Any], items: Sequence[Mapping[str, Any]], word: str
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Lines and settings of a run of queries or turns."""
    run = replace(info(), kind=kind, snapshot=dict(snapshot))
    payloads = [msgspec.json.encode(item) for item in items]
    if kind is QUERIES:
        results = [answered(item["id"], word) for item in items]
        known = [query_inputs(run)(ItemRow(at, "p", b"", payload=each)) for at, each in enumerate(payloads)]
        configuration = query_configuration(run)
    else:
        results = [{**item, "decision": word, "reason": "", "response": None} for item in items]
        rows = [TurnRow(at, "m2u", b"", 0, 0, 1, each) for at, each in enumerate(payloads)]
        known = [found for row in rows if (found := turn_inputs(run)(row))]
        configuration = turn_configuration(run)
    lines = [
        {"outcome": "passed", "error": None, "result": result, "known": each}
        for each, result in zip(known, results, strict=True)
    ]
    return lines, configuration


QUERY: Final = {"id": "Q-1", "query": "How?", "is_oos": False, "must_contain": ["14"], "must_not_contain": []}
TURN: Final = {"threadId": "t", "messageId": "1", "message": "Hi", "affectSignal": "calm"}


@pytest.mark.parametrize(
    ("item", "run", "sentence"),
    [
        ({}, {}, "No setting differs."),
        ({"query": "Why?"}, {}, "One thing differs: input of query Q-1."),
        ({"must_contain": ["30"]}, {}, "One thing differs: expectation of query Q-1."),
        ({}, {"query_at": "/text"}, "One thing differs: place of the query /query → /text."),
        ({}, {"headers": {"X-Tenant": "b"}}, "One thing differs: headers.X-Tenant (another value)."),
        ({}, {"places": {"answer": "/b"}}, "One thing differs: places in the reply.answer /a → /b."),
    ],
)
def test_queries_are_truthful(item: Mapping[str, Any], run: Mapping[str, Any], sentence: str) -> None:
    """Texts, criteria and the shape of requests and replies of queries are compared."""
    settings = QueryRun(headers={"X-Tenant": "a"}, places={"answer": "/a"})
    sides = [
        lines_of(QUERIES, {QUERY_KEY: msgspec.to_builtins(each)}, [{**QUERY, **changes}], "no")
        for each, changes in ((settings, {}), (msgspec.structs.replace(settings, **run), item))
    ]
    with comparison(
        sides[0][0], sides[1][0], kind=QUERIES, configurations=(sides[0][1], sides[1][1])
    ) as found:
        assert found.differences == sentence


@pytest.mark.parametrize(
    ("item", "snapshot", "word", "sentence"),
    [
        ({}, {}, "must", "No setting differs."),
        ({"message": "Bye"}, {}, "skip", "One thing differs: input of thread t."),
        ({"affectSignal": "angry"}, {}, "skip", "One thing differs: input of thread t."),
        ({}, {"summary_policy": "turns"}, "must", "One thing differs: summary policy guardrail → turns."),
        (
            {},
            {},
            "skip",
            "No setting differs, and the turns are the same: another version of the rules decided.",
        ),
    ],
)
def test_turns_are_truthful(
    item: Mapping[str, Any], snapshot: Mapping[str, Any], word: str, sentence: str
) -> None:
    """Messages and signals of turns are compared; rules have no chance."""
    base = {"summary_policy": "guardrail"}
    before = lines_of(TURNS, base, [TURN], "must")
    after = lines_of(TURNS, {**base, **snapshot}, [{**TURN, **item}], word)
    with comparison(before[0], after[0], kind=TURNS, configurations=(before[1], after[1])) as found:
        assert found.differences == sentence


def test_ids_of_named_runs_are_whole_at_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and ids each have a column, and neither is cut to what nobody recognises."""
    monkeypatch.setattr(Output, "width", 80)
    with edited(tmp_path) as contents:
        one, other = contents.sides
        ids = ("eval-2026-11-22T18-10-27", "eval-2026-11-22T18-20-31")
        named = (
            one._replace(name=ids[0], label="baseline, gpt-4o-mini"),
            other._replace(name=ids[1], label="careful prompt"),
        )
        print_comparison(Output(GlobalOptions()), replace(contents, sides=named), 20)
    head, *rows = capsys.readouterr().out.splitlines()[:3]
    assert head.split()[:2] == ["RUN", "ID"]
    assert [
        f"{row[3:].split('  ')[0]} is {run}" for row, run in zip(rows, ids, strict=True) if run in row
    ] == [
        f"baseline, gpt-4o-mini is {ids[0]}",
        f"careful prompt is {ids[1]}",
    ]
    assert max(map(len, rows)) <= 80
