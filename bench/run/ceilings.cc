#include "bench/run/ceilings.h"

#include "bench/machine/fma_rate.h"

namespace kvmark {

Ceilings::Ceilings(const Case& c, const Prediction& predicted, ThreadPool& pool)
    : pool_(pool),
      computes_(c.engine.layout == LayoutKind::recompute && c.gen_len > 1 && !c.counted()) {
  if (predicted.ceiling_bytes == 0) return;
  read_.emplace(pool, predicted.ceiling_bytes);
  if (predicted.ceiling_page_bytes == 0) return;
  pages_.emplace(pool, predicted.ceiling_bytes, predicted.ceiling_page_bytes);
}

nlohmann::ordered_json Ceilings::measure() {
  nlohmann::ordered_json rates = {
      {"read_gb_per_s", nullptr}, {"page_read_gb_per_s", nullptr}, {"fma_gflop_per_s", nullptr}};
  if (read_) rates["read_gb_per_s"] = read_->measure();
  if (pages_) rates["page_read_gb_per_s"] = pages_->measure();
  if (computes_) rates["fma_gflop_per_s"] = fma_gflop_per_s(pool_);
  return rates;
}

int64_t Ceilings::bytes() const {
  return (read_ ? read_->bytes() : 0) + (pages_ ? pages_->bytes() : 0);
}

}  // namespace kvmark
