"""The models that Assay trains, in plain PyTorch, under Assay's own parameter names and in its canonical layouts:
matrices (out, in), convolutions (K, R, S, C / groups), images (N, H, W, C).

A model is a function of a Store, which makes each parameter on first use, and of the batch; it returns logits
(rows, classes).
"""

import torch
from torch.nn import functional as F


class Store:
    """Parameters and running statistics by name: drawn in float32 from a seed, then stored in any type."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.weights, self.running = {}, {}

    def normal(self, shape, deviation):
        return torch.randn(shape, generator=self.generator) * deviation

    def __call__(self, name, *shape):
        """Matrices preserve the magnitude of their inputs; vectors (scales near 1, biases near 0) are not constant, so
        that a missing or swapped one is noticed."""
        if name not in self.weights:
            if len(shape) > 1:
                value = self.normal(shape, (shape[0] / torch.Size(shape).numel()) ** 0.5)
            else:
                value = self.normal(shape, 0.1) + (1 if "norm" in name and name.endswith("weight") else 0)
            self.weights[name] = value.requires_grad_()
        assert self.weights[name].shape == shape, name
        return self.weights[name]

    def statistic(self, kind, name, channels):
        return self.running.setdefault(f"{kind}/{name}", torch.full((channels,), float(kind == "running_variance")))

    def copy(self, dtype):
        other = Store(0)
        other.weights = {name: value.detach().to(dtype, copy=True).requires_grad_() for name, value in self.weights.items()}
        other.running = {name: value.to(dtype, copy=True) for name, value in self.running.items()}
        return other


def linear(p, x, name, out, bias):
    return F.linear(x, p(f"{name}.weight", out, x.shape[-1]), p(f"{name}.bias", out) if bias else None)


# --- ResNet ----------------------------------------------------------------------------------------------------------


def conv(p, x, name, out, kernel, stride=1, groups=1):
    w = p(name + ".weight", out, kernel, kernel, x.shape[1] // groups)
    return F.conv2d(x, w.permute(0, 3, 1, 2), stride=stride, padding=kernel // 2, groups=groups)


def batch_norm(p, x, name, training):
    c = x.shape[1]
    return F.batch_norm(x, p.statistic("running_mean", name, c), p.statistic("running_variance", name, c),
                        p(name + ".weight", c), p(name + ".bias", c), training, momentum=0.1, eps=1e-5)


def resnet(p, config, batch, training=True):
    """v1.5: the stride of a bottleneck is in its 3 x 3 convolution."""
    def conv_norm(x, conv_name, norm_name, out, kernel, stride=1, groups=1):
        return batch_norm(p, conv(p, x, conv_name, out, kernel, stride, groups), norm_name, training)

    x = batch["images"].permute(0, 3, 1, 2)  # (N, C, H, W), channels last in memory
    large = config["stem"] == "large"
    x = F.relu(conv_norm(x, "stem.conv", "stem.norm", config["width"], 7 if large else 3, 2 if large else 1))
    if large:
        x = F.max_pool2d(x, 3, 2, 1)
    for stage, depth in enumerate(config["stages"]):
        width = config["width"] << stage
        for block in range(depth):
            scope, stride = f"stage.{stage}.block.{block}", 2 if stage > 0 and block == 0 else 1
            path = [(width, 3, stride, 1), (width, 3, 1, 1)]
            if config["block"] == "bottleneck":
                path = [(width, 1, 1, 1), (width, 3, stride, config.get("groups", 1)), (4 * width, 1, 1, 1)]
            y = x
            for index, shape in enumerate(path, 1):
                y = conv_norm(y if index == 1 else F.relu(y), f"{scope}.conv{index}", f"{scope}.norm{index}", *shape)
            if x.shape != y.shape:
                x = conv_norm(x, f"{scope}.downsample.conv", f"{scope}.downsample.norm", y.shape[1], 1, stride)
            x = F.relu(x + y)
    return linear(p, x.mean((2, 3)), "classifier", config["classes"], True)


# --- Transformer -----------------------------------------------------------------------------------------------------


def norm(p, x, config, name):
    weight, epsilon = p(f"{name}.weight", x.shape[-1]), config.get("norm_epsilon", 1e-5)
    if config["norm"] == "rms":
        return F.rms_norm(x, x.shape[-1:], weight, epsilon)
    return F.layer_norm(x, x.shape[-1:], weight, p(f"{name}.bias", x.shape[-1]) if config["bias"] else None, epsilon)


def frequencies(half, rotary):
    """Radians per position of each pair, scaled as in Llama 3.1 (Meta's apply_scaling) if configured."""
    frequency = rotary.get("base", 10000.0) ** (-torch.arange(half, dtype=torch.float64) / half)
    if "scaling" not in rotary:
        return frequency
    factor, low, high, original = (rotary["scaling"][name] for name in (
        "factor", "low_frequency_factor", "high_frequency_factor", "original_positions"))
    turns = original * frequency / (2 * torch.pi)  # over the original context
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequency * (kept + (1 - kept) / factor)


def rotate(x, rotary):
    """Rotates the pairs (x[i], x[i + D/2]) of x (B, H, T, D) by their position's angle."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequencies(half, rotary))
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


def attention(p, x, config, name, lengths):
    b, t, width = x.shape
    heads = config["heads"]
    kv_heads, d = config.get("kv_heads", heads), config.get("head_dim", width // heads)
    qkv = linear(p, x, f"{name}.qkv", (heads + 2 * kv_heads) * d, config["bias"]).view(b, t, heads + 2 * kv_heads, d)
    q, k, v = qkv.transpose(1, 2).split((heads, kv_heads, kv_heads), dim=1)
    if config["position"] == "rotary":
        q, k = (rotate(a, config.get("rotary", {})) for a in (q, k))
    k, v = (a.repeat_interleave(heads // kv_heads, dim=1) for a in (k, v))
    mask = None if lengths is None else (torch.arange(t) < lengths[:, None])[:, None, None]  # (B, 1, 1, T) keys
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=config["causal"])
    return linear(p, y.transpose(1, 2).reshape(b, t, heads * d), f"{name}.out", width, config["bias"])


def mlp(p, x, config, name):
    hidden, bias = config["mlp_width"], config["bias"]
    if config["mlp"] == "silu_gate":
        gate, up = linear(p, x, f"{name}.gate_up", 2 * hidden, bias).chunk(2, dim=-1)
        return linear(p, F.silu(gate) * up, f"{name}.out", x.shape[-1], bias)
    return linear(p, gelu(linear(p, x, f"{name}.in", hidden, bias), config), f"{name}.out", x.shape[-1], bias)


def gelu(x, config):
    return F.gelu(x, approximate="tanh" if config["mlp"] == "gelu_tanh" else "none")


def transformer(p, config, batch, training=True):
    ids, lengths = batch["ids"], batch.get("lengths")
    width = config["width"]
    table = p("embedding.token.weight", config["vocabulary"], width)
    x = F.embedding(ids, table)
    if config["position"] == "learned":
        x = x + p("embedding.position.weight", config["positions"], width)[: ids.shape[1]]
    if config.get("token_types"):
        x = x + F.embedding(batch["type_ids"], p("embedding.type.weight", config["token_types"], width))
    post = config.get("post_norm", False)
    if post:
        x = norm(p, x, config, "embedding.norm")
    for layer in range(config["layers"]):
        name = f"block.{layer}"
        if post:
            x = norm(p, x + attention(p, x, config, f"{name}.attention", lengths), config, f"{name}.norm1")
            x = norm(p, x + mlp(p, x, config, f"{name}.mlp"), config, f"{name}.norm2")
        else:
            x = x + attention(p, norm(p, x, config, f"{name}.norm1"), config, f"{name}.attention", lengths)
            x = x + mlp(p, norm(p, x, config, f"{name}.norm2"), config, f"{name}.mlp")
    if not post:
        x = norm(p, x, config, "norm")
    if config.get("head_transform"):
        x = norm(p, gelu(linear(p, x, "head.transform", width, config["bias"]), config), config, "head.norm")
    head = table if config["tied"] else p("head.weight", config["vocabulary"], width)
    bias = p("head.bias", config["vocabulary"]) if config.get("head_transform") else None
    return F.linear(x, head, bias).flatten(0, 1)
