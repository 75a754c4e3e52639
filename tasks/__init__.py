"""One thin stage for each arrow of the pipeline: resolve inputs, call mudg_core, commit an artifact."""
