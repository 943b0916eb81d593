// fingerpost tenant pin|unpin|pins
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_pins.h"

namespace fingerpost {
namespace {

void print_pin(const Context& context, const std::string& id, const Pin& pin) {
  if (context.json) {
    print_json({{"id", id},
                {"region", text_or_null(pin.region)},
                {"reason", text_or_null(pin.reason)},
                {"who", pin.who},
                {"at", pin.at}});
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\n", id, pin.region, pin.reason, pin.who, pin.at);
}

void register_pin(CLI::App& tenant, Context& context) {
  struct Flags {
    std::string id;
    std::string region;
    std::string reason;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* pin = add_directory_verb(
      tenant, "pin",
      "Keep a tenant where it is: nothing moves it by itself, no bucket's move takes it along, and "
      "with --region create and move mark keep it there",
      "fingerpost tenant pin acme --region eu --reason 'contract 1234'", context);
  pin->add_option("ID", flags->id, "The tenant")->required();
  pin->add_option("--region", flags->region, "Where it, and every part of it, must stay")
      ->type_name("REGION");
  pin->add_option("--reason", flags->reason, "For whoever wonders later")->type_name("TEXT");
  pin->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) {
      return answer_version(context,
                            pin_tenant(directory, flags->id, flags->region, flags->reason));
    });
  });
}

}  // namespace

void register_pin_verbs(CLI::App& tenant, Context& context) {
  register_pin(tenant, context);

  auto id = std::make_shared<std::string>();
  CLI::App* unpin = add_directory_verb(tenant, "unpin", "Take a tenant's pin away",
                                       "fingerpost tenant unpin acme", context);
  unpin->add_option("ID", *id, "The tenant")->required();
  unpin->callback([id, &context] {
    run_directory_verb(context, [&](Directory& directory) {
      return answer_version(context, unpin_tenant(directory, *id));
    });
  });

  CLI::App* pins =
      add_directory_verb(tenant, "pins", "List the pinned tenants: id, region, reason, who, when",
                         "fingerpost tenant pins --json", context);
  pins->callback([&context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      visit_pins(directory, [&](const std::string& pinned, const Pin& pin) {
        print_pin(context, pinned, pin);
      });
      return {};
    });
  });
}

}  // namespace fingerpost
