"""A team's stack on one machine, without Docker: `mudg up`, `mudg down`, and what others need to find it.

Read in this order: `parts` says what is started, `health` how one knows that it works; `start` and `stop` do
it; `processes` sees to it that only our own processes are stopped; `running` is for whoever uses a stack.
"""

from pathlib import Path

FOLDER = Path(".mudg/stack")
