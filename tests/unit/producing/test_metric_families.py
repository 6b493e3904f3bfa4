"""The table of metrics in docs/operations.md is the code's, and the Grafana dashboard fits its schema."""

import json
import re
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml
from aiohttp.test_utils import make_mocked_request

from producer.metrics.families import FAMILIES
from producer.serve.metrics import ServeMetrics
from tests.support.prometheus import DEPLOY, RULES, dashboard, queries
from tests.support.tree import ROOT

OPERATIONS: Final = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
NAME: Final = re.compile(r"\bproctor_[a-z_]+\b")
DATASOURCE: Final = {"const": {"type": "prometheus", "uid": "${datasource}"}}
NUMBER: Final = {"type": "integer", "minimum": 0}
TARGET: Final = {
    "type": "object",
    "required": ["refId", "datasource", "expr", "legendFormat"],
    "properties": {
        "refId": {"type": "string", "pattern": "^[A-Z]$"},
        "datasource": DATASOURCE,
        "expr": {"type": "string", "minLength": 1},
        "legendFormat": {"type": "string", "minLength": 1},
        "instant": {"type": "boolean"},
        "range": {"type": "boolean"},
    },
    "additionalProperties": False,
}
GRID: Final = {
    "type": "object",
    "required": ["x", "y", "w", "h"],
    "properties": {"x": {**NUMBER, "maximum": 23}, "y": NUMBER, "w": {**NUMBER, "maximum": 24}, "h": NUMBER},
    "additionalProperties": False,
}
PANEL: Final = {
    "type": "object",
    "required": ["id", "title", "type", "gridPos", "datasource", "targets", "fieldConfig", "options"],
    "properties": {
        "id": NUMBER,
        "type": {"enum": ["stat", "timeseries"]},
        "title": {"type": "string", "minLength": 1},
        "gridPos": GRID,
        "datasource": DATASOURCE,
        "targets": {"type": "array", "minItems": 1, "items": TARGET},
    },
}
ROW: Final = {
    "type": "object",
    "required": ["id", "title", "gridPos", "collapsed"],
    "properties": {"type": {"const": "row"}, "gridPos": GRID, "panels": {"maxItems": 0}},
}
SCHEMA: Final = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time", "refresh"],
    "properties": {
        "schemaVersion": {"type": "integer", "minimum": 36},
        "panels": {
            "type": "array",
            "items": {"if": {"properties": {"type": {"const": "row"}}}, "then": ROW, "else": PANEL},
        },
    },
}
"""What Grafana's dashboard schema asks of the parts that ours has."""


def families_table() -> str:
    """The table that docs/operations.md should hold."""
    rows = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        rows.append(f"| `{family.name}` | {family.type} | {labels} | {family.help} |")
    return "\n".join(rows)


def test_the_table_of_metrics_is_the_code() -> None:
    """docs/operations.md lists every family with its type, labels and help."""
    found = re.search(r"<!-- metrics: .*? -->\n(.*?)\n<!-- end of metrics -->", OPERATIONS, re.DOTALL)
    assert found
    assert found[1] == families_table(), f"the table should be:\n{families_table()}"


def served_table() -> str:
    """The second table that docs/operations.md should hold, of a service that has met one of everything."""
    metrics = ServeMetrics(lambda: 0, lambda: 0)
    metrics.requested(make_mocked_request("GET", "/"), 404)
    rows = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in family.samples[0].labels if label != "le")
        rows.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join(rows)


def test_the_table_of_served_metrics_is_the_code() -> None:
    """docs/operations.md lists what each server counts."""
    found = re.search(
        r"<!-- serve metrics: .*? -->\n(.*?)\n<!-- end of serve metrics -->", OPERATIONS, re.DOTALL
    )
    assert found
    assert found[1] == served_table(), f"the table should be:\n{served_table()}"


def test_the_table_of_alerts_is_the_rules_file() -> None:
    """docs/operations.md lists every alert of the rules file, in its order."""
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    listed = re.findall(r"^\| `(Proctor\w+)` \|", OPERATIONS, re.MULTILINE)
    assert listed == [rule["alert"] for rule in group["rules"]]


def test_the_dashboard_fits_its_schema() -> None:
    """Every panel has a place, a data source that is a variable, and named queries; ids are unique."""
    document = dashboard()
    jsonschema_rs.validator_for(SCHEMA).validate(document)
    ids = [panel["id"] for panel in document["panels"]]
    assert len(ids) == len(set(ids))
    variables: dict[str, Any] = {each["name"]: each for each in document["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"


def test_panels_do_not_overlap() -> None:
    """No two panels lie over each other, and none leaves the grid of 24 columns."""
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("text", [RULES.read_text(encoding="utf-8"), json.dumps(dashboard())])
def test_only_families_that_exist_are_asked_for(text: str) -> None:
    """Alerts and panels name families of the exporter, and nothing that was renamed."""
    served = set(NAME.findall(served_table()))
    histograms = {f"{name}_{part}" for name in served for part in ("bucket", "sum", "count")}
    known = {family.name for family in FAMILIES} | served | histograms | {"proctor_call_seconds_bucket"}
    assert set(NAME.findall(text)) <= known


def test_the_dashboard_shows_every_family() -> None:
    """Each family is in some panel."""
    asked = " ".join(query.expr for query in queries())
    names = {family.name for family in FAMILIES} | set(NAME.findall(served_table()))
    assert not [name for name in names if name not in asked]


def test_provisioning_names_what_is_there() -> None:
    """The provisioned data source has the type that the dashboard asks for; the provider reads a folder."""
    folder = DEPLOY / "grafana" / "provisioning"
    [source] = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())["datasources"]
    [provider] = yaml.safe_load((folder / "dashboards" / "proctor.yml").read_text())["providers"]
    assert source["type"] == dashboard()["templating"]["list"][0]["query"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
