"""Before the start, changes after it, deletion: what a run waits for and what it passes over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.operator.world import RUN, START, World, run_spec, story, training

from watercolour.api import load, yaml_text
from watercolour.api.reasons import Reason
from watercolour.api.spec import RunSpec
from watercolour.api.status import ConditionType, Phase
from watercolour_operator.desired import config
from watercolour_operator.desired.run import Run
from watercolour_operator.names import Component
from watercolour_operator.observed import Child, Trouble

T = ConditionType

OLD = Child("Deployment", f"{RUN}-env", "old", 1, START, owner_uid="uid-of-the-older-run")


def test_an_older_run_of_the_name_is_waited_for() -> None:
    world = World(foreign=(OLD, Child("Pod", f"{RUN}-env-x", "p", 1, START, deleting=True)))
    plan = world.live(5)
    assert plan.hold
    assert world.children == {}
    assert world.phase is Phase.PENDING
    assert world.said(T.PROGRESSING) == ("False", "WaitingForOldRun")
    assert f"Deployment {RUN}-env" in world.condition(T.PROGRESSING).message
    world.foreign = ()
    world.live(3)
    assert world.phase is Phase.STARTING


def test_somebody_elses_object_of_our_name_is_told_and_left_alone() -> None:
    world = World(foreign=(replace(OLD, owner_uid=None),))
    world.live(2)
    assert world.said(T.PROGRESSING) == ("False", "NameTaken")
    assert world.removed == []


def test_a_claim_that_outlived_its_run_is_taken_over() -> None:
    kept = Child("PersistentVolumeClaim", f"{RUN}-artifacts", "c", 1, START)
    world = World(foreign=(kept,))
    world.live(2)
    assert world.phase is Phase.STARTING


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (("Secret hub (spec.model.tokenSecretRef)",), "SecretMissing"),
        (("PersistentVolumeClaim data (spec.artifacts.claim)",), "StorageUnavailable"),
        (("ConfigMap pool (spec.references.configMap)",), "ContainerConfigInvalid"),
        (("PersistentVolumeClaim data (a)", "Secret claims (b)"), "SecretMissing"),
    ],
)
def test_what_the_specification_names_must_be_there_before_the_start(
    missing: tuple[str, ...], reason: str
) -> None:
    world = World(missing=missing)
    plan = world.live(3)
    assert world.children == {}
    assert world.phase is Phase.PENDING
    assert world.said(T.PROGRESSING) == ("False", reason)
    assert all(name in world.condition(T.PROGRESSING).message for name in missing)
    assert plan.again_seconds is not None
    assert plan.again_seconds <= 10, "nothing tells when a Secret comes"
    world.missing = ()
    world.live(2)
    assert world.phase is Phase.STARTING


def test_what_a_run_waits_for_is_told_once_and_pointed_at_elsewhere() -> None:
    world = World(missing=("Secret hub (spec.model.tokenSecretRef)",))
    world.live(3)
    told = [found.type for found in world.status.conditions if "Secret hub" in found.message]
    assert told == [T.PROGRESSING]
    for kind in (T.TRAINER_READY, T.RENDERERS_READY, T.ENV_READY, T.SCORER_READY):
        assert world.said(kind) == ("False", "SecretMissing")
        assert "Progressing says what" in world.condition(kind).message


REFUSED = Trouble(Reason.PERMISSION_DENIED, "The operator may not get secrets.", transient=True)


def test_a_run_whose_secrets_may_not_be_looked_at_says_so_and_starts_nothing() -> None:
    world = World()
    world.reconcile(replace(world.observe(), unasked=REFUSED))
    assert world.said(T.PROGRESSING) == ("False", "PermissionDenied")
    assert world.condition(T.PROGRESSING).message == REFUSED.message
    assert not world.children
    world.live(3)
    assert world.phase is Phase.STARTING


def test_a_run_that_trains_ends_well_though_its_secrets_may_not_be_looked_at() -> None:
    world = training()
    world.end_trainer(0)
    for _ in range(20):
        world.tick()
        world.reconcile(replace(world.observe(), unasked=REFUSED))
    assert world.phase is Phase.SUCCEEDED
    assert not world.of(Component.SCORER)


def test_a_secret_that_goes_while_the_run_trains_degrades_it() -> None:
    world = training()
    world.missing = ("Secret hub (spec.model.tokenSecretRef)",)
    world.live(2)
    assert world.phase is Phase.RUNNING
    assert world.said(T.DEGRADED) == ("True", "SecretMissing")


def test_an_invalid_specification_starts_nothing_until_it_is_corrected() -> None:
    world = World(spec=None, spec_problem="spec.trainer.steps=0: below 1. Set it to 1 or more.")
    plan = world.live(3)
    assert plan.hold
    assert world.phase is Phase.PENDING
    assert world.said(T.PROGRESSING) == ("False", "InvalidSpec")
    assert "spec.trainer.steps=0" in world.condition(T.PROGRESSING).message
    world.spec, world.spec_problem = run_spec(), None
    world.live(2)
    assert world.phase is Phase.STARTING


def test_a_specification_that_becomes_invalid_counts_as_it_was_at_the_start() -> None:
    world = training(step=5)
    world.spec, world.spec_problem = None, "spec.trainer.steps=0: below 1"
    world.live(2)
    assert world.phase is Phase.RUNNING
    assert world.said(T.DEGRADED) == ("True", "InvalidSpec")
    world.end_trainer(1, "no")
    world.live(3)
    assert world.attempt.number == 2


def test_an_invalid_specification_without_a_known_start_holds_what_runs() -> None:
    world = training(step=5)
    world.spec, world.spec_problem, world.started_with = None, "spec: cannot be read", None
    plan = world.live(2)
    assert plan.hold
    assert plan.remove == ()
    assert world.phase is Phase.RUNNING
    world.end_trainer(1, "no")
    world.live(3)
    assert world.attempt.number == 1, "nothing more is started"
    assert world.of(Component.SCORER) == [], "and no GPU waits for that"
    assert world.said(T.TRAINER_READY) == ("False", "InvalidSpec")
    world.spec, world.spec_problem = run_spec(), None
    world.live(3)
    assert world.attempt.number == 2


def test_an_invalid_run_still_ends_well_and_frees_its_scorer() -> None:
    world = training(step=5)
    world.spec, world.started_with = None, None
    world.end_trainer(0)
    world.live(5)
    assert world.phase is Phase.SUCCEEDED
    assert world.of(Component.SCORER) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": 7}, "spec.seed"),
        ({"model": {"id": "owner/other"}}, "spec.model"),
        ({"recipe": {"name": "hps-led"}}, "spec.recipe"),
    ],
)
def test_a_fixed_field_that_is_changed_after_the_start_is_passed_over(
    change: dict[str, object], field: str
) -> None:
    world = training()
    before = world.spec
    world.edit(**change, activeDeadlineSeconds=9000)
    plan = world.reconcile()
    assert world.said(T.DEGRADED) == ("True", "ImmutableField")
    assert field in world.condition(T.DEGRADED).message
    assert plan.spec is not None
    assert before is not None
    assert (plan.spec.seed, plan.spec.model, plan.spec.recipe) == (
        before.seed,
        before.model,
        before.recipe,
    )
    assert plan.spec.active_deadline_seconds == 9000, "what may change does"
    assert world.phase is Phase.RUNNING


@pytest.mark.parametrize("source", [{"claim": "pool"}, {"configMap": "pool"}])
def test_a_pool_on_a_volume_is_no_change(source: dict[str, str]) -> None:
    """What the processes read of it differs; what the run was started with does not."""
    world = training(references={**source, "perRollout": 2})
    assert world.spec is not None
    run = Run(RUN, "studio", "u", world.spec)
    data = config.config(run, world.settings)["data"]
    text = data.get(config.START_KEY, data[config.SPEC_KEY])
    world.started_with = load.from_dict(yaml_text.mapping(text, "start.yaml")).spec
    plan = world.reconcile()
    assert world.said(T.DEGRADED) == ("False", "Healthy")
    assert plan.spec == world.spec


def test_before_the_start_everything_may_change() -> None:
    world = World(missing=("Secret hub (x)",))
    world.reconcile()
    world.edit(seed=7)
    world.missing = ()
    plan = world.reconcile()
    assert plan.spec is not None
    assert plan.spec.seed == 7
    assert world.said(T.DEGRADED) == ("False", "Healthy")


def test_conditions_speak_of_the_generation_that_they_were_made_from() -> None:
    world = training()
    world.edit(activeDeadlineSeconds=9000)
    world.reconcile()
    assert world.status.observed_generation == 2
    assert {condition.observed_generation for condition in world.status.conditions} == {2}


def test_a_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    world = training()
    since = world.condition(T.TRAINER_READY).last_transition_time
    world.live(10)
    assert world.condition(T.TRAINER_READY).last_transition_time == since
    world.end_trainer(1)
    world.live(1)
    assert world.condition(T.TRAINER_READY).last_transition_time > since


def test_a_deleted_run_creates_nothing_and_lets_its_scorer_go_first() -> None:
    world = training()
    world.deleting = world.now
    plan = world.reconcile()
    assert plan.hold
    assert plan.remove[0].name == f"{RUN}-scorer"
    assert plan.status == world.status
    world.live(5)
    assert world.pods == {}


def test_a_run_that_is_deleted_while_it_is_created_starts_nothing_more() -> None:
    world = World(deleting=START)
    plan = world.live(2)
    assert plan.hold
    assert world.children == {}
    assert story(world.events) == []


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_what_is_over_stays_over_whatever_is_changed(phase: Phase) -> None:
    world = training(restartPolicy={"maxRestarts": 0})
    world.end_trainer(0 if phase is Phase.SUCCEEDED else 1)
    world.live(10)
    assert world.phase is phase
    message = world.condition(T.PROGRESSING).message
    for change in ({"suspend": True}, {"restartPolicy": {"maxRestarts": 9}}, {"suspend": False}):
        world.edit(**change)
        world.live(3)
        assert world.phase is phase
    world.spec, world.spec_problem = None, "broken"
    world.live(3)
    assert world.phase is phase
    assert world.condition(T.PROGRESSING).message == message


def test_fixed_fields_are_those_that_the_specification_marks() -> None:
    from watercolour_operator.lifecycle.specs import FIXED_FIELDS

    assert set(FIXED_FIELDS) == {"seed", "model", "prompts", "recipe", "references"}
    assert set(FIXED_FIELDS) <= set(RunSpec.model_fields)
