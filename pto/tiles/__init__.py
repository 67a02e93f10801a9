"""What a tile occupies: bytes, strides, places in memory, overlap, and the size of scratch tiles.

Geometry only: the rules, the lowering and the interpreter all ask here.
"""
