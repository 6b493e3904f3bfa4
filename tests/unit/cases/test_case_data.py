"""Cases in files of their own: forms, columns that are fields or variables, patterns, tags."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from producer.load.kept_values import FEW
from shared.contracts.case_run import CasePayload
from tests.support.benches import HEAD, plan, refusal, write

ROWS: Final[list[dict[str, Any]]] = [
    {
        "id": "fr",
        "input": "Capital of France?",
        "tags": ["eu", "easy"],
        "weight": 2.0,
        "expected": {"capital": "Paris"},
        "metadata": {"by": "Ann"},
        "vars": {"country": "France", "note": ""},
    },
    {
        "id": "pe",
        "input": "Capital of Peru?",
        "vars": {"country": "Peru", "note": "a;b"},
        "metadata": {"by": "Bob"},
    },
]
HEADER: Final = "id,input,tags,weight,expected,metadata.by,vars.country,note"
TABLE: Final = (
    f"{HEADER}\n"
    'fr,Capital of France?,eu; easy;,2,"{""capital"": ""Paris""}",Ann,France,\n'
    "pe,Capital of Peru?,,,,Bob,Peru,a;b\n"
)
BENCH: Final = f"{HEAD}test_cases_file: "


def cases(path: Path, **choice: Any) -> list[CasePayload]:
    """The items of a bench, which has one model."""
    return list(plan(path, **choice).items())


def written(folder: Path, form: str) -> None:
    """Writes the rows in one form."""
    flat = [{**row, "country": row["vars"]["country"], "note": row["vars"]["note"]} for row in ROWS]
    for row in flat:
        del row["vars"]
    path = folder / f"c.{form}"
    match form:
        case "csv":
            path.write_text(TABLE)
        case "tsv":
            lines = [
                *HEADER.split(","),
                *("fr", "Capital of France?", "eu; easy;", "2", '{"capital": "Paris"}', "Ann", "France", ""),
                *("pe", "Capital of Peru?", "", "", "", "Bob", "Peru", "a;b"),
            ]
            quoted = [f'"{text.replace(chr(34), 2 * chr(34))}"' if '"' in text else text for text in lines]
            path.write_text("".join("\t".join(quoted[at : at + 8]) + "\n" for at in (0, 8, 16)))
        case "json":
            path.write_text(json.dumps(flat))
        case "yaml":
            path.write_text(yaml.safe_dump(flat))
        case "jsonl":
            path.write_text("\n".join(map(json.dumps, flat)))
        case _:
            arrow = pytest.importorskip("pyarrow")
            columns = {
                "id": ["fr", "pe"],
                "input": [row["input"] for row in ROWS],
                "tags": arrow.array([["eu", "easy"], None]),
                "weight": arrow.array([2.0, None]),
                "expected": ['{"capital": "Paris"}', ""],
                "metadata.by": ["Ann", "Bob"],
                "country": ["France", "Peru"],
                "note": ["", "a;b"],
            }
            pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "yaml", "jsonl", "parquet"])
def test_every_form_says_the_same(tmp_path: Path, form: str) -> None:
    """Documented names are fields, all others variables, whatever the file is."""
    written(tmp_path, form)
    found = cases(write(tmp_path, f"{BENCH}c.{form}\n"))
    assert [
        (item.id, item.input, item.tags, item.weight, item.expected, item.metadata, item.vars)
        for item in found
    ] == [
        (
            row["id"],
            row["input"],
            row.get("tags", []),
            row.get("weight", 1.0),
            row.get("expected"),
            row["metadata"],
            row["vars"],
        )
        for row in ROWS
    ]


def test_columns_can_be_renamed_and_unused_names_are_refused(tmp_path: Path) -> None:
    """Of every file; a name that no file has was misspelt."""
    write(tmp_path, "question,answer,level\nHi,Ho,1\n", "c.csv")
    write(tmp_path, '{"question": "Hi", "answer": "Ho", "level": 1}\n', "c.jsonl")
    bench = (
        BENCH + "[c.csv, c.jsonl]\ncolumns: {question: input, answer: vars.expected, level: metadata.level}\n"
    )
    found = plan(write(tmp_path, bench))
    assert [(item.input, item.vars, item.metadata) for item in found.items()] == [
        ("Hi", {"expected": "Ho"}, {"level": "1"}),
        ("Hi", {"expected": "Ho"}, {"level": 1}),
    ]
    assert not found.bench.variables
    wrong = refusal(write(tmp_path, bench.replace("level:", "levle:")))
    assert "columns.levle: no data file has a column 'levle' | did you mean 'level'?" in wrong
    wrong = refusal(write(tmp_path, bench.replace("vars.expected", "expcted")))
    assert "columns.answer: not a field of a case" in wrong


def test_patterns_find_files_by_name(tmp_path: Path) -> None:
    """Each file once, hidden ones never; a list keeps its order."""
    for name in ("b.csv", "a.csv", "x/c.csv", ".d.csv", "z.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path, f"input\n{name}\n", name)
    for files, names in (
        ("'*.csv'", ["a.csv", "b.csv", "z.csv"]),
        ("[z.csv, '*.csv']", ["z.csv", "a.csv", "b.csv"]),
        ("'**/*.csv'", ["a.csv", "b.csv", "x/c.csv", "z.csv"]),
        ("'[ab].csv'", ["a.csv", "b.csv"]),
    ):
        assert [item.input for item in cases(write(tmp_path, f"{BENCH}{files}\n"))] == names
    assert "no file matches '*.tsv'" in refusal(write(tmp_path, BENCH + "'*.tsv'\n"))
    assert "leads out of the folder" in refusal(write(tmp_path / "x", BENCH + "'../*.csv'\n"))
    assert "is an absolute pattern" in refusal(write(tmp_path, BENCH + "'/*.csv'\n"))


def test_tags_choose_cases(tmp_path: Path) -> None:
    """Any of several; a tag that no case has is answered with the nearest."""
    write(tmp_path, "input,tags\na,x;y\nb,y\nc,z\nd,\n", "c.csv")
    path = write(tmp_path, BENCH + "c.csv\n")
    for tags, found in ((("x",), "a"), (("y",), "ab"), (("x", "z"), "ac")):
        assert "".join(item.input for item in cases(path, tags=tags)) == found
    assert [item.case for item in cases(path, tags=("y",), first=1)] == [0]
    assert refusal(path, tags=("x", "why")) == "--tag: no case has the tag 'why' | there are: x, y, z"


def test_what_json_lacks_in_parquet_is_a_text_or_refused(tmp_path: Path) -> None:
    """Dates are texts, bytes are an error with row and column; so is what is no Parquet."""
    arrow = pytest.importorskip("pyarrow")
    columns = {
        "input": ["a", "b"],
        "day": arrow.array([0, 1], arrow.date32()),
        "price": arrow.array([1, None], arrow.decimal128(9, 2)),
        "seen": [{"x": [1]}, None],
    }
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), tmp_path / "c.parquet")
    path = write(tmp_path, BENCH + "c.parquet\n")
    found = [item.vars for item in cases(path)]
    assert found == [{"day": "1970-01-01", "price": "1.00", "seen": {"x": [1]}}, {"day": "1970-01-02"}]
    assert json.loads(msgspec.json.encode(found)) == found
    pytest.importorskip("pyarrow.parquet").write_table(
        arrow.table({"input": ["a", "b"], "raw": [None, b"x"]}), tmp_path / "c.parquet"
    )
    assert refusal(path).startswith("c.parquet:2: raw: holds bytes")
    write(tmp_path, "PAR1", "c.parquet")
    assert refusal(path).startswith("c.parquet: not a Parquet file: ")


def test_without_the_extra_one_line_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read without it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write(tmp_path, "", "c.parquet")
    found = refusal(write(tmp_path, BENCH + "c.parquet\n"))
    assert "c.parquet cannot be read without pyarrow | pip install 'proctor[parquet]'" in found


def test_many_cases_of_files_keep_their_lines(tmp_path: Path) -> None:
    """Beyond what is kept in memory as well, for errors and for annotations."""
    write(tmp_path, "id,n\n" + "".join(f"c{at},{at}\n" for at in range(FEW + 5)), "c.csv")
    bench = BENCH + "c.csv\nprompts: [{id: p, user: '{{ n }}'}]\ntest_cases: [{vars: {n: 7}, id: last}]\n"
    found = plan(write(tmp_path, bench), cases=("c1001", "last"))
    assert [(item.case, item.input) for item in found.items()] == [(FEW + 1, str(FEW + 1)), (FEW + 5, "7")]
    twice = refusal(write(tmp_path, bench.replace("last", "c1001")))
    assert "'c1001' is the id of another case, at " in twice
    assert "c.csv:1003 |" in twice
    missing = refusal(write(tmp_path, bench.replace("{n: 7}", "{m: 7}")))
    assert missing.startswith(
        "bench.config.yaml:6: test_cases[0] (case 'last'): prompt 'p': the variable 'n'"
    )
