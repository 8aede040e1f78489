"""The rules of :mod:`watercolour.api.rules` in CEL, for the API server.

Each rule stands at the model that it speaks of. Its message names field, value and remedy in the
words of the Python rule; a test holds the two to the same verdict, on a real API server. ``self``
has every default filled in, so only fields without one are asked for with ``has()``.

What CEL cannot say stays with Python alone: which fields TRL knows, which recipes exist, what
stands deep in a pod template. The operator reports those as a condition with reason InvalidSpec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import BaseModel

from watercolour.api import crd_trainer, part
from watercolour.api.crd_rule import Rule, text
from watercolour.api.policy import Prompts
from watercolour.api.recipe import LONGEST_TERM, TERM, TERM_REMEDY, References, TierShares
from watercolour.api.spec import RunSpec
from watercolour.api.status import Phase
from watercolour.api.terms import ASKS, Server


def by_model() -> dict[str, tuple[Rule, ...]]:
    """Every rule, by the name of the model, or of the model and its field, that has it."""
    return {
        "WatercolourRun": (_name(), *_fixed()),
        "RunSpec": (
            *_env(),
            *_terms(),
            crd_trainer.beta(),
            *crd_trainer.sampling(),
            crd_trainer.thinking(),
            _mark(),
            _fallback(),
            crd_trainer.cold_start(),
        ),
        "Model": tuple(_model()),
        "Prompts": (_subjects(),),
        "Recipe.weights": tuple(_weights("spec.recipe.weights")),
        "Stage.weights": tuple(_weights("spec.recipe.schedule.stages[].weights")),
        "Schedule": (_rising("recipe.schedule.stages", "stages"),),
        "Recipe": (_rising("recipe.curriculum", "curriculum"),),
        "TierShares": (_sum(TierShares, "references.tierShares"),),
        "References": (_sources(),),
        "Trainer": (*crd_trainer.trainer(), *crd_trainer.engine(), *crd_trainer.parted()),
        "Trainer.grpo": tuple(crd_trainer.owned()),
        "Renderers": tuple(_replicas()),
        "Scaling": (_at_most("renderers.scaling", "min", "max"),),
        "Canvas": (_at_most("renderers.canvas", "minSide", "maxSide"),),
        "Checkpoint": (_checkpoint(),),
        "Judge": tuple(_judge()),
        "Egress": (_cidrs("trainer"), _cidrs("env")),
        "Resources": (_requests(),),
    }


def of_shape(pattern: str, *, is_quantity: bool = False) -> Rule:
    """A text fits a pattern. The schema's own `pattern` would answer with the pattern alone."""
    fault, remedy = part.SHAPES[pattern]
    fits = f"self.matches({text(pattern)})"
    # An address may hold a password, and what is no line breaks the message.
    shown = "" if pattern in (part.HTTP_URL, part.CACHE_URL, part.LINE) else "{self}: "
    return Rule(
        f"type(self) == int || {fits}" if is_quantity else fits, f"{shown}{fault}. {remedy}"
    )


def fixed_paths(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, bool]]:
    """Paths of fields that are fixed once the run has started, and whether they may be unset."""
    for name, info in part.fields_of(model).items():
        path = f"{prefix}.{name}"
        below = part.submodel(info.annotation)
        if part.FIXED in info.metadata:
            default = info.get_default(call_default_factory=True)
            yield path, default in (None, ())
        elif below is not None:
            yield from fixed_paths(below, path)


def _name() -> Rule:
    return Rule(
        f"self.metadata.name.matches({text(part.RUN_NAME)})",
        f"metadata.name={{self.metadata.name}}: {'. '.join(part.SHAPES[part.RUN_NAME])}",
    )


def _fixed() -> Iterator[Rule]:
    """Transition rules for what cannot change once the run has started."""
    phase = "oldSelf.status.phase"
    pending = f"!has(oldSelf.status) || !has({phase}) || {phase} == {text(Phase.PENDING)}"
    for path, optional in fixed_paths(RunSpec, "spec"):
        same = f"self.{path} == oldSelf.{path}"
        if optional:
            same = f"has(self.{path}) == has(oldSelf.{path}) && (!has(self.{path}) || {same})"
        yield Rule(
            f"{pending} || ({same})",
            f"{path}: fixed once the run has started (phase {{{phase}}}). "
            "Set it back, or make a new run.",
            f".{path}",
        )


def _env() -> Iterator[Rule]:
    rollouts, probes = "trainer.rolloutsPerStep", "trainer.guards.probes"
    is_larger = f"self.{rollouts} >= self.{probes}"
    demand = f"({is_larger} ? self.{rollouts} : self.{probes})"
    yield Rule(
        f"self.env.sessions >= {demand}",
        "spec.env.sessions={self.env.sessions}: below "
        f"{{{is_larger} ? {text(rollouts)} : {text(probes)}}}={{{demand}}}, so the environment "
        f"would refuse the rest. Set sessions to {{{demand}}} or more.",
        ".env.sessions",
    )
    yield Rule(
        "self.env.messageTimeoutSeconds > self.renderers.deadlineSeconds",
        "spec.env.messageTimeoutSeconds={self.env.messageTimeoutSeconds}: not above "
        "renderers.deadlineSeconds={self.renderers.deadlineSeconds}, so clients would give up "
        "first. Set messageTimeoutSeconds to {5.0 * self.renderers.deadlineSeconds}, or lower "
        "deadlineSeconds.",
        ".env.messageTimeoutSeconds",
    )


def _terms() -> Iterator[Rule]:
    """A term with a weight needs somebody who gives its value."""
    backends: dict[Server, str] = {"scorer": "embedded or hpsv3", "judge": "embedded or openai"}
    for server, others in backends.items():
        asked = f"t in {json.dumps(list(ASKS[server]))}"
        whole, stages = "self.recipe.weights", "self.recipe.schedule.stages"
        off = f"self.{server}.backend != 'none'"
        weighs = f"{asked} && {whole}[t] > 0.0"
        term = f"{whole}.filter(t, {weighs})[0]"
        remedy = f"Set backend to {others}, or the weight to 0."
        yield Rule(
            f"{off} || !has({whole}) || !{whole}.exists(t, {weighs})",
            f"spec.{server}.backend=none: recipe.weights.{{{term}}}={{{whole}[{term}]}} needs a "
            f"{server}. {remedy}",
            f".{server}.backend",
        )
        later = f"s.weights.exists(t, {asked} && s.weights[t] > 0.0)"
        yield Rule(
            f"{off} || !has(self.recipe.schedule) || !{stages}.exists(s, {later})",
            f"spec.{server}.backend=none: a stage of recipe.schedule needs a {server}. {remedy}",
            f".{server}.backend",
        )


def _weights(path: str) -> Iterator[Rule]:
    """Weights by term: names of terms, and a sum of 1."""
    odd = f"size(t) > {LONGEST_TERM} || !t.matches({text(TERM)})"
    yield Rule(
        f"!self.exists(t, {odd})",
        f"{path}.{{self.filter(t, {odd})[0]}}: not a term's name. {TERM_REMEDY}",
    )
    # Naming each weight would cost more than the API server grants to all rules together.
    yield _one("self.map(t, self[t]).sum()", f"{path}: they")


def _rising(path: str, field: str) -> Rule:
    """Stages come by rising step."""
    stages = f"self.{field}"
    steps = f"{stages}.map(s, s.step)"
    once = f"{stages}.all(s, {stages}.exists_one(t, t.step == s.step))"
    return Rule(
        f"!has({stages}) || ({steps}.isSorted() && {once})",
        f"spec.{path}: a stage's step is not above the one before. Order {field} by rising step.",
        f".{field}",
    )


def _mark() -> Rule:
    return Rule(
        "self.scorer.backend != 'vlm-mark' || has(self.scorer.endpoint) || "
        "self.judge.backend == 'openai'",
        "spec.scorer.endpoint: backend=vlm-mark needs a vision-language model. "
        "Name its base URL, or set judge.backend to openai.",
        ".scorer.endpoint",
    )


def _fallback() -> Rule:
    return Rule(
        "self.judge.fallback != 'embedded' || self.scorer.backend == 'embedded'",
        "spec.judge.fallback=embedded: scorer.backend is {self.scorer.backend}, and only the "
        "embedded scorer judges as well. Set scorer.backend to embedded, or fallback to none.",
        ".judge.fallback",
    )


def _model() -> Iterator[Rule]:
    is_folder = "self.id.matches('^[./~]')"
    yield Rule(
        f"{is_folder} || self.id.matches('^[^/]+(/[^/]+)?$')",
        "spec.model.id={self.id}: neither a folder nor owner/name on the hub. "
        "Write ./{self.id} for a folder.",
        ".id",
    )
    yield Rule(
        f"!has(self.revision) || !{is_folder}",
        "spec.model.revision={self.revision}: model.id is a folder. Leave revision out.",
        ".revision",
    )


def _subjects() -> Rule:
    default = json.dumps(list(Prompts.model_fields["subjects"].default))
    return Rule(
        f"!has(self.dataset) || self.subjects == {default}",
        "spec.prompts.dataset={self.dataset.id}: subjects are given too. Leave one of "
        "prompts.subjects and prompts.dataset out.",
        ".dataset",
    )


def _sum(model: type[BaseModel], path: str) -> Rule:
    names = list(part.fields_of(model))
    total = "(" + " + ".join(f"self.{name}" for name in names) + ")"
    shown = ", ".join(f"{name}={{self.{name}}}" for name in names)
    return _one(total, f"spec.{path}: {shown}")


def _one(total: str, shown: str) -> Rule:
    """A sum is 1."""
    return Rule(
        f"{total} - 1.0 <= 0.000001 && 1.0 - {total} <= 0.000001",
        f"{shown} sum to {{{_rounded(total)}}}, not to 1. "
        f"{{{total} < 1.0 ? 'Raise' : 'Lower'}} one or more of them by "
        f"{{{_rounded(f'({total} < 1.0 ? 1.0 - {total} : {total} - 1.0)')}}} in all.",
    )


def _rounded(value: str) -> str:
    """A number of 0 or more with four digits after the point at most."""
    return f"double(int({value} * 10000.0 + 0.5)) / 10000.0"


def _sources() -> Rule:
    default = References.model_fields["pool"].default
    given = [f"(self.pool == {text(default)} ? 0 : 1)"]
    given += [f"(has(self.{name}) ? 1 : 0)" for name in ("dataset", "claim", "configMap")]
    return Rule(
        f"{' + '.join(given)} <= 1",
        "spec.references: more than one source is given. Keep one of pool, dataset, claim and "
        "configMap.",
    )


def _replicas() -> Iterator[Rule]:
    mode = "self.scaling.mode"
    yield Rule(
        f"!has(self.replicas) || {mode} == 'External'",
        f"spec.renderers.replicas={{self.replicas}}: scaling.mode is {{{mode}}}. "
        "Leave replicas out, or set renderers.scaling.mode to External.",
        ".replicas",
    )
    yield Rule(
        f"has(self.replicas) || {mode} != 'External'",
        "spec.renderers.replicas: scaling.mode is External, whose scale needs a number to begin "
        "with. Set replicas to it, such as 0.",
        ".replicas",
    )


def _at_most(path: str, low: str, high: str) -> Rule:
    return Rule(
        f"self.{low} <= self.{high}",
        f"spec.{path}.{low}={{self.{low}}}: above {high}={{self.{high}}}. "
        f"Set {low} to {{self.{high}}} or less, or raise {high}.",
        f".{low}",
    )


def _checkpoint() -> Rule:
    return Rule(
        "has(self.claim) != has(self.id)",
        "spec.scorer.checkpoint: needs exactly one of claim and id. "
        "Name the claim that holds the weights, or the hub model.",
    )


def _judge() -> Iterator[Rule]:
    yield Rule(
        "self.backend != 'openai' || has(self.endpoint) || has(self.deploy)",
        "spec.judge.endpoint: backend=openai needs an endpoint. Name the base URL of an "
        "OpenAI-compatible API, such as http://127.0.0.1:8000/v1.",
        ".endpoint",
    )
    yield Rule(
        "!has(self.endpoint) || !has(self.deploy)",
        "spec.judge.deploy={self.deploy.model}: judge.endpoint is given too. "
        "Keep one of endpoint and deploy.",
        ".deploy",
    )


def _cidrs(component: str) -> Rule:
    sound = "(e == 'all' || (isCIDR(e) && cidr(e) == cidr(e).masked()))"
    entries = f"self.{component}"
    return Rule(
        f"!has({entries}) || {entries}.all(e, {sound})",
        f"spec.egress.{component}={{{entries}.filter(e, !{sound})[0]}}: not a CIDR. "
        "Write 203.0.113.0/24, or all.",
        f".{component}",
    )


def _requests() -> Rule:
    asked, allowed = "self.requests[name]", "self.limits[name]"
    # What is no quantity has a rule of its own, whose words CEL's would stand before.
    sound = f"{_is_quantity(asked)} && {_is_quantity(allowed)}"
    larger = f"{_quantity(asked)}.isGreaterThan({_quantity(allowed)})"
    above = f"name in self.limits && {sound} && {larger}"
    values = "[name, self.requests[name], self.limits[name]]"
    fault = f"'requests.%s=%s: above its limit %s'.format({values})"
    return Rule(
        f"!has(self.requests) || !has(self.limits) || !self.requests.exists(name, {above})",
        f"{{self.requests.map(name, {above}, {fault})[0]}}. Lower the request, or raise the limit.",
        ".requests",
    )


def _is_quantity(value: str) -> str:
    """Whether a value can be read as a quantity."""
    return f"(type({value}) == int || isQuantity({value}))"


def _quantity(value: str) -> str:
    """A quantity out of a text or a whole number."""
    return f"(type({value}) == int ? quantity('0').add(int({value})) : quantity({value}))"
