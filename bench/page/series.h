// The lists of a record, thinned out for a picture.
#pragma once

#include <nlohmann/json.hpp>

namespace kvmark {

// Six significant digits: more than a picture shows, and a third of the bytes.
nlohmann::ordered_json thinned(double value);

// {"tokens", "seconds"}: the time since the start against the tokens of a sequence, 64 points at
// most, with equal steps on a logarithmic axis. Null where the record has no gaps between tokens.
nlohmann::ordered_json cumulative_series(const nlohmann::ordered_json& record);

// The 0th, 1st, … 100th percentile of the gaps between tokens, ms; null where there are none.
nlohmann::ordered_json gap_quantiles(const nlohmann::ordered_json& record);

// {"tokens", "live_bytes", "reserved_bytes"} over a round, 128 points at most, the first and the
// last among them. Null where the record has none.
nlohmann::ordered_json memory_series(const nlohmann::ordered_json& record);

}  // namespace kvmark
