from __future__ import annotations

import collections
import hashlib
import random

import pytest

from watercolour.api.reasons import ViolationCode
from watercolour.api.spec import Gate
from watercolour.sketch import dialect, faults, gate, grammar, plan
from watercolour.sketch.palettes import SUBJECTS

CORPUS = grammar.corpus(800, 1)


def codes(sketch: str) -> set[ViolationCode]:
    return {violation.code for violation in gate.check(sketch, Gate())}


def test_the_same_seed_gives_the_same_corpus() -> None:
    assert grammar.corpus(60, 5) == grammar.corpus(60, 5)
    assert grammar.corpus(60, 5) != grammar.corpus(60, 6)


def test_a_longer_corpus_begins_with_the_shorter_one() -> None:
    assert grammar.corpus(40, 1) == CORPUS[:40]


def test_subjects_alternate() -> None:
    assert [sample.subject for sample in CORPUS[:4]] == list(SUBJECTS)
    counts = collections.Counter(sample.subject for sample in CORPUS)
    assert set(counts.values()) == {len(CORPUS) // len(SUBJECTS)}


def test_intents_come_in_their_shares() -> None:
    counts = collections.Counter(sample.intent for sample in CORPUS)
    for intent, share in grammar.INTENTS.items():
        assert counts[intent] / len(CORPUS) == pytest.approx(share, abs=0.05)


def test_the_static_gate_refuses_about_three_in_ten_and_only_broken_sketches() -> None:
    refused = [sample for sample in CORPUS if codes(sample.sketch)]
    assert {sample.intent for sample in refused} == {"broken"}
    assert 0.25 <= len(refused) / len(CORPUS) <= 0.35


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("primitive", ViolationCode.BARE_PRIMITIVES),
        ("invented", ViolationCode.UNKNOWN_BRUSH_METHOD),
        ("text", ViolationCode.TEXT_LABEL),
        ("network", ViolationCode.EXTERNAL_ACCESS),
        ("flat_canvas", ViolationCode.NOT_WEBGL),
    ],
)
def test_a_fault_gets_its_own_violation(fault: str, code: ViolationCode) -> None:
    rng = random.Random(3)
    for subject in SUBJECTS:
        whole = grammar.sample(subject, rng, "good").sketch
        assert not codes(whole)
        broken = faults.FAULTS[fault][1](whole, rng)
        assert code in codes(broken)


@pytest.mark.parametrize("fault", ["open_brace", "cut", "misnamed"])
def test_unfinished_and_misnamed_sketches_are_refused(fault: str) -> None:
    rng = random.Random(4)
    whole = grammar.sample("a red poppy", rng, "plain").sketch
    assert codes(faults.FAULTS[fault][1](whole, rng))


def test_broken_sketches_name_their_fault_and_whole_ones_none() -> None:
    for sample in CORPUS:
        if sample.intent == "broken":
            assert sample.flaw in faults.FAULTS
        else:
            assert bool(sample.flaw) == (sample.intent == "ugly")


def test_every_composition_petal_and_fault_appears() -> None:
    compositions = {name for weights in plan.COMPOSITIONS.values() for name in weights}
    assert compositions | {"daub"} == {sample.composition for sample in CORPUS}
    text = "".join(sample.sketch for sample in CORPUS)
    assert all(f"[{outline}]" in text for outline in dialect.PETALS.values())
    assert {s.flaw for s in CORPUS if s.intent == "broken"} == set(faults.FAULTS)


def test_sketches_are_short_and_hardly_ever_repeat() -> None:
    lengths = [len(sample.sketch) for sample in CORPUS]
    assert 1_000 <= sum(lengths) / len(lengths) <= 1_400
    assert max(lengths) <= 2_000
    assert len({sample.sketch for sample in CORPUS}) >= 0.98 * len(CORPUS)


def test_good_sketches_keep_to_their_subjects_pigments() -> None:
    for sample in CORPUS:
        if sample.intent == "good":
            palette = SUBJECTS[sample.subject]
            petals = set(palette.pale + palette.body)
            assert any(f'pigment("{color}"' in sample.sketch for color in petals)


def test_the_text_is_the_one_that_the_shipped_policy_learned() -> None:
    # A change here means that builtin:tiny must be trained again.
    text = "".join(sample.sketch for sample in CORPUS)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "58748dd3227431fa"
