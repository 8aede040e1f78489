"""Alerts and dashboard ask for series that exist, and every alert has its page."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry
from tests.chart import runs
from tests.chart.conftest import CHART, ROOT, Render, kinds, named

from watercolour.env import metrics as env_metrics
from watercolour.render.dispatcher import Dispatcher
from watercolour.score import app as score_app
from watercolour.train import progress as trainer_progress
from watercolour_operator import metrics as operator_metrics

ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())
RUNBOOK = (ROOT / "docs" / "operations.md").read_text()
#: What the chart's PodMonitor and ServiceMonitor put on every series.
TARGET_LABELS = {"namespace", "run", "component"}


@cache
def series() -> dict[str, set[str]]:
    """Every series that a component of ours can have, with its own labels."""
    found = {one.name: set(one.labels) for one in operator_metrics.DECLARED}
    for one in operator_metrics.DECLARED:
        if one.kind == "histogram":
            found |= {f"{one.name}_bucket": {*one.labels, "le"}, f"{one.name}_sum": set(one.labels)}
            found[f"{one.name}_count"] = set(one.labels)
    environment = env_metrics.Metrics()
    environment.show_renders(Dispatcher(["http://127.0.0.1:9"]))
    for registry in (environment.registry, score_app.Metrics().registry):
        found |= of_registry(registry)
    found |= renderer()
    known = dict.fromkeys(trainer_progress.GAUGES, 1)
    text = trainer_progress.exposition({"run": "a", "alarms": [], **known})
    found |= {name: {"run"} for name in re.findall(r"^(watercolour_\w+)\{", text, re.M)}
    return found


def of_registry(registry: CollectorRegistry) -> dict[str, set[str]]:
    """Series of a registry in which nothing has happened yet."""
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    # Series without a value are nowhere but in the library's own tables.
    tables: Any = registry
    labels: dict[str, set[str]] = {
        name: {*getattr(collector, "_labelnames", ())}
        for collector, names in tables._collector_to_names.items()
        for name in names
    }
    for family in registry.collect():
        # A collector of ours has all its samples, and those have their labels.
        labels.setdefault(family.name, set())
        own = {name for sample in family.samples for name in sample.labels}
        labels[family.name] |= own - {"le"}
    return {
        f"{family.name}{end}": labels[family.name] | ({"le"} if end == "_bucket" else set())
        for family in registry.collect()
        for end in endings.get(family.type, ("",))
    }


def renderer() -> dict[str, set[str]]:
    """The renderer's series; its service is imported where its browser driver is installed."""
    code = (
        "import json; from watercolour.render.metrics import Metrics\n"
        "print(json.dumps([[f.name, f.type] for f in Metrics().registry.collect()]))"
    )
    python = ROOT / ".venv-render" / "bin" / "python"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {
        f"{name}{end}": {"outcome", "phase", "cause", "le"}
        for name, kind in json.loads(text)
        for end in endings.get(kind, ("",))
    }


def expressions() -> Iterator[tuple[str, str]]:
    """Where an expression stands, and the expression with the dashboard's variables filled in."""
    for alert in ALERTS:
        yield alert["alert"], alert["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$namespace", ".*").replace("$run", ".*")


def selectors(node: Any) -> Iterator[Any]:
    """Every selector of a series below a node of the parsed expression."""
    if isinstance(node, promql.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "vs"):
        below = getattr(node, name, None)
        if below is not None and not isinstance(below, str):
            yield from selectors(below)
    for below in getattr(node, "args", None) or ():
        yield from selectors(below)


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expression_parses_and_asks_for_series_and_labels_that_exist(
    where: str, expression: str
) -> None:
    found = list(selectors(promql.parse(expression)))
    assert len(found) == len(re.findall(r"\bwatercolour_\w+", expression)), where
    for selector in found:
        assert selector.name in series(), f"{where}: {selector.name}"
        matched = {matcher.name for matcher in selector.matchers.matchers}
        assert matched <= series()[selector.name] | TARGET_LABELS, f"{where}: {selector.name}"


def test_phases_and_reasons_that_are_asked_for_exist() -> None:
    from watercolour.api.status import Phase

    text = " ".join(expression for _, expression in expressions())
    asked = {
        phase for group in re.findall(r'phase=~?"([^"]+)"', text) for phase in group.split("|")
    }
    assert asked
    assert asked <= {phase.value for phase in Phase}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_has_a_page_that_says_what_to_do(alert: dict[str, Any]) -> None:
    assert set(alert["annotations"]) == {"summary", "description"}
    assert alert["labels"]["severity"] in {"critical", "warning"}
    section = re.search(rf"^### {alert['alert']}\n(.*?)(?=^##)", RUNBOOK + "\n##", re.M | re.S)
    assert section, "no section in docs/operations.md"
    for word in ("Meaning", "Impact", "Diagnosis", "Mitigation"):
        assert re.search(rf"^\*\*{word}\.\*\*\s+\S", section[1], re.M), word
    assert "```console" in section[1], "no command"


def test_no_page_is_left_without_an_alert() -> None:
    pages = set(re.findall(r"^### (Watercolour\w+)$", RUNBOOK, re.M))
    assert pages == {alert["alert"] for alert in ALERTS}


def test_monitoring_is_off_unless_asked_for(render: Render) -> None:
    assert not kinds(render()) & {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


def test_alerts_link_their_pages(render: Render) -> None:
    rules = named(render("monitoring"), "PrometheusRule")["spec"]["groups"][0]["rules"]
    assert len(rules) == len(ALERTS)
    for rule in rules:
        link = f"https://runbooks.internal/watercolour#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == link
    by_name = {rule["alert"]: rule["expr"] for rule in rules}
    assert {alert["alert"]: alert["expr"] for alert in ALERTS} == by_name


def test_monitors_select_the_operator_and_the_pods_of_runs(render: Render) -> None:
    found = render("monitoring")
    service = named(found, "Service")
    monitor = named(found, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    pods = named(found, "PodMonitor")["spec"]
    assert pods["namespaceSelector"] == {"any": True}
    made = runs.manifests("lab")
    for component in ("trainer", "env", "renderers", "scorer"):
        pod = runs.pod(made, component)
        assert pods["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        assert {endpoint["port"] for endpoint in pods["podMetricsEndpoints"]} <= ports


def test_the_dashboard_is_rendered_as_it_is(render: Render) -> None:
    found = named(render("monitoring"), "ConfigMap", "-dashboard")
    assert json.loads(found["data"]["watercolour.json"]) == DASHBOARD
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["metadata"]["annotations"] == {"grafana_folder": "Training"}


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
