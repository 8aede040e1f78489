"""Pools as data sets of the hub. The only module that knows huggingface_hub.

A data set holds a pool's folder as it is, and beside it what the hub's viewer reads. The token is
the one that huggingface_hub finds: HF_TOKEN, or what ``hf auth login`` kept.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
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
from watercolour.reward import pool as pools
from watercolour.reward import pool_share

PREFIX = "hub:"
_NAME = re.compile(r"hub:([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")


def parse(text: str) -> tuple[str, str | None]:
    """Owner/name and revision of ``hub:OWNER/NAME@REVISION``; the revision may be left out.

    Raises:
        InputError: it is not of that form (InvalidInput).
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise InputError(
            Reason.INVALID_INPUT,
            f"{text!r} names no data set of the hub.",
            remedy="Write hub:OWNER/NAME, or hub:OWNER/NAME@REVISION to fetch one revision.",
            field="hub",
            value=text,
        )
    return found[1], found[2]


def publish(
    source: str | Path, target: str, *, private: bool = True, endpoint: str | None = None
) -> tuple[int, str]:
    """Upload a pool as one commit; return its paintings and the commit's address.

    Args:
        source: a pool.
        target: ``hub:OWNER/NAME``; the data set is made if it is not there.
        private: whether a new data set is.
        endpoint: of the hub; None is the usual one, or HF_ENDPOINT.

    Raises:
        InputError: the pool cannot be published, or the hub refuses name or token (InvalidInput).
        InfrastructureError: the hub does not answer (HubUnavailable).
    """
    repo, revision = parse(target)
    with tempfile.TemporaryDirectory(prefix="watercolour-") as place:
        folder = Path(place) / "pool"
        count = pool_share.to_folder(source, folder)
        pool_share.write_viewer(folder)
        with _told(target):
            api = HfApi(endpoint=endpoint)
            api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repo,
                repo_type="dataset",
                folder_path=folder,
                revision=revision,
                commit_message=f"Publish {pools.read_card(folder).name}: {count} paintings",
                # What was published before and is no longer in the pool goes.
                delete_patterns=["paintings/*", "sketches/*"],
            )
    return count, commit.commit_url


def fetch(source: str, target: Path, *, endpoint: str | None = None) -> int:
    """Download a pool into a new folder; return its paintings.

    Raises:
        InputError: there is no such data set, or it holds no pool; or ``target`` is there already.
        InfrastructureError: the hub does not answer (HubUnavailable), or the disk is full.
    """
    repo, revision = parse(source)
    with tempfile.TemporaryDirectory(prefix="watercolour-") as place:
        folder = Path(place) / repo.partition("/")[2]
        with _told(source):
            snapshot_download(
                repo,
                repo_type="dataset",
                revision=revision,
                local_dir=folder,
                endpoint=endpoint,
            )
        return pool_share.from_folder(folder, target)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Translate whatever the hub or the way to it says, once."""

    def refused(fault: str, remedy: str) -> InputError:
        return InputError(
            Reason.INVALID_INPUT, f"{what}: {fault}.", remedy=remedy, field="hub", value=what
        )

    try:
        yield
    except RevisionNotFoundError as error:
        raise refused("the data set has no such revision", "Name one that it has.") from error
    except GatedRepoError as error:
        raise refused(
            "the data set is gated", "Ask its owner for access on its page, then try again."
        ) from error
    except RepositoryNotFoundError as error:
        raise refused(
            "there is no such data set, or this token may not see it",
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
                "Set HF_TOKEN to a token that may write to OWNER's data sets.",
            ) from error
        raise _away(what, f"HTTP {status}") from error
    except OfflineModeIsEnabled as error:
        raise _away(what, "HF_HUB_OFFLINE is set") from error
    # The base of whatever its HTTP library raises, which differs between its releases.
    except (HTTPError, LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise _away(what, type(error).__name__) from error


def _away(what: str, why: str) -> InfrastructureError:
    return InfrastructureError(
        Reason.HUB_UNAVAILABLE,
        f"{what}: the hub cannot be reached ({why}).",
        remedy="Check the network and HF_ENDPOINT, or share a folder or a .parquet file instead.",
    )
