"""Result documents: what one run of one program measured, and the sessions they belong to."""
