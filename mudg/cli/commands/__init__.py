"""The commands as people type them: each reads its flags, runs a flow or asks the store, shows the result."""
