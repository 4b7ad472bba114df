"""Session Cassettes: record one good session, replay it as a regression test."""
