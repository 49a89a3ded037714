"""References: which of them a partition has, and what each of their numbers rests on."""
