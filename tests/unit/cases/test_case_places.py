"""The file and line of each case, as annotations of a pull request name them."""

from pathlib import Path
from typing import Final

import pytest

from producer.report.github import CasePlace, CasePlaces
from tests.support.benches import plan, write

HEAD: Final = "name: b\nsystem_prompt: Answer.\nmodels: [m]\n"
YAML: Final = HEAD + "test_cases:\n  - input: one\n\n  - id: two\n    input: two\n"
JSON: Final = (
    '{"name": "b", "system_prompt": "A.", "models": ["m"],\n"test_cases": [{"input": "1"},\n{"input": "2"}]}'
)
CSV: Final = 'id,input\na,"one\nand more"\nb,two\n'
LINES: Final = '{"input": "one"}\n\n{"input": "two"}\n'


@pytest.mark.parametrize(
    ("bench", "data", "lines"),
    [
        (YAML, {}, [("bench.config.yaml", 5), ("bench.config.yaml", 7)]),
        (JSON, {}, [("bench.config.yaml", 2), ("bench.config.yaml", 3)]),
        (HEAD + "test_cases_file: c.csv\n", {"c.csv": CSV}, [("c.csv", 2), ("c.csv", 4)]),
        (HEAD + "test_cases_file: c.jsonl\n", {"c.jsonl": LINES}, [("c.jsonl", 1), ("c.jsonl", 3)]),
        (
            YAML.replace("test_cases:", "test_cases_file: c.csv\ntest_cases:"),
            {"c.csv": CSV},
            [("c.csv", 2), ("c.csv", 4), ("bench.config.yaml", 6), ("bench.config.yaml", 8)],
        ),
    ],
)
def test_each_case_has_its_file_and_line(
    tmp_path: Path, bench: str, data: dict[str, str], lines: list[tuple[str, int]]
) -> None:
    """Of YAML, JSON, CSV and JSON Lines; paths are counted from the folder of the checkout."""
    folder = tmp_path / "evals"
    folder.mkdir()
    for name, text in data.items():
        (folder / name).write_text(text, encoding="utf-8")
    found = plan(write(folder, bench))
    places = CasePlaces(found.facts.places.stored(), tmp_path)
    expected = [CasePlace(f"evals/{file}", line) for file, line in lines]
    assert [places.get(at) for at in range(len(lines) + 1)] == [*expected, None]
    assert CasePlaces(None, tmp_path).get(0) is None
