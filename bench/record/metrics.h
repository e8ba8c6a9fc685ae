// The table of everything that a record holds. The record's schema and check, the CSV's columns,
// comparison and docs/metrics.md are derived from it; nothing else lists the fields.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvmark {

enum class RecordFieldType {
  text,
  integer,
  number,
  boolean,
  summary,   // the object S of stats.h
  interval,  // [low, high]
  texts,     // list of strings
  numbers,   // list of numbers
  integers,  // list of whole numbers
  objects,   // list of objects
  object     // an object whose keys are not fixed
};

// identity: which run and case. setting: what was asked. environment: where it ran. detail: lists
// behind the figures. metric: a figure that can be compared.
enum class FieldRole { identity, setting, environment, detail, metric };

enum class Better { none, smaller, bigger };

// exact: the same in every run of one build and case. noisy: a measurement.
enum class Certainty { exact, noisy };

// Whether a comparison decides by a metric. shown: never. gated: always. time: by the first of
// these that a row has, so that one time decides for each row.
enum class Gate { shown, gated, time };

struct RecordField {
  std::string_view path;  // dotted: "latency.ttft_ms"
  RecordFieldType type;
  FieldRole role;
  std::string_view title;  // short, for a column
  std::string_view unit;   // "ms", "bytes", "tokens/s"; "" where a figure has none
  Better better;
  Certainty certainty;
  std::string_view definition;  // one sentence, and when it is null
  std::string_view values;      // text: the values allowed, "a|b"; "": any
  bool nullable = true;
  Gate gate = Gate::shown;
  double threshold = 0;  // relative change beyond which a gated metric counts; 0: any counts
  double floor = 0;      // absolute change that must be exceeded too, in the field's unit
};

// Every field, in the order of the record.
std::span<const RecordField> record_fields();

// The field of a path, or null.
const RecordField* find_record_field(std::string_view path);

// The parts of a summary, in order: n, mean, ….
std::span<const std::string_view> summary_parts();

// The metrics in Markdown, a line each: path, unit, direction, certainty, what a comparison decides
// by, and definition.
std::string metrics_markdown();

}  // namespace kvmark
