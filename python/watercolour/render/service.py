"""The renderer's command line: ``python -m watercolour.render.service --slots 2 --port 8080``."""

from __future__ import annotations

import argparse
import socket
import sys
from functools import partial
from pathlib import Path

from watercolour import logs, service
from watercolour.api.errors import InputError, WatercolourError
from watercolour.api.reasons import Reason
from watercolour.render import canary, chromium, homes, isolation, vendor
from watercolour.render.schemas import MAX_SCALE, MAX_SECONDS
from watercolour.render.wear import Wear

#: Seconds after SIGTERM until paintings are cut off. Each ends by its own deadline before that.
GRACE_SECONDS = MAX_SECONDS + 2


def parser(program: str = "watercolour.render.service") -> argparse.ArgumentParser:
    """Every option of the renderer, with its default."""
    made = argparse.ArgumentParser(
        prog=program,
        description="Serve paintings of untrusted p5.brush sketches; see docs/renderer.md.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    service.add_arguments(made)
    wear = Wear()
    made.add_argument("--slots", type=_count, default=2, help="sketches painted at once")
    made.add_argument(
        "--max-scale",
        type=_scale,
        default=1,
        help=f"largest drawing scale that is taken, up to {MAX_SCALE}; above 1 it paints prints, "
        "and a slot needs more memory",
    )
    made.add_argument(
        "--slot-renders", type=_count, default=wear.renders, help="paintings of one page"
    )
    made.add_argument(
        "--slot-minutes",
        type=_minutes,
        default=wear.seconds / 60,
        help="age after which a page is replaced",
    )
    made.add_argument(
        "--slot-memory-mib",
        type=_count,
        default=wear.memory_bytes // 2**20,
        help="memory of a page's process, after a painting, beyond which it is replaced",
    )
    made.add_argument(
        "--grace-seconds",
        type=_count,
        default=GRACE_SECONDS,
        help="longest wait after SIGTERM for paintings, each of which ends by its own deadline",
    )
    made.add_argument(
        "--network-canary",
        choices=("Required", "Warn", "Off"),
        default="Off",
        help="what follows if --canary-address can be reached: take no work, warn, or do not try",
    )
    made.add_argument(
        "--canary-address", metavar="IP:PORT", help="an address that the network policy forbids"
    )
    made.add_argument(
        "--network-namespace",
        choices=("Required", "Preferred", "Off"),
        default="Preferred",
        help="a network of its own, with a loopback only: end if there can be none, do without, or "
        "do not try",
    )
    made.add_argument(
        "--drain-socket",
        type=Path,
        metavar="FILE",
        help="Unix socket to serve as well; watercolour.render.drain needs it, because it finds no "
        "port from inside the network that this process enters",
    )
    made.add_argument(
        "--allow-unsandboxed",
        action="store_true",
        help="go on without Chromium's own sandbox where the kernel lacks it",
    )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal comes; the exit status."""
    program = "watercolour.render.service"
    args = parser(program).parse_args(arguments)
    logs.setup("renderer")
    try:
        vendor.library("p5.min.js")
        chromium.find()
        homes.sweep()
        forbidden = _forbidden(args)
        # Both stay in the network that this process leaves.
        outpost = canary.outpost(*forbidden) if forbidden else None
        bound = service.listen(args.host, args.port)
        _serve(args, outpost, bound, isolation.enter(args.network_namespace))
    except WatercolourError as error:
        sys.stderr.write(f"watercolour: {error.reason}: {error}\n")
        return error.exit_code
    return 0


def _serve(
    args: argparse.Namespace,
    outpost: canary.Outpost | None,
    bound: socket.socket,
    isolated: isolation.Isolation,
) -> None:
    """Serve, from where this process is shut in."""
    # Imported only now: numpy starts threads, and a process with threads cannot be shut in.
    from watercolour.render.app import Options, Service

    options = Options(
        launch=chromium.Launch(
            allow_unsandboxed=args.allow_unsandboxed,
            limits=isolated.of(args.slots, prints=args.max_scale > 1),
        ),
        slots=args.slots,
        max_scale=args.max_scale,
        wear=Wear(args.slot_renders, 60 * args.slot_minutes, args.slot_memory_mib * 2**20),
        canary=args.network_canary,
        outpost=outpost,
        isolation=isolated,
    )
    renderer = Service(options)
    drain = partial(renderer.stopping, args.grace_seconds)
    also = [service.listen_at(args.drain_socket)] if args.drain_socket else []
    service.serve(renderer.app, args, drain=drain, refuses=True, bound=bound, also=also)


def _count(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _scale(text: str) -> int:
    """A drawing scale.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SCALE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_SCALE}")
    return int(text)


def _minutes(text: str) -> float:
    """A number of minutes above 0.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return minutes


def _forbidden(args: argparse.Namespace) -> tuple[str, int] | None:
    """The canary's address.

    Raises:
        InputError: it is missing or malformed.
    """
    if args.network_canary == "Off":
        return None
    if not args.canary_address:
        raise InputError(
            Reason.INVALID_INPUT,
            f"--canary-address: --network-canary={args.network_canary} needs it.",
            remedy="Name an address that the network policy forbids, or say Off.",
            field="canary-address",
        )
    return canary.parse(args.canary_address)


if __name__ == "__main__":
    sys.exit(main())
