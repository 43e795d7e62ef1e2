"""Mixed precision of the stand-in, which changes nothing."""
from torch.amp import autocast_mode
from torch.amp.autocast_mode import autocast
