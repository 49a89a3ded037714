"""The acceptance record: what was agreed, what each node reached, what was let through."""
