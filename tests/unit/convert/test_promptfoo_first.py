"""A small configuration becomes a bench that can be read, and what is left is listed."""

from io import BytesIO
from pathlib import Path

from producer.cases.bench_config import read_bench
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.report import ForeignFile
from producer.load.source import Source

CONFIGURATION = """\
providers: [openai:gpt-4o-mini]
prompts: ["The capital of {{country}}?"]
tests:
  - vars: {country: [France, Peru]}
    assert:
      - {type: not-contains, value: "{{country}}", weight: 2, metric: silent}
      - {type: empty}
"""


def test_a_configuration_becomes_a_bench(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(CONFIGURATION)

    found = convert(ForeignFile(file, tmp_path))

    text = bench_text(found.bench)
    bench = read_bench(Source(tmp_path / "bench.yaml", stdin=BytesIO(text.encode())))
    assert [case.vars for case in bench.cases] == [{"country": "France"}, {"country": "Peru"}]
    assert bench.config.models == ["openai/gpt-4o-mini"]
    check = {"not": {"contains": "{{country}}"}, "name": "silent", "weight": 2}
    assert bench.config.test_cases[0].checks == [check]
    message = f"{file}:7: assertion empty: promptfoo has no such type"
    assert [each.message for each in found.left] == [message, message]
