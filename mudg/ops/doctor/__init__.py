"""`mudg doctor`: checks the installation and suggests fixes. Each check is a function of one thing."""
