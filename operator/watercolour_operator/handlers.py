"""kopf as the event loop for runs, and nothing else: it tells the store what it sees.

Only plain events are asked for, so kopf writes nothing: no finalizer, no annotation, no event.
"""

from __future__ import annotations

import logging
from typing import Any, cast

import kopf

from watercolour_operator import names
from watercolour_operator.cluster.api import Api
from watercolour_operator.cluster.store import Store
from watercolour_operator.cluster.watch import PAGE, SERVER_SECONDS
from watercolour_operator.settings import Settings


async def watch_runs(api: Api, store: Store, settings: Settings) -> None:
    """Watch the runs until SIGTERM or SIGINT."""
    # One line an event tells nothing that the metrics do not.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    await kopf.operator(
        registry=_registry(api, store),
        settings=_settings(settings),
        standalone=True,
        # kopf would make one of the user's name, and a container's user may have none.
        identity=cast(Any, "watercolour-operator"),
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
    )


def _registry(api: Api, store: Store) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def credentials(**_: Any) -> kopf.ConnectionInfo:
        return await _credentials(api)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        raw = cast(dict[str, Any], event["object"])
        if event["type"] == "DELETED":
            metadata = raw["metadata"]
            key = (metadata["namespace"], metadata["name"])
            store.drop_run(key, metadata["uid"], int(metadata["resourceVersion"]))
        else:
            store.put_run(raw)

    # The decorators have registered them.
    del credentials, seen
    return registry


async def _credentials(api: Api) -> kopf.ConnectionInfo:
    """What our own connection uses; asked for again whenever the API server wants a new token."""
    settings = api.client.configuration
    scheme, _, token = (await api.token() or "").partition(" ")
    return kopf.ConnectionInfo(
        server=str(settings.host),
        ca_path=settings.ssl_ca_cert,
        insecure=not settings.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=settings.cert_file,
        private_key_path=settings.key_file,
    )


def _settings(settings: Settings) -> kopf.OperatorSettings:
    ours = kopf.OperatorSettings()
    ours.posting.enabled = False
    ours.scanning.disabled = True
    ours.persistence.finalizer = f"{names.GROUP}/finalizer"
    ours.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=names.GROUP)
    ours.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=names.GROUP)
    ours.watching.server_timeout = SERVER_SECONDS
    ours.watching.client_timeout = SERVER_SECONDS + 30
    ours.watching.connect_timeout = 10
    ours.watching.inactivity_timeout = settings.watch_silence_seconds
    ours.watching.chunk_size = PAGE
    ours.networking.request_timeout = settings.request_seconds
    return ours
