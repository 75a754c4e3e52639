"""The whole stack of a team on one machine, as `mudg up` starts it."""
