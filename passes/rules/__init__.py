"""The rules that conversions are verified against (spec V).

Each rule is a generator of findings; a finding names the part of the statement that it is about,
and `locate` turns that into a line and a column.
"""
