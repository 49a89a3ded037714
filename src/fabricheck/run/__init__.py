"""Starting sessions, and looking at a site before one."""
