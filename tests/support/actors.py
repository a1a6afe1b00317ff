"""The actor of changes in tests that do not ask who made them."""

from skillhall._internal.policy.access.actor import Actor, Via

ACTOR = Actor("dev1", via=Via.REST)
