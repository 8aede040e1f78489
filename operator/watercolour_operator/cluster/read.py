"""What is asked of the API server now and then: a ConfigMap's text, why a Job has no pods."""

from __future__ import annotations

from watercolour_operator.cluster import kinds
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.kinds import BY_NAME


async def config(api: Api, namespace: str, name: str, *paths: str) -> str | None:
    """The text in a ConfigMap that pods find at the first of some paths; None when there is none.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    raw = await api.get(BY_NAME["ConfigMap"], namespace, name)
    data = (raw or {}).get("data") or {}
    found = (data.get(path.rpartition("/")[2]) for path in paths)
    return next((text for text in found if text is not None), None)


async def refusal(api: Api, namespace: str, uid: str) -> str | None:
    """The newest words with which pods of a Job were refused; None when there are none.

    Raises:
        ApiError: the API server refused or did not answer.
    """
    fields = f"involvedObject.uid={uid},reason=FailedCreate"
    page = await api.page(kinds.EVENT, namespace, {"fieldSelector": fields, "limit": "50"})
    newest = max(page["items"], key=lambda raw: raw.get("lastTimestamp") or "", default=None)
    return str(newest["message"]) if newest else None
