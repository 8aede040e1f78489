"""Before any step: can the judge judge? What came of its self-check, and what the run does then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from watercolour import logs
from watercolour.api.errors import InputError
from watercolour.api.reasons import Reason
from watercolour.api.scoring import Judge
from watercolour.train.files import write_text
from watercolour.train.progress import Progress

log = logs.get(__name__)

FILE = "selfcheck.json"


def require(found: Mapping[str, Any] | None, judge: Judge, out: Path, progress: Progress) -> None:
    """Show and keep what the self-check found; refuse an unfit judge where the run says so.

    A judge that did not answer is not unfit: its rollouts will be unscored until it does.

    Args:
        found: the environment's answer; None when there was none.
        judge: the specification's.
        out: the run's folder.
        progress: is told.

    Raises:
        InputError: the judge is unfit and ``spec.judge.selfCheck`` is Refuse (JudgeUnfit).
    """
    if found is None:
        log.warning("the environment did not answer whether the judge is fit")
        return
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / FILE, json.dumps(dict(found), indent=2) + "\n")
    progress.enter("selfcheck", selfcheck=dict(found))
    if found["passed"] is not False:
        log.info("the judge's self-check: %s", found["message"])
        return
    if judge.self_check == "Warn":
        log.warning("%s: %s", Reason.JUDGE_UNFIT, found["message"])
        return
    raise InputError(
        Reason.JUDGE_UNFIT,
        f"spec.judge.model={judge.model}: {found['message']}.",
        remedy="Take a stronger model, sharper spec.judge.criteria or another pool; or train all "
        "the same with spec.judge.selfCheck: Warn.",
        field="spec.judge.model",
        value=judge.model,
    )
