"""The official conformance suite: a fixture to run it against, a runner, and what they need."""
