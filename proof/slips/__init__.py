"""Random slips: changes of an operator, a number or a condition, drawn by a seed."""
