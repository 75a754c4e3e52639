"""The files in infra/: nothing of them can be started here, so all that can be checked is."""
