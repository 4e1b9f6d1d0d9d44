"""Train a masked language model from random weights: ``python -m bench.evidence.pretrain --output FOLDER``.

The model is BERT with 6 layers of width 384, trained for a number of seconds on one GPU. It sees no labelled pair and
no contrastive step, so all gains of an encoder made from it come from the contrastive training. A row has 64 tokens of
consecutive sentences without padding; sentences are shuffled again in every epoch, and masked again in every step.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.evidence.bases import PRETRAINING, digest
from bench.evidence.token_ids import read_ids, with_special
from train.record.folder import partial_folder
from una_fast.command import run_command
from una_fast.errors import InputError

PARTS = 3  # number of files for the weights in half precision
COMPILE_SECONDS = 75  # if torch.compile takes longer, the steps run without it
EVERY = 20  # steps between two synchronisations with the GPU
IGNORED_ENTRIES = 999  # first entries of BERT's vocabulary, which no sentence contains; no random token is one of them
HELD_OUT = 8192  # last sentences, on which the loss is measured after the last step


@dataclass(frozen=True)
class Plan:
    """The settings of a pretraining."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    rows: int = 1024
    length: int = 64
    masked: int = 10  # masked positions per row: 15.6% of 64
    rate: float = 1e-3
    warmup: float = 0.06  # share of the time in which the rate rises; it then falls to 0
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    norm: float = 1.0  # gradients are clipped to this norm
    seed: int = 42


SMALL = Plan(layers=2, width=64, heads=2, rows=32)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evidence.pretrain", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--ids", type=Path, help="sentences, written by bench.evidence.token_ids")
    add("--tokenizer", type=Path, required=True, help="folder of BERT's tokenizer")
    add("--seconds", type=float, default=220, help="total time [220]")
    add("--output", type=Path, required=True, help="folder of the language model")
    add("--small", action="store_true", help="2 layers of 64, to try the command on a CPU")
    add("--join", type=Path, metavar="FOLDER", help="train nothing: join the parts that --parts wrote")
    add("--parts", type=Path, metavar="FOLDER", help="also write the weights here, in three files of half precision")
    options = parser.parse_args()
    return run_command(lambda: pretrain_or_join(options), "train")


def pretrain_or_join(options: argparse.Namespace) -> None:
    """Train a language model, or join its parts."""
    began = time.monotonic()
    if options.output.exists():
        raise InputError(f"--output {options.output}: exists already: choose a new folder")
    if options.join:
        return join(options.join, options.tokenizer, options.output)
    if not options.ids:
        raise InputError("--ids FILE is missing: bench.evidence.token_ids writes it")
    model, log = pretrain(options.ids, options.tokenizer, SMALL if options.small else Plan(), began + options.seconds)
    save(model, options.tokenizer, options.output, log)
    if options.parts:
        split(options.output, options.parts)
    print(f"{log['steps']} steps, {log['tokens']:,} tokens, held-out loss {log['held_out_loss']:.3f}", flush=True)


def pretrain(ids: Path, tokenizer: Path, plan: Plan, ends: float) -> tuple[Any, dict[str, Any]]:
    """Train a new BertForMaskedLM until time.monotonic() is `ends`. Return the model and a log of the training.

    ids: file of `bench.evidence.token_ids`; tokenizer: folder of BERT's tokenizer.
    """
    import transformers

    began, device = time.monotonic(), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(plan.seed)
    special = transformers.AutoTokenizer.from_pretrained(tokenizer)
    model = new_model(len(special), plan).to(device)
    lengths, all_ids = read_ids(ids)
    held = min(HELD_OUT, len(lengths) // 10)
    cut = len(all_ids) - int(lengths[-held:].sum(dtype=np.int64))
    marks = special.cls_token_id, special.sep_token_id
    words = Sentences(lengths[:-held], all_ids[:cut], marks, plan, device)
    held_out = Sentences(lengths[-held:], all_ids[cut:], marks, plan, device)
    masks = Masks(special.mask_token_id, marks, len(special), plan.masked)
    weights = {name.removeprefix("bert."): value for name, value in model.named_parameters()}
    optimizer = torch.optim.AdamW(
        weights.values(), plan.rate, plan.betas, eps=1e-6, weight_decay=plan.weight_decay, fused=True
    )
    batches = words.batches(plan.rows)
    loss_of, compile_seconds = compiled(weights, masks.of(next(batches)), plan.heads, device)
    if (start := time.monotonic()) >= ends:
        raise InputError(f"--seconds: too few, because {start - began:.0f} s passed before the first step: give more")
    losses: list[Tensor] = []
    means: list[float] = []
    for rows in batches:
        if (share := (time.monotonic() - start) / (ends - start)) >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * min(share / plan.warmup, (1 - share) / (1 - plan.warmup))
        loss = loss_of(weights, *masks.of(rows))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), plan.norm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if len(losses) % EVERY == 0:
            means.append(round(float(torch.stack(losses[-EVERY:]).mean()), 4))  # waits for the GPU
            if len(losses) % (25 * EVERY) == 0:
                print(f"step {len(losses)}, {share:.0%} of the time: loss {means[-1]:.3f}", flush=True)
    seconds = time.monotonic() - start
    rounded_to_half(model)
    with torch.no_grad():
        found = [eager_loss(weights, *masks.of(rows), plan.heads) for rows in held_out.epoch().split(256)]
    log = {"plan": asdict(plan), "steps": len(losses), "tokens": len(losses) * plan.rows * plan.length}
    log |= {"seconds": round(seconds, 1), "seconds_before": round(start - began, 1), "sentences": len(lengths) - held}
    log |= {"compile_seconds": compile_seconds, "held_out_loss": round(float(torch.stack(found).mean()), 4)}
    return model, log | {"steps_of_a_mean": EVERY, "losses": means}


def new_model(entries: int, plan: Plan) -> Any:
    """Return BertForMaskedLM with random weights and 128 positions. entries: the size of the vocabulary."""
    import transformers

    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=entries,
            hidden_size=plan.width,
            num_hidden_layers=plan.layers,
            num_attention_heads=plan.heads,
            intermediate_size=4 * plan.width,
            max_position_embeddings=128,
        )
    )


class Sentences:
    """Stores sentences on a device, and packs them into rows without padding."""

    def __init__(self, lengths: Any, ids: Any, marks: tuple[int, int], plan: Plan, device: torch.device) -> None:
        """lengths, ids: as `read_ids` returns them; marks: the ids of [CLS] and [SEP]."""
        self._stream = torch.from_numpy(with_special(lengths, ids, *marks)).to(device)
        self._lengths = torch.from_numpy(lengths).to(device).long() + 2
        self._starts = self._lengths.cumsum(0) - self._lengths
        self._length = plan.length

    def epoch(self) -> Tensor:
        """Shuffle the sentences, and return them packed into rows, int64 (n_rows, plan.length).

        Each row begins with the start of a sentence. The last sentence of a row is truncated.
        """
        order = torch.randperm(len(self._lengths), device=self._stream.device)
        lengths = self._lengths[order]
        starts = lengths.cumsum(0) - lengths
        moved = torch.repeat_interleave(self._starts[order] - starts, lengths)
        places = torch.arange(len(moved), device=moved.device)
        stream = self._stream[places + moved]
        last = len(stream) - self._length
        marks = places[: last + 1 : self._length].contiguous()
        first = starts[torch.searchsorted(starts, marks).clamp(max=len(starts) - 1)]
        first = first[first <= last]
        return stream[first[:, None] + places[: self._length]].long()

    def batches(self, rows: int) -> Iterator[Tensor]:
        """Yield batches of rows, int64 (rows, plan.length), without end."""
        while True:
            full = [part for part in self.epoch().split(rows) if len(part) == rows]
            if not full:
                raise InputError(f"--ids: has fewer than {rows} rows of {self._length} tokens: give more sentences")
            yield from full


@dataclass(frozen=True)
class Masks:
    """BERT's masking, of a fixed number of positions per row, so that all steps have the same shapes."""

    mask: int  # the id of [MASK]
    marks: tuple[int, int]  # the ids of [CLS] and [SEP], which are never masked
    entries: int  # the size of the vocabulary
    number: int  # masked positions per row

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mask rows of token ids, int64 (n_rows, n_tokens). Return (masked ids, positions, tokens), all int64.

        positions: (n_rows * number,), the masked positions as indices into the flattened ids.
        tokens: (n_rows * number,), the tokens to predict at these positions.
        """
        chances = torch.rand(rows.shape, device=rows.device)
        for mark in self.marks:
            chances.masked_fill_(rows == mark, -1)
        places = chances.topk(self.number).indices  # (n_rows, number)
        tokens = rows.gather(1, places)
        kind = torch.rand(places.shape, device=rows.device)
        other = torch.randint(IGNORED_ENTRIES, self.entries, places.shape, device=rows.device)
        put = torch.where(kind < 0.8, self.mask, torch.where(kind < 0.9, other, tokens))
        flat = places + torch.arange(len(rows), device=rows.device)[:, None] * rows.shape[1]
        return rows.scatter(1, places, put), flat.flatten(), tokens.flatten()


Weights = Mapping[str, Tensor]


def states_of(weights: Weights, ids: Tensor, heads: int) -> Tensor:
    """Return BERT's last hidden states, bf16 (n_rows, n_tokens, width), without dropout.

    No attention mask is needed, because no row has padding. heads: attention heads per layer.
    """
    half = {name: value.bfloat16() for name, value in weights.items() if "word_embeddings" not in name}

    def linear(x: Tensor, name: str) -> Tensor:
        return functional.linear(x, half[f"{name}.weight"], half[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], half[f"{name}.weight"], half[f"{name}.bias"], 1e-12)

    table = weights["embeddings.word_embeddings.weight"]
    x = functional.embedding(ids, table).bfloat16()  # a float32 table, so that gradients are summed in float32
    x = x + half["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = norm(x + half["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in [
        name.removesuffix(".output.dense.bias")
        for name in weights
        if name.endswith(".output.dense.bias") and "attention" not in name
    ]:
        q, k, v = [
            linear(x, f"{layer}.attention.self.{part}").unflatten(2, (heads, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = norm(x + linear(mixed, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
        inner = functional.gelu(linear(x, f"{layer}.intermediate.dense"))
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x


def eager_loss(weights: Weights, ids: Tensor, places: Tensor, tokens: Tensor, heads: int) -> Tensor:
    """Return the mean cross-entropy at the masked positions. The output matrix of BERT's head is the word embeddings.

    ids, places, tokens: the masked ids, positions and tokens from `Masks.of`.
    """
    x = states_of(weights, ids, heads).flatten(0, 1)[places]  # (n_masked, width)
    at = "cls.predictions"
    half = {name: value.bfloat16() for name, value in weights.items() if name.startswith(at)}
    x = functional.gelu(functional.linear(x, half[f"{at}.transform.dense.weight"], half[f"{at}.transform.dense.bias"]))
    scale, shift = half[f"{at}.transform.LayerNorm.weight"], half[f"{at}.transform.LayerNorm.bias"]
    x = functional.layer_norm(x, x.shape[-1:], scale, shift, 1e-12)
    table = weights["embeddings.word_embeddings.weight"].bfloat16()
    return functional.cross_entropy(functional.linear(x, table, half[f"{at}.bias"]).float(), tokens)


def compiled(
    weights: Weights, batch: tuple[Tensor, Tensor, Tensor], heads: int, device: torch.device
) -> tuple[Callable[..., Tensor], float | None]:
    """Compile `eager_loss` with torch.compile. Return the compiled function and the seconds that compiling took.

    On a CPU, or if compiling fails or takes more than COMPILE_SECONDS, return the eager function and None.
    """

    def loss_of(weights: Weights, ids: Tensor, places: Tensor, tokens: Tensor) -> Tensor:
        return eager_loss(weights, ids, places, tokens, heads)

    def too_long(*_: object) -> None:
        raise TimeoutError(f"compiling took over {COMPILE_SECONDS} s")

    if device.type == "cpu":
        return loss_of, None
    began, before = time.monotonic(), signal.signal(signal.SIGALRM, too_long)
    signal.alarm(COMPILE_SECONDS)
    try:
        fast = torch.compile(loss_of, dynamic=False)
        fast(weights, *batch).backward()
        torch.cuda.synchronize()
        return fast, round(time.monotonic() - began, 1)
    except Exception as error:  # a compiler may raise anything, and the steps can run without it
        print(f"without torch.compile: {type(error).__name__}: {error}"[:500], file=sys.stderr, flush=True)
        torch._dynamo.reset()
        return loss_of, None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        for weight in weights.values():
            weight.grad = None


def rounded_to_half(model: Any) -> None:
    """Round all weights to float16, so that files of half the size store them exactly."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half())


def save(model: Any, tokenizer: Path, output: Path, log: Mapping[str, Any]) -> None:
    """Write the encoder without its head, the tokenizer and the log to `output`, which `train.ddp` can load.

    Raises:
        InputError: the log contains a digest, and the weights have another one.
    """
    with partial_folder(output) as partial:
        model.cpu().bert.save_pretrained(partial)
        for file in sorted(tokenizer.iterdir()):
            if file.name.startswith(("tokenizer", "vocab", "special_tokens")):
                shutil.copy(file, partial)
        content = {**log, "digest": digest(partial)}
        if content != {**content, **log}:
            raise InputError(f"the weights have the digest {content['digest'][:16]}, not {log['digest'][:16]}")
        (partial / PRETRAINING).write_text(json.dumps(content) + "\n", encoding="utf-8")
        partial.rename(output)


def split(folder: Path, parts: Path) -> None:
    """Copy a saved language model to the folder `parts`, with its weights as PARTS files of float16.

    float16 stores the weights exactly, because `rounded_to_half` has rounded them.
    """
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    flat = torch.cat([weights[name].half().flatten() for name in sorted(weights)]).numpy()
    parts.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(flat, PARTS), start=1):
        (parts / f"weights-{number}.bin").write_bytes(part.tobytes())
    for name in (PRETRAINING, "config.json"):
        shutil.copy(folder / name, parts)


def join(parts: Path, tokenizer: Path, output: Path) -> None:
    """Make the folder of a language model from the files of `split`.

    Raises:
        InputError: the weights differ from those that were split.
    """
    import transformers

    try:
        log = json.loads((parts / PRETRAINING).read_text(encoding="utf-8"))
        files = [(parts / f"weights-{number + 1}.bin").read_bytes() for number in range(PARTS)]
        config = transformers.BertConfig.from_pretrained(parts)
    except (OSError, ValueError) as error:
        raise InputError(f"--join {parts}: {error}") from error
    model = transformers.BertForMaskedLM(config)
    weights = model.bert.state_dict()
    flat = torch.from_numpy(np.frombuffer(b"".join(files), np.float16).copy())
    shapes = {name: weights[name].shape for name in sorted(weights)}
    if len(flat) != sum(shape.numel() for shape in shapes.values()):
        raise InputError(f"--join {parts}: its files have {len(flat):,} weights, which do not fit its config.json")
    found = flat.float().split([shape.numel() for shape in shapes.values()])
    model.bert.load_state_dict(
        {name: part.view(shape) for (name, shape), part in zip(shapes.items(), found, strict=True)}
    )
    save(model, tokenizer, output, log)


if __name__ == "__main__":
    sys.exit(main())
