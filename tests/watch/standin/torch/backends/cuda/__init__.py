"""Settings of the stand-in's device."""


class matmul:
    allow_tf32 = False
