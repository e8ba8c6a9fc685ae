#include "bench/run/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "bench/plan/document.h"
#include "bench/plan/thresholds.h"
#include "bench/record/environment.h"
#include "bench/record/record.h"
#include "bench/record/whole_file.h"
#include "engines/core/check.h"

namespace kvmark {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// 20260131T123456Z
std::string stamp() {
  std::string text = utc_now();
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '-' || c == ':'; }),
             text.end());
  return text;
}

// What no folder can be called, or no record could hold: before anything is made.
void check_folder_name(const std::string& path) {
  // Files with names as long as this lie in the folder.
  constexpr size_t kFileBytes = 64;
  if (!is_utf8(path)) {
    throw UsageError(fmt::format("-o {}: not UTF-8 text; choose another name",
                                 Json(path).dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  size_t longest = 0;
  for (const fs::path& part : fs::path(path)) longest = std::max(longest, part.native().size());
  if (longest > NAME_MAX || path.size() + kFileBytes > PATH_MAX) {
    throw UsageError(
        fmt::format("-o {}: too long; expected names of {} bytes at most and {} bytes "
                    "altogether",
                    path, NAME_MAX, PATH_MAX - kFileBytes));
  }
}

void check_no_folder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return;
  throw UsageError(fmt::format("{}: is a folder; a run writes a file of that name", path));
}

// Of an earlier start: which cases have ended.
void read_rows(RunFolder& folder) {
  if (!fs::exists(folder.records_path())) return;
  RecordFile file = read_records(folder.records_path());
  if (file.torn) folder.warning = *file.torn + ": the last row is not whole; its case runs again";
  for (const Json& row : latest_rows(std::move(file.records))) {
    if (row.at("status") != "failed") folder.ended.insert(row.at("case_id").get<std::string>());
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!fs::is_directory(path)) {
    throw UsageError(fmt::format("-o {}: cannot make this folder: {}", path,
                                 error ? error.message() : "something else has that name"));
  }
}

// plan.json of an earlier start; empty where there is none. Throws UsageError for one that cannot
// be read: what was to be run, and what counts as worse, stands in it.
Json read_plan(const std::string& plan_path) {
  if (!fs::exists(plan_path)) return Json::object();
  check_no_folder(plan_path);
  std::ifstream file(plan_path);
  Json plan = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (plan.is_object()) return plan;
  throw UsageError(fmt::format("{}: is no JSON object; repair or remove it", plan_path));
}

// The folder of RUN on a command line.
fs::path folder_of(const std::string& run) {
  std::error_code error;
  return fs::is_directory(run, error) ? fs::path(run) : fs::path(run).parent_path();
}

std::string run_id_in(const Json& plan) {
  const auto it = plan.find("run_id");
  return it != plan.end() && it->is_string() ? it->get<std::string>() : "";
}

Json list_at(const Json& plan, const char* key) {
  const auto it = plan.find(key);
  return it != plan.end() && it->is_array() ? *it : Json::array();
}

// `first`, then what of `more` is not in it.
Json united(Json first, const Json& more) {
  const std::set<Json> known(first.begin(), first.end());
  for (const Json& item : more) {
    if (known.count(item) == 0) first.push_back(item);
  }
  return first;
}

constexpr std::string_view kReferenceStart = "reference.", kTemporaryEnd = ".tmp";

// A run that was killed could not remove its reference, hundreds of megabytes with a scored text.
void remove_stale_references(const std::string& folder) {
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kReferenceStart) && name.ends_with(kTemporaryEnd)) {
      stale.push_back(entry.path());
    }
  }
  for (const fs::path& path : stale) fs::remove(path);
}

// The file of records that RUN means.
std::string records_path_of(const std::string& run) {
  std::error_code error;
  if (fs::is_directory(run, error)) {
    const std::string path = run + "/records.jsonl";
    if (fs::exists(path)) return path;
    throw UsageError(fmt::format("{}: no run in this folder (records.jsonl is missing)", run));
  }
  if (fs::exists(run, error)) return run;
  throw UsageError(fmt::format("{}: no such run; expected its folder or a file of records", run));
}

}  // namespace

RunFolder open_run_folder(const std::string& path, const std::string& name, bool resume,
                          const Planned& planned) {
  check_folder_name(path);
  RunFolder folder;
  folder.path = path;
  const std::string plan_path = path + "/plan.json";
  const bool has_run = fs::exists(plan_path) || fs::exists(folder.records_path());
  if (has_run && !resume) {
    throw UsageError(fmt::format(
        "-o {}: there is a run in this folder; continue it with --resume, or choose another",
        path));
  }
  for (const char* name : {"/plan.json", "/records.jsonl", "/workers.log", "/report.html"}) {
    check_no_folder(path + name);
  }
  read_rows(folder);
  make_folder(path);
  remove_stale_references(path);
  const Json earlier = read_plan(plan_path);
  folder.run_id = run_id_in(earlier);
  if (folder.run_id.empty()) folder.run_id = fmt::format("{}-{}-{}", name, stamp(), getpid());
  const Json plan = {{"run_id", folder.run_id},
                     {"plans", united(list_at(earlier, "plans"), planned.plans)},
                     {"case_ids", united(planned.case_ids, list_at(earlier, "case_ids"))}};
  write_whole(plan_path, plan.dump(2) + "\n");
  return folder;
}

std::string reference_path(const std::string& folder) {
  return fmt::format("{}/{}{}{}", folder, kReferenceStart, getpid(), kTemporaryEnd);
}

std::string default_run_folder(const std::string& name) {
  return fmt::format("results/{}-{}", name, stamp());
}

std::vector<Json> latest_rows(std::vector<Json> records) {
  std::vector<Json> rows;
  std::map<std::string, size_t> row_of;
  for (Json& record : records) {
    const std::string id = record.value("case_id", "");
    const auto [it, is_new] = row_of.emplace(id, rows.size());
    if (is_new) {
      rows.push_back(std::move(record));
    } else {
      rows[it->second] = std::move(record);
    }
  }
  return rows;
}

RunRows read_run(const std::string& run) {
  const std::string path = records_path_of(run);
  RecordFile file = read_records(path);
  if (file.records.empty()) {
    throw UsageError(fmt::format("{}: holds no record of {}", path, kRecordSchema));
  }
  RunRows found{latest_rows(std::move(file.records)), std::move(file.torn)};
  const Json plan = read_plan((folder_of(run) / "plan.json").string());
  if (!plan.empty()) found.plan = plan;
  std::map<std::string, size_t> place;
  for (const Json& id : list_at(plan, "case_ids")) {
    if (!id.is_string()) continue;
    place.emplace(id.get<std::string>(), place.size());
    found.planned.insert(id.get<std::string>());
  }
  const auto place_of = [&](const Json& row) {
    const auto it = place.find(row.at("case_id").get<std::string>());
    return it == place.end() ? place.size() : it->second;
  };
  std::stable_sort(found.rows.begin(), found.rows.end(),
                   [&](const Json& a, const Json& b) { return place_of(a) < place_of(b); });
  return found;
}

bool is_same_run(const std::string& one, const std::string& other) {
  return fs::equivalent(records_path_of(one), records_path_of(other));
}

std::map<std::string, double> thresholds_of(const std::string& run) {
  std::map<std::string, double> thresholds;
  const std::string path = (folder_of(run) / "plan.json").string();
  const Json plan = read_plan(path);
  for (const Json& one : list_at(plan, "plans")) {
    const auto set = one.find("thresholds");
    if (set == one.end() || !set->is_object()) continue;
    for (const auto& [metric, value] : set->items()) {
      if (!value.is_number() || !(value >= 0 && value <= kLargestThreshold)) {
        throw UsageError(fmt::format("{}: thresholds: {}: expected a number from 0 to {}", path,
                                     metric, kLargestThreshold));
      }
      thresholds[metric] = value.get<double>();
    }
  }
  try {
    return by_path(thresholds);
  } catch (const UsageError& e) {  // written by another version, or by hand
    throw UsageError(fmt::format("{}: thresholds: {}", path, e.what()));
  }
}

}  // namespace kvmark
