"""The S3 server on which bucket files are tried."""

from tests.support.seaweed import s3_environment, seaweed

__all__ = ["s3_environment", "seaweed"]
