"""The peers' models, written as usual in PyTorch: ResNet-50 v1.5 with torchvision's structure and names (but without that
package, which may be missing), a GPT-2-style and a Llama-style decoder with fused projections,
scaled_dot_product_attention and cross_entropy. Random weights of deviation 0.02. Also their optimizers."""

import torch
from torch import nn
from torch.nn import functional as F


class GPT2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (a.view(b, t, self.heads, -1).transpose(1, 2) for a in self.qkv(self.norm1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """GPT-2 of 124 M parameters: learned positions, biases, head tied to the embedding."""

    def __init__(self, layers=12, width=768, heads=12, positions=1024, vocabulary=50257):
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GPT2Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def rotate(x, cosine, sine):
    """Pairs (x[i], x[i + D/2]) of x (B, T, H, D) turned by cosine, sine (T, 1, D/2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, mlp, epsilon):
        super().__init__()
        self.head_dim, self.grouped = width // heads, kv_heads != heads
        self.parts = [width, kv_heads * self.head_dim, kv_heads * self.head_dim]
        self.norm1 = nn.RMSNorm(width, eps=epsilon)
        self.qkv = nn.Linear(width, sum(self.parts), bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=epsilon)
        self.gate_up = nn.Linear(width, 2 * mlp, bias=False)
        self.down = nn.Linear(mlp, width, bias=False)

    def forward(self, x, cosine, sine):
        b, t, c = x.shape
        q, k, v = (a.view(b, t, -1, self.head_dim) for a in self.qkv(self.norm1(x)).split(self.parts, dim=2))
        q, k = rotate(q, cosine, sine).to(v.dtype), rotate(k, cosine, sine).to(v.dtype)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=self.grouped)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """RMS norm, rotary positions, gated MLP; by default 162 M parameters with a separate head."""

    def __init__(self, layers=12, width=768, heads=12, kv_heads=12, mlp=3072, seq=512, theta=10000.0, vocabulary=32000,
                 tied=False, epsilon=1e-6):
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads, mlp, epsilon) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=epsilon)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        half = width // heads // 2
        angles = torch.outer(torch.arange(seq), theta ** (-torch.arange(half) / half))[:, None]
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)  # v1.5: the 3 x 3 convolution strides
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + shortcut)


class ResNet50(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(blocks):
            width, layers = 64 << stage, []
            for block in range(count):
                layers.append(Bottleneck(channels, width, 2 if stage > 0 and block == 0 else 1))
                channels = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def logits(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, images, targets):
        return F.cross_entropy(self.logits(images), targets, label_smoothing=0.1)


MODELS = {
    "resnet50": (ResNet50, {}),
    "gpt2-124m": (GPT2, {}),
    "llama-160m": (Llama, {}),
    # Without the scaling of its rotary frequencies, which only changes numbers in a table.
    "llama-1b": (Llama, {"layers": 16, "width": 2048, "heads": 32, "kv_heads": 8, "mlp": 8192, "theta": 500000.0,
                         "vocabulary": 128256, "tied": True, "epsilon": 1e-5}),
}
PARAMETERS = {"resnet50": 25557032, "gpt2-124m": 124439808, "llama-160m": 162417408, "llama-1b": 1235814400}


def make(name, device="cpu", **changes):
    """The model of that name with random matrices and convolutions of deviation 0.02; `changes` replace sizes."""
    kind, sizes = MODELS[name]
    with torch.device(device):
        model = kind(**(sizes | changes))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    count = sum(parameter.numel() for parameter in model.parameters())
    resized = set(changes) - {"seq"}
    assert resized or count == PARAMETERS[name], f"{name}: {count} parameters"
    return model.to(memory_format=torch.channels_last) if kind is ResNet50 else model


def optimizer(model, rate, weights=None):
    """The optimizer of configs/recipes, and where it clips the gradient norm. `weights` replace the model's own."""
    weights = weights or list(model.parameters())
    if isinstance(model, ResNet50):
        return torch.optim.SGD(weights, lr=rate, momentum=0.9, weight_decay=5e-5, fused=True), None
    groups = [{"params": [w for w in weights if w.dim() > 1], "weight_decay": 0.1},
              {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), fused=True), 1.0


def batch(model, samples, seq, device="cpu", size=224):
    """Random inputs and targets: images of `size` px in channels-last, or tokens."""
    if isinstance(model, ResNet50):
        images = torch.randn(samples, 3, size, size, device=device).to(memory_format=torch.channels_last)
        return images, torch.randint(model.fc.out_features, (samples,), device=device)
    return tuple(torch.randint(model.vocabulary, (samples, seq), device=device) for _ in range(2))
