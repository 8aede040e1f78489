"""Every name, label, annotation, port and path of a run's objects, in one place."""

from __future__ import annotations

import hashlib
from enum import StrEnum

GROUP = "watercolour.dev"
VERSION = "v1alpha1"
PLURAL = "watercolourruns"
KIND = "WatercolourRun"
API_VERSION = f"{GROUP}/{VERSION}"

#: Field manager of every server-side apply, and the reporting component of events.
MANAGER = "watercolour-operator"


class Component(StrEnum):
    """The parts of a run that have pods."""

    TRAINER = "trainer"
    RENDERERS = "renderers"
    ENV = "env"
    SCORER = "scorer"
    JUDGE = "judge"


#: Labels of every object of a run. The uid finds what a lost operator left behind.
RUN = f"{GROUP}/run"
RUN_UID = f"{GROUP}/run-uid"
COMPONENT = f"{GROUP}/component"
ATTEMPT = f"{GROUP}/attempt"
APP_LABELS = {"app.kubernetes.io/name": "watercolour", "app.kubernetes.io/managed-by": MANAGER}
#: Label of a scorer that several runs of a namespace share, and of the objects around it.
SHARED = f"{GROUP}/shared"
#: Label of pods that Prometheus may scrape on the port named `http`.
METRICS = f"{GROUP}/metrics"
#: Label of a claim that outlives its run; nothing sweeps it away.
KEEP = f"{GROUP}/keep"
#: Labels of the operator's own pods, by which NetworkPolicies know who may ask.
OPERATOR_LABELS = {
    "app.kubernetes.io/name": "watercolour",
    "app.kubernetes.io/component": "operator",
}
#: Kueue's label for the queue that a Job or a pod waits in.
QUEUE = "kueue.x-k8s.io/queue-name"

#: Digest of the manifest that an object was last made from, so that a new operator need not
#: apply everything again to know it.
APPLIED = f"{GROUP}/applied"

#: A Job's own label of a pod among several: its number.
INDEX = "batch.kubernetes.io/job-completion-index"

#: What the ReplicaSet looks at, after readiness, to choose the pod that goes.
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

PORTS = {
    Component.TRAINER: 8000,
    Component.RENDERERS: 8080,
    Component.ENV: 8000,
    Component.SCORER: 8000,
    Component.JUDGE: 8000,
}

#: Where a container finds the run's specification and the artifacts.
SPEC_FOLDER = "/etc/watercolour"
SPEC_FILE = f"{SPEC_FOLDER}/run.yaml"
#: What the run was started with, where its processes are told it in other terms.
START_FILE = f"{SPEC_FOLDER}/start.yaml"
ARTIFACTS_FOLDER = "/artifacts"

#: Characters of a run's name that stand whole in the name of its Job.
LONGEST_JOB_STEM = 40


def child(run: str, component: Component) -> str:
    """Name of a component's Deployment, Service, NetworkPolicy and ServiceAccount."""
    return f"{run}-{component}"


def trainer_job(run: str, attempt: int) -> str:
    """Name of the trainer's Job: a new one for every attempt, and never two for one attempt.

    A long run name is cut and told apart by its digest: ten digits of an attempt and the number of
    a pod among several have to fit into a host name's 63 characters.
    """
    if len(run) > LONGEST_JOB_STEM:
        digest = hashlib.sha256(run.encode()).hexdigest()[:8]
        run = f"{run[: LONGEST_JOB_STEM - 9].rstrip('-')}-{digest}"
    return f"{run}-trainer-{attempt}"


def config(run: str) -> str:
    """Name of the ConfigMap with the run's specification."""
    return f"{run}-spec"


def claim(run: str) -> str:
    """Name of the claim that is made when the specification names none."""
    return f"{run}-artifacts"


def deny(run: str) -> str:
    """Name of the NetworkPolicy that refuses whatever no other one allows."""
    return f"{run}-deny"


def shared_scorer(digest: str) -> str:
    """Name of a namespace's scorer; the digest is of all that makes scores comparable."""
    return f"watercolour-scorer-{digest}"
