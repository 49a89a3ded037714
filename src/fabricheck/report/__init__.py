"""The page of a session: is it reproduced, and where is this node slow?"""
