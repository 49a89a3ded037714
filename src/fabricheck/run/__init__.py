"""Starting of sessions, and checks of a site before them."""
