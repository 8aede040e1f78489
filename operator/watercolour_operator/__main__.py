"""``python -m watercolour_operator``: the operator's process.

Without ``--kubeconfig`` it uses the account of the pod that it runs in, or kubectl's own outside of
one. Exit status: 0 stopped by a
signal or all is well with ``--check``, 1 ``--check`` found a verb missing, 2 usage, 3 the Lease was
lost or the surroundings are at fault.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket
import sys

from watercolour import logs
from watercolour_operator import handlers, options, probes, rights
from watercolour_operator.cluster.api import NoCluster, connect
from watercolour_operator.cluster.errors import ApiError
from watercolour_operator.lease import Lease, LeaseLost
from watercolour_operator.scaling import sources
from watercolour_operator.serve import Operator
from watercolour_operator.settings import Settings

log = logs.get("watercolour_operator")

USAGE, INFRASTRUCTURE = 2, 3


def main(argv: list[str] | None = None) -> int:
    """Read the options and work until a signal comes."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        settings = options.settings(args)
    except options.OptionError as error:
        parser.error(str(error))
    logs.setup("operator")
    try:
        return asyncio.run(_check(args, settings) if args.check else _work(args, settings))
    except (ApiError, LeaseLost, NoCluster, OSError) as error:
        log.error("%s", error)
        return INFRASTRUCTURE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m watercolour_operator", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--kubeconfig", help="file to use instead of the pod's account")
    parser.add_argument("--config", help="file of settings, as the chart writes it")
    parser.add_argument(
        "--identity", help="name in the Lease (default: $POD_NAME, or host and a random word)"
    )
    parser.add_argument(
        "--check", action="store_true", help="print the rights that are missing, and end"
    )
    options.add_flags(parser)
    return parser


async def _check(args: argparse.Namespace, settings: Settings) -> int:
    async with connect(args.kubeconfig, request_seconds=settings.request_seconds) as api:
        missing = await rights.missing(api, settings)
    for line in missing:
        sys.stdout.write(line + "\n")
    return 1 if missing else 0


async def _work(args: argparse.Namespace, settings: Settings) -> int:
    async with (
        connect(
            args.kubeconfig,
            request_seconds=settings.request_seconds,
            per_second=settings.api_per_second,
            burst=settings.api_burst,
        ) as api,
        sources.connect(settings, api) as asked,
    ):
        # Of a pod's containers only one runs at a time, so its name is taken back at once.
        identity = args.identity or os.environ.get("POD_NAME") or _random_identity()
        lease = Lease(
            api, settings.lease_namespace, settings.lease_name, identity, settings.lease_seconds
        )
        operator = Operator(settings, api, lease, asked)
        async with probes.served(operator):
            await operator.work(lambda: handlers.watch_runs(api, operator.store, settings))
    log.info("stopped")
    return 0


def _random_identity() -> str:
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


if __name__ == "__main__":
    sys.exit(main())
