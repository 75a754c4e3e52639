"""One thin stage for each arrow of the pipeline: resolve inputs, call mudg_core, commit an artifact."""

import logging

# A worker that ends says how many events Prefect has yet to send, in the terminal of whoever has ended it.
logging.getLogger("EventsWorker").setLevel(logging.ERROR)
