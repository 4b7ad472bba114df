"""Proof with real processes that no tool runs in a replay, and that no verdict is wrong."""

from __future__ import annotations

import unittest

from tests.lanes.case import lane_suite
from tests.lanes.trust_faults import Children, FaultsAtEveryStep, FaultsOfTheWorld, LyingHermes
from tests.lanes.trust_hosts import GatewayHost
from tests.lanes.trust_real import ReplayFromOutside, TraceReading


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    suite = unittest.TestSuite()
    for case in (FaultsAtEveryStep, FaultsOfTheWorld, LyingHermes, Children, TraceReading):
        suite.addTests(loader.loadTestsFromTestCase(case))
    suite.addTests(lane_suite(loader, ReplayFromOutside, GatewayHost))
    return suite
