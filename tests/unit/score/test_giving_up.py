"""A scorer that cannot load ends, so that its parent learns of it at once."""

from __future__ import annotations

import argparse

import pytest

from watercolour import service
from watercolour.api.errors import InfrastructureError
from watercolour.api.reasons import Reason
from watercolour.score.app import create_app
from watercolour.score.backend import Report
from watercolour.score.embedded import Embedded


def test_weights_that_do_not_load_end_the_server_with_their_reason() -> None:
    def load(_: Report) -> Embedded:
        raise InfrastructureError(Reason.SCORER_UNAVAILABLE, "the weights are broken.")

    parser = argparse.ArgumentParser()
    service.add_arguments(parser)
    with pytest.raises(InfrastructureError, match="weights are broken") as caught:
        service.serve(create_app(load), parser.parse_args([]))
    assert caught.value.reason is Reason.SCORER_UNAVAILABLE
