"""What runs around the pipeline: the stack of `mudg up`, and `mudg doctor`."""
