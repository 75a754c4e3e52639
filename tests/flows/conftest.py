"""The servers that flows are tried on, and an index to try them with."""

from tests.support.built import first
from tests.support.places import local, servers
from tests.support.seaweed import s3_environment, seaweed

__all__ = ["first", "local", "s3_environment", "seaweed", "servers"]
