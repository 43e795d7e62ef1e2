"""The peers' models as users of PyTorch write them: ResNet-50 v1.5 from torchvision, a GPT-2-style and a Llama-style
decoder with fused projections, scaled_dot_product_attention and cross_entropy. Random weights of deviation 0.02."""

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet50


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

    vocabulary = 50257

    def __init__(self, layers=12, width=768, heads=12, positions=1024):
        super().__init__()
        self.tokens = nn.Embedding(self.vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GPT2Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rotate(x, cosine, sine):
    """Pairs (x[i], x[i + D/2]) of x (B, T, H, D) turned by cosine, sine (T, 1, D/2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.RMSNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=1e-6)
        self.gate_up = nn.Linear(width, 2 * mlp, bias=False)
        self.down = nn.Linear(mlp, width, bias=False)

    def forward(self, x, cosine, sine):
        b, t, c = x.shape
        q, k, v = (a.view(b, t, self.heads, -1) for a in self.qkv(self.norm1(x)).split(c, dim=2))
        q, k = rotate(q, cosine, sine).to(v.dtype), rotate(k, cosine, sine).to(v.dtype)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """162 M parameters: RMS norm, rotary positions, gated MLP, a head of its own."""

    vocabulary = 32000

    def __init__(self, layers=12, width=768, heads=12, mlp=3072, seq=512, theta=10000.0):
        super().__init__()
        self.tokens = nn.Embedding(self.vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, mlp) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.head = nn.Linear(width, self.vocabulary, bias=False)
        half = width // heads // 2
        angles = torch.outer(torch.arange(seq), theta ** (-torch.arange(half) / half))[:, None]
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = resnet50()

    def forward(self, images, targets):
        return F.cross_entropy(self.net(images), targets, label_smoothing=0.1)


PARAMETERS = {"resnet50": 25557032, "gpt2-124m": 124439808, "llama-160m": 162417408}


def make(name):
    """The model of that name, its matrices and convolutions drawn with deviation 0.02."""
    model = {"resnet50": ResNet50, "gpt2-124m": GPT2, "llama-160m": Llama}[name]()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == PARAMETERS[name], f"{name}: {count} parameters"
    return model.to(memory_format=torch.channels_last) if name == "resnet50" else model


def batch(name, samples, seq):
    """Random inputs and targets: 224 px images in channels-last, or tokens."""
    if name == "resnet50":
        images = torch.randn(samples, 3, 224, 224).to(memory_format=torch.channels_last)
        return images, torch.randint(1000, (samples,))
    vocabulary = (GPT2 if name == "gpt2-124m" else Llama).vocabulary
    return torch.randint(vocabulary, (samples, seq)), torch.randint(vocabulary, (samples, seq))
