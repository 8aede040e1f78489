"""What happens to runs when calls fail and operators come and go: failure scenarios A.

Each test injects one fault between the operator and the real API server.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.ground.api import Api
from tests.cluster.ground.controlplane import ControlPlane
from tests.cluster.ground.faultproxy import FaultProxy
from tests.cluster.ground.faults import Answer, Drop, Hold, Replay, Silence, calls
from tests.cluster.ground.podlife import UNREADY, Creating, Exited, Life, Running, finishes
from tests.cluster.operator.conftest import Start
from tests.cluster.operator.harness import Story, condition, phase

from watercolour_operator import names


def test_a_crash_between_creation_and_status_makes_no_second_trainer(
    story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    held = proxy.inject(Hold(after=True), calls("apply", "jobs"))
    first = start(through_proxy)
    story.create()
    held.wait()
    first.kill()
    held.release()
    start(through_proxy)
    pod = story.train()
    done = story.finish(pod)
    assert story.jobs() == ["peonies-trainer-1"]
    assert [attempt["number"] for attempt in done["status"]["attempts"]] == [1]


def test_the_first_status_of_an_attempt_names_its_job(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    """Else a Job that somebody deletes before the next look would be made a second time."""
    start()
    story.create()
    run = api.until_one(
        names.KIND, "peonies", namespace, lambda found: found.get("status", {}).get("attempts")
    )
    (job,) = api.list("Job", namespace)
    assert [one.get("job") for one in run["status"]["attempts"]] == [job["metadata"]["uid"]]


def test_a_trainer_that_nobody_saw_finish_is_looked_for_before_the_run_is_given_up(
    namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    """Neither the pod's end nor the Job's is heard of when the deadline passes."""
    _deafen(proxy)
    story.pods.script(namespace, finishes(0), labels={names.COMPONENT: "trainer"})
    start(through_proxy)
    story.create(startupDeadlineSeconds=10)
    story.until("Succeeded")


def test_a_trainer_that_nobody_saw_finish_is_looked_for_before_it_is_suspended(
    api: Api, namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    _deafen(proxy)
    story.pods.script(namespace, finishes(0), labels={names.COMPONENT: "trainer"})
    start(through_proxy)
    story.create()
    labels = {names.COMPONENT: "trainer"}
    api.until(
        "Pod",
        lambda found: [pod["status"]["phase"] for pod in found] == ["Succeeded"],
        namespace,
        labels=labels,
    )
    api.patch(names.KIND, "peonies", {"spec": {"suspend": True}}, namespace)
    story.until("Succeeded")


def test_a_job_that_was_taken_away_is_not_made_again_while_its_pod_runs(
    api: Api, namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    """Its making was never heard of: neither from the call nor from the watches."""
    _deafen(proxy)
    unheard = proxy.inject(Drop(after=True), calls("apply", "jobs"))
    story.pods.script(
        namespace,
        Life((Creating(), Running()), stop_after=None),
        labels={names.COMPONENT: "trainer"},
    )
    held = proxy.inject(Hold(), calls("get", names.PLURAL), at=2)
    start(through_proxy)
    story.create()
    unheard.wait()
    pod = story.trainer()
    held.wait()
    api.delete("Job", "peonies-trainer-1", namespace, propagation="Orphan")
    api.until_gone("Job", "peonies-trainer-1", namespace)
    held.release()
    api.until_one(
        names.KIND,
        "peonies",
        namespace,
        lambda found: condition(found, "Progressing").get("reason") == "Restarting",
    )
    assert story.jobs() == []
    assert api.get("Pod", pod, namespace)["status"]["phase"] == "Running"


def test_what_was_seen_of_a_run_is_never_written_into_another_of_its_name(
    api: Api, namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    """The older one is deleted, and another made, in the midst of a look at the older."""
    start(through_proxy)
    story.create()
    pod = story.train()
    held = proxy.inject(Hold(), calls("delete", "deployments"))
    story.pods.step(namespace, pod, Exited(0))
    held.wait()
    api.delete(names.KIND, "peonies", namespace)
    api.until_gone(names.KIND, "peonies", namespace)
    story.answers.say("peonies", "trainer", "/progress", None)
    story.create()
    # Whoever knows of this one knows of the one before it.
    other = Story(api, namespace, story.pods, story.answers, name="lotus")
    other.create()
    other.until("Starting")
    held.release()
    run = story.until("Starting")
    (attempt,) = run["status"]["attempts"]
    assert attempt["job"] == api.get("Job", "peonies-trainer-1", namespace)["metadata"]["uid"]


def test_a_job_is_named_in_the_status_before_it_is_taken_away(
    namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    """An operator that died in between would leave an attempt without any trace of its Job."""
    writes = calls("apply", names.PLURAL, subresource="status")
    proxy.inject(Answer(500), writes, times=None)
    story.pods.script(namespace, UNREADY, labels={names.COMPONENT: "trainer"})
    start(through_proxy)
    story.create(startupDeadlineSeconds=3)
    proxy.wait_for(writes, count=4, timeout=120)
    proxy.clear()
    run = story.until("Failed", timeout=120)
    (attempt,) = run["status"]["attempts"]
    told = next(
        call.number
        for call in proxy.calls
        if writes(call) and call.status == 200 and attempt["job"] in str(call.json())
    )
    (ended,) = proxy.seen(calls("delete", "jobs"))
    assert told < ended.number


@pytest.mark.parametrize("code", [409, 422])
def test_a_refused_status_loses_no_condition_and_starts_nothing_twice(
    code: int, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    writes = calls("apply", names.PLURAL, subresource="status")
    refused = proxy.inject(Answer(code), writes, times=2)
    start(through_proxy)
    story.create()
    run = story.until("Starting")
    refused.wait()
    assert condition(run, "Progressing")["reason"] == "Started"
    assert len(run["status"]["attempts"]) == 1
    assert story.jobs() == ["peonies-trainer-1"]


def test_a_run_deleted_while_no_operator_runs_goes_by_itself(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    """Owner references do the work: there is no finalizer to wait for."""
    first = start()
    story.create()
    story.train()
    first.kill()
    api.patch(names.KIND, "peonies", {"spec": {"suspend": True}}, namespace)
    api.delete(names.KIND, "peonies", namespace)
    api.until_gone(names.KIND, "peonies", namespace, timeout=5)
    ours = {names.RUN: "peonies"}
    for kind in ("Deployment", "Job", "Service", "NetworkPolicy", "ConfigMap", "Pod"):
        api.until(kind, lambda found: not found, namespace, labels=ours, timeout=30)
    start()
    api.until_one("Lease", "operator", namespace, lambda it: it["spec"]["holderIdentity"])
    assert api.list("Job", namespace) == []


def test_a_change_made_while_no_operator_ran_is_carried_out(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    first = start()
    story.create()
    story.train()
    first.kill()
    api.patch(names.KIND, "peonies", {"spec": {"suspend": True}}, namespace)
    start()
    story.until("Suspended")
    assert api.list("Deployment", namespace, labels={names.RUN: "peonies"}) == []


def test_a_silent_watch_is_opened_again(
    story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    """Pods come to life behind the back of an operator whose watches say nothing."""
    silent = proxy.inject(Silence(), calls("watch"), times=12)
    operator = start(through_proxy, watch_silence_seconds="3")
    story.create()
    silent.wait()
    story.train()
    _, text = operator.ask("/metrics")
    assert 'watercolour_watch_restarts_total{kind="Pod",why="failed"}' in text


def test_the_second_of_two_operators_waits_its_turn(
    api: Api, namespace: str, story: Story, start: Start, control_plane: ControlPlane
) -> None:
    first = start()
    api.until_one("Lease", "operator", namespace, lambda it: it["spec"]["holderIdentity"])
    second = start(_as(control_plane, namespace, "second", story))
    story.create()
    story.until("Starting")
    assert '"leaseHeld": false' in second.ask("/livez")[1]
    assert _writes(control_plane, namespace, "second") == []
    first.kill()
    story.train()
    assert "leases" in _writes(control_plane, namespace, "second")


def test_an_operator_that_slept_through_its_lease_writes_nothing_more(
    api: Api, namespace: str, story: Story, start: Start, control_plane: ControlPlane
) -> None:
    first = start(_as(control_plane, namespace, "first", story))
    story.create()
    story.until("Starting")
    first.pause()
    start()
    api.until_one(
        "Lease",
        "operator",
        namespace,
        lambda it: it["spec"]["holderIdentity"] == "operator-2",
        timeout=60,
    )
    story.train()
    before = len(_writes(control_plane, namespace, "first"))
    first.go_on()
    assert first.wait(within=30) == 3
    assert len(_writes(control_plane, namespace, "first")) == before


def test_a_run_deleted_during_retries_leaves_nothing_and_makes_nothing(
    api: Api,
    namespace: str,
    story: Story,
    start: Start,
    proxy: FaultProxy,
    through_proxy: Path,
    control_plane: ControlPlane,
) -> None:
    failing = proxy.inject(Answer(500), calls("apply", "deployments"), times=None)
    start(through_proxy)
    story.create()
    failing.wait()
    api.delete(names.KIND, "peonies", namespace)
    api.until_gone(names.KIND, "peonies", namespace)
    proxy.clear()
    for kind in ("Service", "NetworkPolicy", "ConfigMap"):
        api.until(kind, lambda found: not found, namespace, labels={names.RUN: "peonies"})
    assert api.list("Deployment", namespace) == []
    assert api.list("Job", namespace) == []


def test_an_old_version_that_is_delivered_again_restarts_nothing(
    api: Api, namespace: str, story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    replayed = proxy.inject(Replay(events=6), calls("watch", names.PLURAL))
    start(through_proxy)
    story.create(cleanup={"ttlSeconds": 0})
    story.finish(story.train())
    api.until("Job", lambda found: not found, namespace)
    for number in range(6):
        api.patch(
            names.KIND, "peonies", {"metadata": {"labels": {"again": str(number)}}}, namespace
        )
    replayed.wait()
    # Whatever it made of that, it has come to this newer run of the same queue after it.
    other = Story(api, namespace, story.pods, story.answers, name="lotus")
    other.create()
    other.until("Starting")
    assert story.jobs() == ["lotus-trainer-1"]
    assert phase(api.get(names.KIND, "peonies", namespace)) == "Succeeded"


def test_a_namespace_with_runs_and_the_operators_lease_goes_within_a_minute(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    start()
    story.create()
    story.train()
    api.delete("Namespace", namespace)
    api.until_gone("Namespace", namespace, timeout=60)


def test_a_run_of_the_same_name_waits_for_the_older_one(
    api: Api, namespace: str, story: Story, start: Start
) -> None:
    story.pods.script(
        namespace,
        Life((Creating(), Running()), stop_after=None),
        labels={names.COMPONENT: "trainer"},
        times=1,
    )
    start()
    old = story.create()
    pod = story.train()
    api.delete(names.KIND, "peonies", namespace)
    api.until_gone(names.KIND, "peonies", namespace)
    api.until_one("Pod", pod, namespace, lambda it: "deletionTimestamp" in it["metadata"])
    new = story.create()
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    story.until("Starting")
    jobs = api.list("Job", namespace)
    assert [job["metadata"]["labels"][names.RUN_UID] for job in jobs] == [new["metadata"]["uid"]]


def test_calls_that_get_no_answer_are_made_again(
    story: Story, start: Start, proxy: FaultProxy, through_proxy: Path
) -> None:
    lost = proxy.inject(Drop(after=True), calls(("apply", "create", "update")), at=3, times=4)
    start(through_proxy)
    story.create()
    lost.wait()
    story.finish(story.train())
    assert story.jobs() == ["peonies-trainer-1"]


def test_an_api_server_that_restarts_is_waited_for(
    story: Story, start: Start, control_plane: ControlPlane
) -> None:
    operator = start(lease_seconds="60")
    story.create()
    pod = story.train()
    control_plane.stop_api_server()
    control_plane.start_api_server()
    story.finish(pod, timeout=90)
    assert operator.ask("/readyz")[0] == 200


def _deafen(proxy: FaultProxy) -> None:
    """Whoever watches trainers hears nothing after the first list."""
    for resource in ("jobs", "pods"):
        proxy.inject(Silence(), calls("watch", resource), times=None)


def _as(plane: ControlPlane, namespace: str, account: str, story: Story) -> Path:
    """A kubeconfig under which the calls of one operator can be told from another's."""
    token = plane.token_of(namespace, account, cluster_admin=True)
    return plane.kubeconfig_of(token, plane.folder / f"{namespace}-{account}.kubeconfig")


def _writes(plane: ControlPlane, namespace: str, account: str) -> list[str]:
    """Resources that an account has written, one a call."""
    user = f"system:serviceaccount:{namespace}:{account}"
    reading = ("get", "list", "watch")
    return [call.resource for call in plane.calls(user) if call.verb not in reading]
