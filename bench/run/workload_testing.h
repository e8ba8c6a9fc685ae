// For tests: tiny cases.
#pragma once

#include <string>

#include "bench/plan/case.h"

namespace kvmark {

// A seeded llama of 2 layers, 4/2 heads of 8; quick enough for fp64 checks of every step.
inline Case tiny_case(const std::string& engine, int prompt_len, int gen_len) {
  Case c;
  c.engine = parse_engine(engine);
  c.model.name = "tiny";
  c.model.layers = 2;
  c.model.d_model = 32;
  c.model.heads = 4;
  c.model.kv_heads = 2;
  c.model.head_dim = 8;
  c.model.ffn = 48;
  c.model.vocab = 64;
  c.model.context = 2048;
  c.model.rope.dims = 8;
  c.source.name = "tiny";
  c.prompt_len = prompt_len;
  c.gen_len = gen_len;
  c.max_seq_len = prompt_len + gen_len + 64;
  return c;
}

inline Case tiny_attention_case(const std::string& engine, int depth, int gen_len) {
  Case c = tiny_case(engine, depth, gen_len);
  c.level = Level::attention;
  return c;
}

}  // namespace kvmark
