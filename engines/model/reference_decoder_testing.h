// A second decoder for tests, in double throughout, one position after the other, with its own
// rotation, attention and products: it shares no code with the engines, the backend or the decoder.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "engines/model/weights.h"

namespace kvmark {

// Weights must be f32 and readable by the host.
class ReferenceDecoder {
 public:
  ReferenceDecoder(const ModelConfig& config, const Weights& weights) : c_(config), w_(weights) {}

  // Logits after each token: (tokens, vocab).
  std::vector<double> logits(std::span<const int32_t> tokens) const {
    std::vector<Keys> caches(c_.layers);
    std::vector<double> all;
    for (size_t position = 0; position < tokens.size(); ++position) {
      Row x = row_of(w_.embedding, tokens[position]);
      if (gpt2()) x = plus(x, row_of(w_.positions, static_cast<int>(position)));
      for (int i = 0; i < c_.layers; ++i) x = layer(w_.layers[i], caches[i], x, position);
      const Row last = times(w_.lm_head, {}, normed(x, w_.final_norm, w_.final_norm_bias));
      all.insert(all.end(), last.begin(), last.end());
    }
    return all;
  }

 private:
  using Row = std::vector<double>;
  struct Keys {
    std::vector<Row> k, v;  // [position], rotated
  };

  bool gpt2() const { return c_.family == Family::gpt2; }

  static Row row_of(const Weight& w, int r) {
    const float* from = static_cast<const float*>(w.data) + int64_t{r} * w.cols;
    return Row(from, from + w.cols);
  }
  static Row plus(Row a, const Row& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }
  static Row times(const Weight& w, const Weight& bias, const Row& x) {
    Row y(w.rows, 0.0);
    for (int o = 0; o < w.rows; ++o) {
      const float* row = static_cast<const float*>(w.data) + int64_t{o} * w.cols;
      for (int i = 0; i < w.cols; ++i) y[o] += row[i] * x[i];
    }
    return bias.empty() ? y : plus(y, row_of(bias, 0));
  }

  Row normed(Row x, const Weight& gain, const Weight& bias) const {
    const double n = static_cast<double>(x.size());
    if (gpt2()) {
      double mean = 0;
      for (double v : x) mean += v / n;
      for (double& v : x) v -= mean;
    }
    double square = 0;
    for (double v : x) square += v * v / n;
    const Row g = row_of(gain, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= g[i] / std::sqrt(square + c_.norm_eps);
    return gpt2() ? plus(x, row_of(bias, 0)) : x;
  }

  void rotate(Row& row, size_t position) const {
    if (gpt2()) return;
    const int pairs = c_.rope.dims / 2;
    for (size_t start = 0; start < row.size(); start += c_.head_dim) {
      for (int p = 0; p < pairs; ++p) {
        const double angle = position / std::pow(c_.rope.theta, double(p) / pairs);
        double* a = &row[start + (c_.rope.pairing == RopePairing::halves ? p : 2 * p)];
        double* b = c_.rope.pairing == RopePairing::halves ? a + pairs : a + 1;
        const double real = *a * std::cos(angle) - *b * std::sin(angle);
        *b = *a * std::sin(angle) + *b * std::cos(angle);
        *a = real;
      }
    }
  }

  Row attention(const Keys& cache, const Row& q) const {
    Row out(q.size(), 0.0);
    const int dim = c_.head_dim;
    for (int head = 0; head < c_.heads; ++head) {
      const int from = head / (c_.heads / c_.kv_heads) * dim;
      double most = -HUGE_VAL, total = 0;
      Row score(cache.k.size(), 0.0);
      for (size_t j = 0; j < score.size(); ++j) {
        for (int d = 0; d < dim; ++d) score[j] += q[head * dim + d] * cache.k[j][from + d];
        most = std::max(most, score[j] /= std::sqrt(dim));
      }
      for (double& s : score) total += s = std::exp(s - most);
      for (size_t j = 0; j < score.size(); ++j) {
        for (int d = 0; d < dim; ++d)
          out[head * dim + d] += score[j] / total * cache.v[j][from + d];
      }
    }
    return out;
  }

  Row layer(const LayerWeights& w, Keys& cache, const Row& x, size_t position) const {
    const Row h = normed(x, w.attn_norm, w.attn_norm_bias);
    Row q = times(w.wq, w.bq, h), k = times(w.wk, w.bk, h);
    rotate(q, position);
    rotate(k, position);
    cache.k.push_back(k);
    cache.v.push_back(times(w.wv, w.bv, h));
    const Row middle = plus(x, times(w.wo, w.bo, attention(cache, q)));

    const Row f = normed(middle, w.ffn_norm, w.ffn_norm_bias);
    Row up = times(w.w_up, w.b_up, f);
    if (gpt2()) {
      for (double& u : up) {
        u *= 0.5 + 0.5 * std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u));
      }
    } else {
      const Row gate = times(w.w_gate, {}, f);
      for (size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
    return plus(middle, times(w.w_down, w.b_down, up));
  }

  const ModelConfig c_;
  const Weights& w_;
};

}  // namespace kvmark
