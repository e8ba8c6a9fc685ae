// Is the engine's output right, and how good is what it stored?
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/run/workload.h"

namespace kvmark {

// Are the outputs of this layer checked in a step that sees `visible` positions? All near the
// start; where reading every layer back would take minutes, every n-th, others at the next
// position. Rows as stored are checked in all layers.
bool checks_outputs(int layer, int layers, int visible);

// *Correct*: the engine's outputs against attention in double over the rows that the engine itself
// stored, read back; and those rows against the rows that were fed, within what the format
// promises. The first finds a kernel that reads, masks or sums wrongly, however lossy the format;
// the second an encoder and decoder that are wrong together.
class Oracle : public StepObserver {
 public:
  explicit Oracle(Workload& workload);

  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override;

  // The worst relative RMS error of a checked row, and the worst |stored − fed| of a row over the
  // row's largest value, in units of the format's bound (> 1: broken).
  double rel_rms() const { return rel_rms_; }
  double stored_error() const { return stored_error_; }
  int64_t rows_checked() const { return rows_checked_; }
  bool passed() const;
  // The record's accuracy.correct.
  nlohmann::ordered_json to_json() const;

 private:
  void read_rows(int layer, const Piece& piece, int first, int rows);
  void check_stored(int position, const float* k, const float* v);
  void check_output(const float* q, int position, const float* out);
  std::vector<int> heads_to_check(int visible) const;

  Workload& workload_;
  const KvSpec spec_;
  std::vector<float> k_, v_;  // stored rows of one sequence and layer, the first at first_
  int first_ = 0;
  double rel_rms_ = 0;
  double stored_error_ = 0;
  int64_t rows_checked_ = 0;
};

// Attention outputs of the sampled steps, to be compared between engines.
class OutputCollector : public StepObserver {
 public:
  // Outputs of rows before position `from` (chunks of a prompt) are left out.
  explicit OutputCollector(int from) : from_(from) {}
  void attended(int layer, Outputs outputs, std::span<const Piece> pieces, Tensor q, Tensor k,
                Tensor v, Tensor out) override;
  const std::vector<float>& values() const { return values_; }

 private:
  int from_;
  std::vector<float> values_;
};

// What the uncompressed engine computed, on disk between the reference worker and the others.
struct Reference {
  std::vector<float> outputs;  // as OutputCollector gathers them
  std::vector<float> logits;   // (score.positions, vocab), empty where nothing is scored
  // Throws RuntimeError naming the path.
  void write(const std::string& path) const;
  static Reference read(const std::string& path);
};

// The reference of a group, computed with `workload` (contiguous/f32).
Reference make_reference(Workload& workload);

// Verifies the case: short depths (up to 33), then its own. `reference` null: no loss. Returns the
// "digest", "correct" and "loss" of the protocol's `verified`.
nlohmann::ordered_json verify(Workload& workload, const Reference* reference);
// The same of a case without scoring that is the group's reference itself: `made` gets what the
// others are compared with, and the loss is against that.
nlohmann::ordered_json verify_reference(Workload& workload, Reference& made);

}  // namespace kvmark
