#include "bench/doctor/doctor.h"

#include <iostream>
#include <memory>

#include "bench/commands/commands.h"

namespace kvmark {

Command add_doctor(CLI::App& kvmark) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* doctor = kvmark.add_subcommand(
      "doctor", "Is this machine fit to measure on, and how fast can it be; changes nothing");
  doctor->add_flag("--json", *json, "The same as JSON");
  return {doctor, [json] {
            const Diagnosis diagnosis = diagnose(std::cerr);
            if (!*json) return print(to_text(diagnosis));
            // A name that the system gives need not be UTF-8.
            constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
            return print(to_json(diagnosis).dump(2, ' ', false, kReplace) + "\n");
          }};
}

}  // namespace kvmark
