"""Schedules and triggers of the flows; `prefect.yaml` at the root declares them to Prefect."""
