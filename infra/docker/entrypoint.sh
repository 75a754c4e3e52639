#!/bin/sh
# Prefect's Helm charts start every container through /opt/prefect/entrypoint.sh, and ours has nothing to prepare.
exec "$@"
