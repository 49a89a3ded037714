"""Extensions of ReFrame for the checks and sites: the strict base, the session guard, launchers."""
