"""Nodes of each of AMD's models, drafted from what their driver tells, with faults."""
