"""Runs the cases, and compares what was measured with what they promise."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
import results
from case import Case
from conftest import RESULTS, slack_s
from trial import Measured


def test_case(case: Case, runs: dict[str, list[Future[Measured]]], request: pytest.FixtureRequest) -> None:
    measured = [future.result() for future in runs[case.name]]
    for one in measured:
        results.check(case, one, slack_s(request.config))
    request.config.stash[RESULTS][case.name] = measured
