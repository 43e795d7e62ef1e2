"""Settings of the stand-in's device."""


class matmul:
    fp32_precision = "none"
