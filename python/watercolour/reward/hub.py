"""What the hub of models and data sets says, in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,  # pyright: ignore[reportPrivateImportUsage]
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason


@contextmanager
def told(what: str, kind: str, instead: str = "") -> Iterator[None]:
    """Translate whatever the hub or the way to it says, once.

    Args:
        what: is asked for, in the words of whoever asked.
        kind: of repository.
        instead: what else helps when the hub is away, after "Check the network and HF_ENDPOINT".

    Raises:
        InputError: name or token are refused (InvalidInput).
        InfrastructureError: the hub does not answer (HubUnavailable).
    """

    def refused(fault: str, remedy: str) -> InputError:
        return InputError(
            Reason.INVALID_INPUT, f"{what}: {fault}.", remedy=remedy, field="hub", value=what
        )

    try:
        yield
    except RevisionNotFoundError as error:
        raise refused(f"the {kind} has no such revision", "Name one that it has.") from error
    except GatedRepoError as error:
        raise refused(
            f"the {kind} is gated", "Ask its owner for access on its page, then try again."
        ) from error
    except RepositoryNotFoundError as error:
        raise refused(
            f"there is no such {kind}, or this token may not see it",
            "Check the name; set HF_TOKEN if it is private.",
        ) from error
    except (LocalTokenNotFoundError, HFValidationError) as error:
        raise refused(
            f"{str(error).splitlines()[0]}", "Set HF_TOKEN to a token that may write."
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise refused(
                f"the hub refuses the token (HTTP {status})",
                f"Set HF_TOKEN to a token that may write to OWNER's {kind}s.",
            ) from error
        raise _away(what, f"HTTP {status}", instead) from error
    except OfflineModeIsEnabled as error:
        raise _away(what, "HF_HUB_OFFLINE is set", instead) from error
    # The base of whatever its HTTP library raises, which differs between its releases.
    except (HTTPError, LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise _away(what, type(error).__name__, instead) from error


def _away(what: str, why: str, instead: str) -> InfrastructureError:
    return InfrastructureError(
        Reason.HUB_UNAVAILABLE,
        f"{what}: the hub cannot be reached ({why}).",
        remedy=f"Check the network and HF_ENDPOINT{instead}.",
    )
