"""What `doctor` finds without asking another process."""

from __future__ import annotations

import sys
import unittest
from types import ModuleType
from typing import Any
from unittest import mock

from tests.support import FakeHost, be_hermes, load_plugin
from tests.test_cli import CliCase

plugin_package = load_plugin()


class Reviews(CliCase):
    def told(self, config: Any, version: str) -> str:
        be_hermes(self, self.home, version)
        self.host = FakeHost()
        plugin_package.register(self.host.ctx)
        module = ModuleType("hermes_cli.config")
        setattr(module, "load_config", lambda: config)
        with mock.patch.dict(sys.modules, {"hermes_cli.config": module}):
            out = self.run_command("doctor")[1]
        [line] = [line for line in out.splitlines() if line.startswith("reviews    ")]
        return line.partition("    ")[2]

    def test_doctor_says_after_how_many_steps_hermes_looks_back_on_a_turn(self) -> None:
        for config, steps in (
            ({}, 10),
            ({"skills": {"creation_nudge_interval": 4}}, 4),
            ({"skills": {"creation_nudge_interval": "15"}}, 15),
            ({"skills": {"creation_nudge_interval": "often"}}, 10),
            ({"skills": [], "auxiliary": 7}, 10),
        ):
            with self.subTest(config=config):
                self.assertTrue(self.told(config, "0.19.0").startswith(f"after a turn of {steps} steps"))

    def test_it_says_that_this_is_switched_off(self) -> None:
        disabled = {"auxiliary": {"background_review": {"enabled": False}}}
        never = {"skills": {"creation_nudge_interval": 0}}
        for config, version, off in (
            (never, "0.19.0", True),
            (never, "0.22.2", True),
            (disabled, "0.22.2", True),
            (disabled, "0.19.0", False),  # which has no such switch
        ):
            with self.subTest(config=config, version=version):
                self.assertEqual(self.told(config, version) == "Hermes looks back on no turn by itself", off)


if __name__ == "__main__":
    unittest.main()
