"""The first hour on a node that nobody has measured: ten commands, and one archive of it all."""
