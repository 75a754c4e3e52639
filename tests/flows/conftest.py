"""The servers that flows are tried on."""

from tests.support.places import servers
from tests.support.seaweed import s3_environment, seaweed

__all__ = ["s3_environment", "seaweed", "servers"]
