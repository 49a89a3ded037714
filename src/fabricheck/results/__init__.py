"""Results: the documents of measuring programs, the sessions they belong to, and the table made of
both.
"""
