"""One plug-in of each kind; nothing is imported here, so that each costs only what it needs itself."""
