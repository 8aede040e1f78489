"""What happens around a training: files, tracking, restarts, cleaning up, network."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from watercolour.api.part import (
    CLUSTER,
    FIXED,
    REPOSITORY,
    Flag,
    Line,
    Name,
    Natural,
    Part,
    Positive,
    Quantity,
    SecretRef,
    Url,
    WholeSeconds,
)


class Storage(Part):
    """The claim that the operator makes when none is named."""

    size: Quantity = Field(default="20Gi", description="Bytes, as a Kubernetes quantity.")
    class_name: Name | None = Field(
        default=None, description="StorageClass; unset is the cluster's default."
    )
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"] = Field(
        default="ReadWriteOnce", description="Access mode of the claim."
    )


class Hub(Part):
    """Push the adapter, with its model card, to the hub. A failed push never stops the run."""

    repo: Annotated[str, Field(pattern=REPOSITORY, max_length=300)] = Field(
        description="Repository, as owner/name."
    )
    secret_ref: Annotated[SecretRef | None, CLUSTER] = Field(
        default=None,
        description="An access token that may write there. One machine uses HF_TOKEN, or the token "
        "of its own login.",
    )
    every: Positive = Field(
        default=1, description="Push every so many checkpoints; the last one always."
    )
    private: Flag = Field(default=True, description="Create the repository as a private one.")


class Artifacts(Part):
    """Where the run's files go."""

    path: Annotated[Line, FIXED] = Field(
        default="runs", description="Folder that gets one folder a run."
    )
    claim: Annotated[Name | None, CLUSTER, FIXED] = Field(
        default=None, description="Existing PersistentVolumeClaim; unset makes one for the run."
    )
    storage: Annotated[Storage, CLUSTER, FIXED] = Field(
        default_factory=Storage, description="The claim that the operator makes when none is named."
    )
    keep: Annotated[Flag, CLUSTER] = Field(
        default=True, description="Keep the claim that was made when the run is deleted."
    )
    hub: Hub | None = Field(default=None, description="Publish what is trained on the hub.")


class Trackio(Part):
    """An experiment tracker, which gets every row of metrics.csv. Its failure never stops a run."""

    project: Line = Field(default="watercolour", description="Project's name.")
    endpoint: Url | None = Field(
        default=None,
        description="A self-hosted server; unset writes files into the run's folder.",
    )
    secret_ref: Annotated[SecretRef | None, CLUSTER] = Field(
        default=None,
        description="The server's write token. One machine takes it from TRACKIO_WRITE_TOKEN.",
    )


class Tracking(Part):
    """Where the figures go besides metrics.csv."""

    trackio: Trackio | None = Field(default=None, description="Send each step to trackio.")
    prometheus: Annotated[Flag, CLUSTER] = Field(
        default=True, description="Label the pods so that Prometheus finds /metrics."
    )


class RestartPolicy(Part):
    """How often a trainer that failed is started again."""

    max_restarts: Natural = Field(
        default=3, description="Restarts after errors and lack of memory; 0 never restarts."
    )
    ignore_disruptions: Flag = Field(
        default=True, description="Preemption and node loss do not count."
    )


class Cleanup(Part):
    """When the objects of a finished run go. GPUs are always given back at once."""

    ttl_seconds: Natural = Field(
        default=3600, description="Seconds that the finished trainer's pod stays, for its log."
    )
    run_ttl_seconds_succeeded: WholeSeconds | None = Field(
        default=None, description="Seconds after which a succeeded run is deleted; unset never."
    )
    run_ttl_seconds_failed: WholeSeconds | None = Field(
        default=None, description="Seconds after which a failed run is deleted; unset never."
    )


Addresses = Annotated[
    tuple[Annotated[str, Field(max_length=50)], ...],
    Field(max_length=32),
]


class Egress(Part):
    """What may be reached outside the cluster; each a list of CIDRs, or the one word `all`."""

    trainer: Addresses = Field(default=(), description="For the trainer: model hub and tracking.")
    env: Addresses = Field(
        default=(), description="For the environment: a scorer or judge outside the cluster."
    )


class PodTemplates(Part):
    """Pod templates that are merged, by container name, into the operator's."""

    trainer: dict[str, Any] = Field(default_factory=dict, description="For the trainer.")
    env: dict[str, Any] = Field(default_factory=dict, description="For the environment.")
    scorer: dict[str, Any] = Field(default_factory=dict, description="For the scorer.")
    judge: dict[str, Any] = Field(default_factory=dict, description="For the judge.")
    renderers: dict[str, Any] = Field(
        default_factory=dict,
        description="For the renderers: placement and labels alone, never security or network.",
    )
