"""The kinds of objects that a run has, and how much of each the operator reads."""

from __future__ import annotations

from dataclasses import dataclass

from watercolour_operator import names


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object."""

    name: str
    #: Group and version as in a manifest's apiVersion.
    api_version: str
    plural: str
    #: Read whole, or only its metadata (which spares memory and secrets).
    whole: bool = False
    #: The cluster may lack it: KEDA's.
    optional: bool = False
    #: The specification cannot change: an existing object is left as it was made.
    fixed: bool = False

    @property
    def resource(self) -> str:
        """Plural and group, as in a role: ``jobs.batch``."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.plural}.{group}" if slash else self.plural

    def path(self, namespace: str | None, name: str = "", below: str = "") -> str:
        """The object's path; without a name the collection's, without a namespace everywhere."""
        root = "/apis" if "/" in self.api_version else "/api"
        parts = [root, self.api_version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        return "/".join([*parts, *filter(None, (name, below))])


RUN = Kind(names.KIND, names.API_VERSION, names.PLURAL, whole=True)
POD = Kind("Pod", "v1", "pods", whole=True)
SECRET = Kind("Secret", "v1", "secrets")
EVENT = Kind("Event", "v1", "events", whole=True)
LEASE = Kind("Lease", "coordination.k8s.io/v1", "leases", whole=True)
ACCESS = Kind(
    "SelfSubjectAccessReview", "authorization.k8s.io/v1", "selfsubjectaccessreviews", whole=True
)
CLAIM = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", whole=True)

#: What is listed and watched for every run, pods included.
WATCHED = (
    Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    Kind("ServiceAccount", "v1", "serviceaccounts"),
    CLAIM,
    Kind("ConfigMap", "v1", "configmaps"),
    Kind("Service", "v1", "services"),
    Kind("Deployment", "apps/v1", "deployments", whole=True),
    Kind("Job", "batch/v1", "jobs", whole=True, fixed=True),
    POD,
    Kind("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", optional=True),
    Kind("ScaledObject", "keda.sh/v1alpha1", "scaledobjects", optional=True),
)
BY_NAME = {kind.name: kind for kind in (*WATCHED, RUN, SECRET, EVENT, LEASE)}
