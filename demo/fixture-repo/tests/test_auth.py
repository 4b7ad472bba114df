"""The login service, without binding its port."""

import unittest

from server.auth import SESSIONS, AuthHandler, log_in


class LoginTest(unittest.TestCase):
    def test_the_right_password_opens_a_session(self) -> None:
        self.assertEqual(SESSIONS[log_in("ada", "difference engine")], "ada")

    def test_a_wrong_password_opens_none(self) -> None:
        self.assertIsNone(log_in("ada", "analytical engine"))

    def test_the_handler_takes_posts_only(self) -> None:
        self.assertFalse(hasattr(AuthHandler, "do_GET"))


if __name__ == "__main__":
    unittest.main()
