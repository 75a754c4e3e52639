"""`mudg doctor`: what is wrong, and how to mend it. Each check is a function that looks at one thing."""
