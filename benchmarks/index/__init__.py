"""The index against its peers: recall, speed and vectors read, in a generated world with a modality gap."""
