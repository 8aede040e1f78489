"""Pools as data sets of the hub.

A data set holds a pool's folder as it is, and beside it what the hub's viewer reads. The token is
the one that huggingface_hub finds: HF_TOKEN, or what ``hf auth login`` kept.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.reward import pool as pools
from watercolour.reward import pool_share
from watercolour.reward.hub import told

PREFIX = "hub:"
#: What helps besides when the hub is away.
INSTEAD = ", or share a folder or a .parquet file instead"
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
        with told(target, "data set", INSTEAD):
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
        with told(source, "data set", INSTEAD):
            snapshot_download(
                repo,
                repo_type="dataset",
                revision=revision,
                local_dir=folder,
                endpoint=endpoint,
            )
        return pool_share.from_folder(folder, target)
