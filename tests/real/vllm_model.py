#!/usr/bin/env python3
"""vllm_model.py FOLDER: a tiny Llama for `vllm serve --load-format dummy`: its shape, and a tokenizer of plain words, so that
every token of random weights is a piece of text."""
import json
import pathlib
import sys

from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = 250
TEMPLATE = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}assistant "


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(["<unk>", "<end>", *(f"w{n}" for n in range(WORDS))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast", eos_token="<end>", unk_token="<unk>",
          model_max_length=8192, chat_template=TEMPLATE)
    write(folder / "config.json", architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=128,
          intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=32,
          vocab_size=len(vocabulary), max_position_embeddings=8192, rms_norm_eps=1e-5, hidden_act="silu", bos_token_id=None,
          eos_token_id=1, torch_dtype="float32", tie_word_embeddings=True)


def write(path, **fields):
    path.write_text(json.dumps(fields, indent=1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
