#include "engines/cpu/cpu_engine_harness.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "engines/attention/attention.h"
#include "engines/catalog/catalog.h"
#include "engines/model/noise.h"

namespace kvmark::testing {
namespace {

enum Side : uint64_t { kQuery = 1, kKey = 2, kValue = 3 };

// Roughly normal values; channel 3 of every head is an outlier, as in real keys.
void fill_row(uint64_t token, int layer, Side side, int dim, int cols, float* row) {
  fill_bell(stream_of({token, side, static_cast<uint64_t>(layer)}), 0, cols, 1.0, row);
  if (side != kKey) return;
  for (int c = 3; c < cols; c += dim) row[c] *= 8;
}

}  // namespace

// Checks a layer's outputs as soon as they stand.
class Harness::Oracle : public StepObserver {
 public:
  explicit Oracle(Harness& harness) : harness_(harness) {}

  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor, Tensor,
                Tensor out) override {
    if (outputs == Outputs::none) return;
    double error = 0, power = 0;
    int fed = 0, row = 0;
    for (const Piece& piece : pieces) {
      read(piece, layer);
      const int wanted = outputs == Outputs::all ? piece.rows : 1;
      for (int i = piece.rows - wanted; i < piece.rows; ++i, ++row) {
        compare(piece.first + i, q.row(fed + i), out.row(row), error, power);
      }
      fed += piece.rows;
    }
    const double relative = power > 0 ? std::sqrt(error / power) : std::sqrt(error);
    harness_.worst_error_ = std::isfinite(relative) ? std::max(harness_.worst_error_, relative)
                                                    : std::numeric_limits<double>::infinity();
  }

 private:
  void read(const Piece& piece, int layer) {
    const KvSpec& spec = harness_.spec();
    const int rows = piece.first + piece.rows;
    k_.resize(static_cast<size_t>(rows * spec.kv_heads * spec.k_dim));
    v_.resize(static_cast<size_t>(rows * spec.kv_heads * spec.v_dim));
    harness_.engine().read(piece.seq, layer, 0, rows, {k_.data(), rows, spec.kv_heads * spec.k_dim},
                           {v_.data(), rows, spec.kv_heads * spec.v_dim});
  }

  void compare(int position, const float* q, const float* out, double& error, double& power) {
    const KvSpec& spec = harness_.spec();
    std::vector<double> query(static_cast<size_t>(spec.k_dim));
    std::vector<double> expected(static_cast<size_t>(spec.v_dim));
    for (int h = 0; h < spec.heads; ++h) {
      const int kv = h / (spec.heads / spec.kv_heads);
      std::copy_n(q + h * spec.k_dim, spec.k_dim, query.begin());
      if (spec.rope) rope_reference(*spec.rope, position, spec.k_dim, query.data());
      attend_reference(query.data(), spec.k_dim, k_.data() + kv * spec.k_dim,
                       spec.kv_heads * spec.k_dim, v_.data() + kv * spec.v_dim,
                       spec.kv_heads * spec.v_dim, spec.v_dim, position + 1, expected.data());
      for (int c = 0; c < spec.v_dim; ++c) {
        const double difference = out[h * spec.v_dim + c] - expected[static_cast<size_t>(c)];
        error += difference * difference;
        power += expected[static_cast<size_t>(c)] * expected[static_cast<size_t>(c)];
      }
    }
  }

  Harness& harness_;
  std::vector<float> k_, v_;
};

KvSpec odd_spec() {
  KvSpec spec;
  spec.layers = 2;
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.k_dim = 40;
  spec.v_dim = 24;
  spec.rope = Rope{.theta = 10000, .dims = 32, .pairing = RopePairing::halves};
  spec.max_seqs = 5;
  spec.max_len = 150;
  spec.max_rows = 600;
  return spec;
}

Tokens tokens(int stream, int first, int count) {
  Tokens list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(),
            static_cast<uint64_t>(stream) * 100000 + static_cast<uint64_t>(first));
  return list;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Harness::Harness(const std::string& engine, const KvSpec& spec, int threads,
                 const CpuEngineOptions& options)
    : pool_(threads), engine_(make_cpu_engine(parse_engine(engine), spec, pool_, options)) {}

SeqId Harness::open() {
  const SeqId seq = engine_->open();
  content_[seq] = {};
  return seq;
}

SeqId Harness::fork(SeqId seq, int length) {
  const SeqId child = engine_->fork(seq, length);
  content_[child] = content_.at(seq);
  content_[child].resize(static_cast<size_t>(length));
  return child;
}

void Harness::close(SeqId seq) {
  engine_->close(seq);
  content_.erase(seq);
}

void Harness::truncate(SeqId seq, int length) {
  const auto refusal = engine_->truncate(seq, length);
  ASSERT_FALSE(refusal) << refusal->reason;
  content_.at(seq).resize(static_cast<size_t>(length));
}

Harness::Fed Harness::begin(const std::vector<Append>& appends) {
  Fed fed;
  for (const auto& [seq, more] : appends) {
    const int first = engine_->next(seq);
    const int rows = engine_->seen(seq) - first + static_cast<int>(more.size());
    fed.pieces.push_back({seq, first, rows});
    fed.rows += rows;
  }
  if (const auto refusal = engine_->begin(fed.pieces)) throw RuntimeError(refusal->reason);
  return fed;
}

void Harness::attend(const std::vector<Append>& appends, const Fed& fed, Outputs outputs,
                     std::vector<std::vector<float>>* results) {
  const KvSpec& s = spec();
  const int wanted = outputs == Outputs::all ? fed.rows : static_cast<int>(appends.size());
  const auto matrix = [](std::vector<float>& memory, int rows, int cols) {
    memory.assign(static_cast<size_t>(rows) * static_cast<size_t>(cols), 0.0f);
    return Tensor{memory.data(), rows, cols};
  };
  std::vector<float> memory[4];
  const Tensor q = matrix(memory[0], fed.rows, s.heads * s.k_dim);
  const Tensor k = matrix(memory[1], fed.rows, s.kv_heads * s.k_dim);
  const Tensor v = matrix(memory[2], fed.rows, s.kv_heads * s.v_dim);
  const Tensor out = matrix(memory[3], wanted, s.heads * s.v_dim);
  if (results) results->assign(appends.size(), {});

  Oracle oracle(*this);
  if (!spoiled_) engine_->set_observer(&oracle);
  for (int layer = 0; layer < s.layers; ++layer) {
    int row = 0;
    for (size_t i = 0; i < appends.size(); ++i) {
      const Tokens all = joined(content_.at(appends[i].seq), appends[i].tokens);
      for (int r = 0; r < fed.pieces[i].rows; ++r, ++row) {
        const uint64_t token = all[static_cast<size_t>(fed.pieces[i].first + r)];
        fill_row(token, layer, kQuery, s.k_dim, q.cols, q.row(row));
        fill_row(token, layer, kKey, s.k_dim, k.cols, k.row(row));
        fill_row(token, layer, kValue, s.v_dim, v.cols, v.row(row));
      }
    }
    if (spoiled_ && layer == s.layers - 1) (spoil_v_ ? v : k).row(fed.rows - 1)[5] = spoil_;
    const std::vector<float> q_before = memory[0];
    engine_->attend(layer, outputs, q, k, v, out);
    EXPECT_TRUE(same_bits(q_before, memory[0])) << "q belongs to the caller";
    if (results == nullptr) continue;
    row = 0;
    for (size_t i = 0; i < appends.size(); ++i) {
      const int fed_outputs = outputs == Outputs::all ? fed.pieces[i].rows : 1;
      const int fresh = outputs == Outputs::all ? static_cast<int>(appends[i].tokens.size()) : 1;
      const float* from = out.row(row + fed_outputs - fresh);
      (*results)[i].insert((*results)[i].end(), from, from + int64_t{fresh} * out.cols);
      row += fed_outputs;
    }
  }
  engine_->set_observer(nullptr);
}

void Harness::commit(const std::vector<Append>& appends) {
  spoiled_ = false;
  engine_->commit();
  for (const auto& [seq, more] : appends) content_[seq] = joined(content_[seq], more);
}

std::vector<std::vector<float>> Harness::step(const std::vector<Append>& appends) {
  std::vector<std::vector<float>> results;
  attend(appends, begin(appends), Outputs::all, &results);
  commit(appends);
  return results;
}

std::vector<std::vector<float>> Harness::step_last(const std::vector<Append>& appends) {
  std::vector<std::vector<float>> results;
  attend(appends, begin(appends), Outputs::last, &results);
  commit(appends);
  return results;
}

void Harness::rolled_back_step(const std::vector<Append>& appends) {
  attend(appends, begin(appends), Outputs::all, nullptr);
  engine_->rollback();
}

void Harness::fill(const std::vector<Append>& appends) {
  attend(appends, begin(appends), Outputs::none, nullptr);
  commit(appends);
}

std::vector<float> Harness::stored(SeqId seq) const {
  const KvSpec& s = spec();
  const int rows = engine_->seen(seq);
  const int k_cols = s.kv_heads * s.k_dim, v_cols = s.kv_heads * s.v_dim;
  const size_t k_size = static_cast<size_t>(rows) * static_cast<size_t>(k_cols);
  const size_t v_size = static_cast<size_t>(rows) * static_cast<size_t>(v_cols);
  std::vector<float> all((k_size + v_size) * static_cast<size_t>(s.layers));
  float* at = all.data();
  for (int layer = 0; layer < s.layers; ++layer) {
    engine_->read(seq, layer, 0, rows, {at, rows, k_cols}, {at + k_size, rows, v_cols});
    at += k_size + v_size;
  }
  return all;
}

std::vector<float> rows_from(const std::vector<float>& all, int first, const KvSpec& spec) {
  const auto layers = static_cast<size_t>(spec.layers);
  const size_t layer_size = all.size() / layers;
  const size_t left_out = static_cast<size_t>(first) * static_cast<size_t>(spec.heads * spec.v_dim);
  std::vector<float> rest;
  for (size_t layer = 0; layer < layers; ++layer) {
    const float* from = all.data() + layer * layer_size;
    rest.insert(rest.end(), from + left_out, from + layer_size);
  }
  return rest;
}

std::vector<float> fresh_outputs(const std::string& engine, const Tokens& all, const KvSpec& spec) {
  Harness fresh(engine, spec);
  return fresh.append(fresh.open(), all);
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) {
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return ::testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog()) {
    if (!entry.refusal) names.push_back(entry.engine.name());
  }
  for (const char* name : {"contiguous/k=f16,v=int8:g32", "paged:48/k=int8:g64,v=int4:g32",
                           "contiguous/f32/grow:2", "contiguous/int4:g32/grow:1.25"}) {
    names.push_back(name);
  }
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace kvmark::testing
