<<<<<<< HEAD
"""The index against its peers: recall, speed and vectors read, in a generated world with a modality gap."""
=======
"""Measurements of the index: its pairs, its training, its search."""
>>>>>>> 886703b (Measure q(p) against the machine's best matrix product)
