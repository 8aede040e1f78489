"""Who may talk to whom, asked of the policies as the API server would read them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.desired.made import PUBLISHED, build, find, templates
from tests.unit.operator.desired.traffic import End, allowed

from watercolour_operator import names
from watercolour_operator.desired import Manifest
from watercolour_operator.names import PORTS, Component
from watercolour_operator.settings import Settings

SETTINGS = Settings(metrics_namespaces={"kubernetes.io/metadata.name": "monitoring"})
DNS = End("dns", "kube-system", {"k8s-app": "kube-dns"})
OPERATOR = End("operator", "watercolour-system", dict(names.OPERATOR_LABELS))
NEIGHBOUR = End("neighbour", "gardens", {"app": "other"})
PROMETHEUS = End("prometheus", "monitoring")
API_SERVER = End("api server", address="10.96.0.1")
METADATA = End("metadata", address="169.254.169.254")
NODE_DNS = End("node-local dns", address="169.254.20.10")
INTERNET = End("internet", address="93.184.216.34")
OTHERS = (DNS, OPERATOR, NEIGHBOUR, PROMETHEUS, API_SERVER, METADATA, NODE_DNS, INTERNET)

#: The table of the design, for a run that needs nothing outside.
TABLE = {
    ("trainer", "env", 8000),
    ("env", "renderers", 8080),
    ("env", "scorer", 8000),
    ("env", "judge", 8000),
    ("trainer", "dns", 53),
    ("trainer", "node-local dns", 53),
    ("env", "node-local dns", 53),
    ("env", "dns", 53),
    ("operator", "trainer", 8000),
    ("operator", "env", 8000),
    ("operator", "renderers", 8080),
    ("prometheus", "trainer", 8000),
    ("prometheus", "env", 8000),
    ("prometheus", "renderers", 8080),
    ("prometheus", "scorer", 8000),
    ("prometheus", "judge", 8000),
}
PROBED = (22, 53, 80, 443, 6443, 8000, 8080, 9090, 10250)


def ends(manifests: list[Manifest], prefix: str = "peonies-") -> dict[str, End]:
    """The run's pods, by component, with the labels that their templates give them."""
    found: dict[str, End] = {}
    for _, template in templates(manifests):
        labels = template["metadata"]["labels"]
        found[labels[names.COMPONENT]] = End(labels[names.COMPONENT], "gardens", labels)
    return found


def policies(manifests: list[Manifest]) -> list[Manifest]:
    return [item for item in manifests if item["kind"] == "NetworkPolicy"]


def connections(manifests: list[Manifest], *more: Manifest) -> set[tuple[str, str, int]]:
    """Every connection that is let through, of a run's pods with one another and with others."""
    own = list(ends(manifests).values())
    rules = [*policies(manifests), *more]
    return {
        (source.name, target.name, port)
        for source in (*own, *OTHERS)
        for target in (*own, *OTHERS)
        for port in PROBED
        if (source in own or target in own) and allowed(rules, source, target, port)
    }


def test_exactly_the_table_is_let_through() -> None:
    assert connections(build(PUBLISHED, settings=SETTINGS)) == TABLE


def test_without_labels_nobody_scrapes() -> None:
    found = connections(build(PUBLISHED))
    assert found == {link for link in TABLE if link[0] != "prometheus"}


def test_a_run_that_wants_no_prometheus_is_not_scraped() -> None:
    found = connections(build({**PUBLISHED, "tracking": {"prometheus": False}}, settings=SETTINGS))
    assert found == {link for link in TABLE if link[0] != "prometheus"}


@pytest.mark.parametrize("mode", ["Queue", "HPA", "KEDA", "Fixed"])
@pytest.mark.parametrize("egress", [{}, {"trainer": ["all"], "env": ["all"]}])
def test_renderers_reach_nobody_whatever_the_run_may(mode: str, egress: dict[str, Any]) -> None:
    spec = {**PUBLISHED, "egress": egress, "renderers": {"scaling": {"mode": mode}}}
    manifests = build(spec, settings=SETTINGS)
    renderers = ends(manifests)["renderers"]
    targets = (*ends(manifests).values(), *OTHERS)
    assert not [
        (target.name, port, protocol)
        for target in targets
        for port in PROBED
        for protocol in ("TCP", "UDP")
        if allowed(policies(manifests), renderers, target, port, protocol)
    ]


def test_the_first_policy_refuses_everything_for_every_pod_of_the_run() -> None:
    manifests = build(PUBLISHED)
    assert (manifests[0]["kind"], manifests[0]["metadata"]["name"]) == (
        "NetworkPolicy",
        "peonies-deny",
    )
    assert manifests[0]["spec"].keys() == {"podSelector", "policyTypes"}
    own = ends(manifests).values()
    assert not [
        (one.name, other.name)
        for one in own
        for other in (*own, *OTHERS)
        for port in PROBED
        if allowed([manifests[0]], one, other, port) or allowed([manifests[0]], other, one, port)
    ]


def test_all_opens_the_internet_to_those_who_asked_and_no_cloud_s_credentials() -> None:
    manifests = build({"egress": {"trainer": ["all"]}})
    rules, own = policies(manifests), ends(manifests)
    assert allowed(rules, own["trainer"], INTERNET, 443)
    assert allowed(rules, own["trainer"], End("v6", address="2606:4700::1"), 443)
    assert not allowed(rules, own["trainer"], METADATA, 80)
    assert not allowed(rules, own["trainer"], End("v6", address="fd00:ec2::254"), 80)
    assert not allowed(rules, own["env"], INTERNET, 443)


def test_a_cidr_opens_itself_alone() -> None:
    manifests = build({"egress": {"env": ["93.184.216.0/24"]}})
    rules, own = policies(manifests), ends(manifests)
    assert allowed(rules, own["env"], INTERNET, 443)
    assert not allowed(rules, own["env"], End("else", address="93.184.217.1"), 443)
    assert not allowed(rules, own["trainer"], INTERNET, 443)


@pytest.mark.parametrize("part", ["scorer", "judge"])
def test_only_a_download_lets_scorer_and_judge_out_and_by_https_alone(part: str) -> None:
    closed = build(PUBLISHED)
    spec = {**PUBLISHED, "scorer": {"backend": "hpsv3", "download": True}}
    spec["judge"] = {
        **PUBLISHED["judge"],
        "deploy": {**PUBLISHED["judge"]["deploy"], "download": True},
    }
    opened = build(spec)
    assert not allowed(policies(closed), ends(closed)[part], INTERNET, 443)
    assert not allowed(policies(closed), ends(closed)[part], DNS, 53, "UDP")
    assert allowed(policies(opened), ends(opened)[part], INTERNET, 443)
    assert allowed(policies(opened), ends(opened)[part], DNS, 53, "UDP")
    assert not allowed(policies(opened), ends(opened)[part], INTERNET, 80)


def test_a_download_may_go_by_the_proxy() -> None:
    settings = Settings(proxy_env={"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "a,b:c"})
    manifests = build({"scorer": {"backend": "hpsv3", "download": True}}, settings=settings)
    scorer = ends(manifests)["scorer"]
    assert allowed(policies(manifests), scorer, End("proxy", address="10.9.8.7"), 3128)


def test_two_runs_of_a_namespace_are_strangers() -> None:
    one = build(PUBLISHED)
    other = build(PUBLISHED, name="lilies", uid="another-uid")
    rules = [*policies(one), *policies(other)]
    assert not [
        (mine.name, theirs.name)
        for mine in ends(one).values()
        for theirs in ends(other).values()
        for port in set(PORTS.values())
        if allowed(rules, mine, theirs, port) or allowed(rules, theirs, mine, port)
    ]


def test_a_run_of_the_same_name_that_is_ending_is_a_stranger() -> None:
    old = build(PUBLISHED, uid="older-uid")
    new = build(PUBLISHED)
    rules = policies(new)
    assert allowed(rules, ends(new)["trainer"], ends(new)["env"], 8000)
    assert not allowed(rules, ends(old)["trainer"], ends(new)["env"], 8000)


def test_all_who_share_a_scorer_and_nobody_else_may_ask_it() -> None:
    spec = {"scorer": {"sharing": "Namespace"}}
    mine = build(spec)
    theirs = build(spec, name="lilies", uid="another-uid")
    stranger = build({}, name="tulips", uid="third-uid")
    rules = [*policies(mine), *policies(theirs), *policies(stranger)]
    assert ends(mine)["scorer"].labels == ends(theirs)["scorer"].labels
    for run in (mine, theirs):
        assert allowed(rules, ends(run)["env"], ends(mine)["scorer"], 8000)
        assert not allowed(rules, ends(run)["trainer"], ends(mine)["scorer"], 8000)
        assert not allowed(rules, ends(run)["renderers"], ends(mine)["scorer"], 8000)
    assert not allowed(rules, ends(stranger)["env"], ends(mine)["scorer"], 8000)
    assert not allowed(rules, ends(mine)["scorer"], INTERNET, 443)


@pytest.mark.parametrize(
    ("url", "end", "port"),
    [
        ("http://vllm.models.svc:8000/v1", End("vllm", "models"), 8000),
        ("http://vllm.models.svc.cluster.local/v1", End("vllm", "models"), 8000),
        ("http://vllm:8000/v1", NEIGHBOUR, 8000),
        ("https://93.184.216.34/v1", INTERNET, 443),
        ("http://93.184.216.34:8080/v1", INTERNET, 8080),
        ("http://[2606:4700::1]:8080/v1", End("v6", address="2606:4700::1"), 8080),
    ],
)
def test_an_endpoint_that_a_policy_can_express_is_opened_to_the_environment(
    url: str, end: End, port: int
) -> None:
    manifests = build({"judge": {"backend": "openai", "endpoint": url}})
    rules, own = policies(manifests), ends(manifests)
    assert allowed(rules, own["env"], end, port)
    assert not allowed(rules, own["trainer"], end, port)


def test_a_name_outside_is_for_egress_to_open() -> None:
    spec = {"judge": {"backend": "openai", "endpoint": "https://api.example.com/v1"}}
    manifests = build(spec)
    assert not allowed(policies(manifests), ends(manifests)["env"], INTERNET, 443)


def test_trackio_is_opened_to_the_trainer() -> None:
    manifests = build({"tracking": {"trackio": {"endpoint": "http://trackio.tools.svc:7860"}}})
    own = ends(manifests)
    assert allowed(policies(manifests), own["trainer"], End("trackio", "tools"), 7860)
    assert not allowed(policies(manifests), own["env"], End("trackio", "tools"), 7860)


def test_only_keda_s_namespace_asks_for_the_demand_and_only_in_its_mode() -> None:
    keda = End("keda", "keda")
    with_keda = build({"renderers": {"scaling": {"mode": "KEDA"}}})
    without = build({})
    assert allowed(policies(with_keda), keda, ends(with_keda)["env"], 8000)
    assert not allowed(policies(with_keda), keda, ends(with_keda)["renderers"], 8080)
    assert not allowed(policies(without), keda, ends(without)["env"], 8000)


def test_an_operator_outside_the_cluster_asks_by_the_addresses_it_was_given() -> None:
    outside = End("api server", address="10.5.0.1")
    manifests = build(PUBLISHED, settings=Settings(operator_cidrs=("10.5.0.1/32",)))
    rules, own = policies(manifests), ends(manifests)
    assert allowed(rules, outside, own["renderers"], 8080)
    assert not allowed(rules, outside, own["scorer"], 8000)


def test_the_pods_of_one_training_talk_to_each_other_only_if_there_are_several() -> None:
    alone, several = build({}), build({"trainer": {"replicas": 2}})
    for manifests, expected in ((alone, False), (several, True)):
        trainer = ends(manifests)["trainer"]
        assert allowed(policies(manifests), trainer, trainer, 29500) is expected


def test_a_pod_that_only_looks_like_the_operator_is_refused() -> None:
    manifests = build(PUBLISHED)
    near = End("near", "gardens", dict(names.OPERATOR_LABELS))
    beside = End("beside", "watercolour-system", {"app.kubernetes.io/name": "watercolour"})
    for impostor in (near, beside):
        assert not allowed(policies(manifests), impostor, ends(manifests)["env"], 8000)


def test_every_policy_names_both_ways() -> None:
    for policy in policies(build(PUBLISHED)):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in find(build({}), "NetworkPolicy", "peonies-renderers")["spec"]
    assert Component.JUDGE.value not in {
        policy["metadata"]["labels"].get(names.COMPONENT) for policy in policies(build({}))
    }
