"""Proof with real processes that no tool runs in a replay, and that no verdict is wrong."""

from __future__ import annotations

import unittest

from tests.lanes.case import beside_others, lane_suite
from tests.lanes.gateway_case import LANE
from tests.lanes.gateway_door import GatewayDoor
from tests.lanes.gateway_fills import GatewayFills
from tests.lanes.gateway_points import GatewayPoints
from tests.lanes.gateway_runs import GatewayRuns
from tests.lanes.trust_faults import Children, FaultsAtEveryStep, FaultsOfTheWorld, LyingHermes
from tests.lanes.trust_fills import FaultsOfFills
from tests.lanes.trust_hosts import GatewayHost
from tests.lanes.trust_real import ReplayFromOutside, TraceReading


def load_tests(loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None) -> unittest.TestSuite:
    faults = (FaultsAtEveryStep, FaultsOfFills, FaultsOfTheWorld, LyingHermes)
    return unittest.TestSuite(
        (
            loader.loadTestsFromTestCase(TraceReading),
            loader.loadTestsFromTestCase(Children),  # waits for every child of this process
            beside_others(loader, *faults),
            lane_suite(loader, ReplayFromOutside),
            lane_suite(loader, GatewayHost, only="0.19.0"),  # its TUI gateway
            lane_suite(loader, GatewayDoor, GatewayRuns, GatewayFills, GatewayPoints, only=LANE),
        )
    )
