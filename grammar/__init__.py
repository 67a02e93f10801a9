"""The language: its grammar, and the parser that reads it.

`pto.lark` defines files and statements, `types.lark` what stands inside a type or attribute.
`tables` has Lark compile them, `lalr` is the lexer and the parser that their tables drive.
"""
