// How a user names a metric: on the command line, in thresholds.
#pragma once

#include <string>
#include <string_view>

#include "bench/record/metrics.h"

namespace kvmark {

// A field, and of a summary one part.
struct MetricName {
  const RecordField* field = nullptr;
  std::string part;  // "" unless the field is a summary

  std::string path() const;  // "latency.itl_ms.p99", "memory.kv_live_bytes"
};

// "latency.itl_ms.p99"; "latency.itl_ms" is its median. Throws UsageError, with the nearest name,
// for what is no metric, and for one that is better neither bigger nor smaller.
MetricName parse_metric(std::string_view name);

}  // namespace kvmark
