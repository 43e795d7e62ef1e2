"""Mixed precision of the stand-in, which changes nothing."""


class autocast:
    def __init__(self, device_type, dtype="torch.float16", enabled=True):
        self.device, self.fast_dtype, self._enabled = device_type, dtype, enabled

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
