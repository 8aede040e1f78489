"""Which runs keep a release, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from watercolour.api.status import Phase
from watercolour_operator import uninstall
from watercolour_operator.uninstall import Active


def run(name: str, phase: str | None = None, *, suspend: bool = False) -> dict[str, Any]:
    status = {} if phase is None else {"status": {"phase": phase}}
    spec = {"suspend": True} if suspend else {}
    return {"metadata": {"namespace": "lab", "name": name}, "spec": spec, **status}


@pytest.mark.parametrize("phase", list(Phase))
def test_a_run_is_at_rest_only_when_it_holds_nothing(phase: Phase) -> None:
    rests = phase in (Phase.SUCCEEDED, Phase.FAILED, Phase.SUSPENDED)
    assert bool(uninstall.active([run("a", phase)])) is not rests


def test_a_run_of_which_nothing_is_known_counts_as_active() -> None:
    assert uninstall.active([run("a")]) == (Active("lab", "a", "Pending", suspend=False),)
    assert uninstall.active([run("a", "SomethingNewer")])


def test_the_refusal_names_every_run_and_the_first_commands() -> None:
    runs = [run(f"r{number}", "Running") for number in range(5)]
    words = uninstall.refusal(uninstall.active(runs))
    assert words.startswith("5 runs hold pods")
    for number in range(5):
        assert f"  lab/r{number}  Running" in words
    commands = [line for line in words.splitlines() if "kubectl" in line]
    assert len(commands) == 3
    assert "uninstall.runs=Suspend" in words


def test_the_command_suspends_that_run() -> None:
    (found,) = uninstall.active([run("peony", "Running")])
    assert uninstall.command(found) == (
        """kubectl -n lab patch wcr peony --type=merge -p '{"spec":{"suspend":true}}'"""
    )
