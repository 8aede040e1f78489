"""What the environment tells Prometheus; base units, few labels."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from watercolour.api.reasons import Reason
from watercolour.api.rollout import Rollout, Vote
from watercolour.render.dispatcher import Dispatcher
from watercolour.reward.judge import Judge
from watercolour.score.breaker import State

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300)
_TENTHS = tuple(tenth / 10 for tenth in range(-10, 11))


class Metrics:
    """The environment's metrics in a registry of their own."""

    def __init__(self) -> None:
        """Register every metric, so that each shows from the first scrape on."""
        registry = self.registry = CollectorRegistry()
        self.render_seconds = Histogram(
            "watercolour_render_seconds",
            "Wall-clock seconds of a render, without its wait.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.queue_seconds = Histogram(
            "watercolour_render_queue_seconds",
            "Seconds that a render waited for a slot.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.score_seconds = Histogram(
            "watercolour_score_seconds",
            "Seconds of a scorer's answer.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.judge_seconds = Histogram(
            "watercolour_judge_seconds",
            "Seconds of all the judge's answers about one painting.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.announced = Gauge(
            "watercolour_rollouts_announced",
            "Rollouts that clients have announced.",
            registry=registry,
        )
        self.sessions = Gauge("watercolour_env_sessions", "Open sessions.", registry=registry)
        self.rollouts = Counter(
            "watercolour_rollouts_total",
            "Evaluated rollouts: admitted, refused by the gate, or unscored.",
            ["outcome"],
            registry=registry,
        )
        self.unscored = Counter(
            "watercolour_unscored_total",
            "Rollouts without a value, by reason.",
            ["reason"],
            registry=registry,
        )
        self.retries = Counter(
            "watercolour_rollout_retries_total",
            "Further attempts after a failure of the infrastructure.",
            registry=registry,
        )
        self.violations = Counter(
            "watercolour_violations_total",
            "Violations of refused sketches.",
            ["code"],
            registry=registry,
        )
        self.shared = Counter(
            "watercolour_renders_shared_total",
            "Rollouts with a painting that had been made, or was being made, for another one.",
            registry=registry,
        )
        self.reward = Histogram(
            "watercolour_reward", "Rewards of scored rollouts.", buckets=_TENTHS, registry=registry
        )
        self.votes = Counter(
            "watercolour_judge_votes_total",
            "References compared: won, tie, lost, or dropped because a call failed.",
            ["outcome"],
            registry=registry,
        )
        self.place_bias = Counter(
            "watercolour_judge_place_ties_total",
            "Ties by the place that the judge preferred in both orders.",
            ["place"],
            registry=registry,
        )

    def show_renders(self, renderers: Dispatcher) -> None:
        """Tell of a dispatcher's jobs from now on."""
        self.registry.register(_Renders(renderers))

    def show_judge(self, judge: Judge) -> None:
        """Tell of a judge's calls from now on."""
        self.registry.register(_Judged(judge))

    def observe(self, rollout: Rollout) -> None:
        """Count one evaluated rollout."""
        if rollout.unscored_reason is Reason.GROUP_PENDING:
            self.rollouts.labels("pending").inc()
        elif rollout.reward is None:
            self.rollouts.labels("unscored").inc()
            self.unscored.labels(rollout.unscored_reason or "InternalError").inc()
        else:
            self.rollouts.labels("admitted" if rollout.gate_passed else "refused").inc()
            self.reward.observe(rollout.reward)
        self.retries.inc(rollout.attempts - 1)
        if rollout.painting is not None and "render" not in rollout.timings:
            self.shared.inc()
        for violation in rollout.violations:
            self.violations.labels(violation.code.value).inc()
        for vote in rollout.votes:
            self._count(vote)
        for name, histogram in (
            ("queue", self.queue_seconds),
            ("render", self.render_seconds),
            ("score", self.score_seconds),
            ("judge", self.judge_seconds),
        ):
            if name in rollout.timings:
                histogram.observe(rollout.timings[name])

    def _count(self, vote: Vote) -> None:
        if vote.value is None:
            self.votes.labels("dropped").inc()
            return
        self.votes.labels({1.0: "won", 0.5: "tie", 0.0: "lost"}[vote.value]).inc()
        if vote.value == 0.5 and vote.first is not None:
            self.place_bias.labels(vote.first).inc()


class _Renders(Collector):
    """A dispatcher's jobs, read in one piece, so that a scrape's numbers add up.

    Jobs = queued + those that hold a slot + ended by outcome; without second copies of slow jobs a
    job holds one slot.
    """

    def __init__(self, renderers: Dispatcher) -> None:
        self._renderers = renderers

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """What Prometheus is told."""
        name, counts = "watercolour_render", self._renderers.counts
        for gauge, words, number in (
            (f"{name}_queue_depth", "Renders that wait for a slot.", self._renderers.queued),
            (f"{name}s_inflight", "Slots that renders hold.", self._renderers.inflight),
            (f"{name}_slots", "Slots of the renderers that are ready.", self._renderers.slots),
        ):
            yield GaugeMetricFamily(gauge, words, number)
        yield CounterMetricFamily(f"{name}_jobs", "Renders that were asked for.", counts.jobs)
        ended = CounterMetricFamily(
            f"{name}_jobs_ended", "Renders by how they ended.", labels=["outcome"]
        )
        for outcome, number in counts.ended.items():
            ended.add_metric([outcome], number)
        attempts = CounterMetricFamily(
            f"{name}_attempts",
            "Renders as sent to a renderer, by what came back.",
            labels=["outcome"],
        )
        for outcome, number in counts.attempts.items():
            attempts.add_metric([outcome], number)
        hedges = CounterMetricFamily(
            f"{name}_hedges",
            "Second copies of slow renders, by whether theirs was the first answer.",
            labels=["outcome"],
        )
        hedges.add_metric(["won"], counts.hedges_won)
        hedges.add_metric(["lost"], counts.hedges_lost)
        yield from (ended, attempts, hedges)


class _Judged(Collector):
    """A judge's calls, what they cost, and whether they go out at all."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """What Prometheus is told."""
        name, asked = "watercolour_judge", self._judge.completions
        counts, budget, breaker = asked.counts, asked.budget, asked.breaker
        for counter, words, number in (
            ("requests", "Requests sent to the judge, repeated ones included.", counts.requests),
            ("requests_refused", "Requests held back by a rate limit.", counts.refused),
            ("calls_failed", "Calls that brought no verdict.", counts.failed),
            ("verdicts_remembered", "Verdicts that needed no request.", counts.remembered),
            ("stood_in", "Paintings that the stand-in judged.", self._judge.stood_in),
            ("breaker_openings", "Times that the judge was found to be away.", breaker.opened),
        ):
            yield CounterMetricFamily(f"{name}_{counter}", words, number)
        for gauge, words, number in (
            ("breaker_open", "1 while calls fail at once.", int(breaker.state is not State.CLOSED)),
            ("budget_calls_spent", "Requests of the whole run so far.", budget.spent_calls),
            ("budget_tokens_spent", "Tokens of the whole run so far.", budget.spent_tokens),
        ):
            yield GaugeMetricFamily(f"{name}_{gauge}", words, number)
        limits = GaugeMetricFamily(
            f"{name}_budget_limit", "What the run may spend, by what.", labels=["what"]
        )
        for what, limit in (("calls", budget.calls), ("tokens", budget.tokens)):
            if limit is not None:
                limits.add_metric([what], limit)
        yield limits
