#include "shm/tenant_id.h"

#include <doctest/doctest.h>

#include <string>

using namespace fingerpost;

TEST_CASE("a tenant id is 1 to 255 bytes of UTF-8 without control characters") {
  CHECK_FALSE(why_not_tenant_id("acme"));
  CHECK_FALSE(why_not_tenant_id(" acme "));
  CHECK_FALSE(why_not_tenant_id("größe-東京-🚀"));
  CHECK_FALSE(why_not_tenant_id(std::string(255, 'x')));
  CHECK(why_not_tenant_id("") == "is empty");
  CHECK(why_not_tenant_id(std::string(256, 'x')) == "is longer than 255 bytes");
  CHECK(why_not_tenant_id(std::string_view("ab\0", 3)) == "holds a control character");
  CHECK(why_not_tenant_id("a\nb") == "holds a control character");
  CHECK(why_not_tenant_id("\x7f") == "holds a control character");
}

TEST_CASE("ill-formed UTF-8 is refused in every form") {
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\xAF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\x9D", "\xF0\x9F\x9A", "a\xFF"}) {
    CHECK(why_not_tenant_id(bad) == "is not valid UTF-8");
  }
}

TEST_CASE("reserved prefixes are no tenants, and name buckets and parts only in canonical form") {
  CHECK(why_not_tenant_id("bucket:1"));
  CHECK(why_not_tenant_id("part:0:acme"));
  CHECK_FALSE(why_not_entry_id("bucket:1234"));
  CHECK(bucket_of_entry_id("bucket:0") == 0U);
  CHECK(bucket_of_entry_id("bucket:4294967295") == 4'294'967'295U);
  for (const char* bad : {"bucket:", "bucket:01", "bucket:+1", "bucket:-1", "bucket:1 ",
                          "bucket:4294967296", "bucket:x"}) {
    CHECK(why_not_entry_id(bad));
    CHECK_FALSE(bucket_of_entry_id(bad));
  }
  const auto part = part_of_entry_id("part:7:a:b");
  REQUIRE(part);
  CHECK(part->part == 7);
  CHECK(part->tenant == "a:b");
  for (const char* bad :
       {"part:", "part:1", "part:1:", "part:1024:a", "part:01:a", "part:1:bucket:2"}) {
    CHECK(why_not_entry_id(bad));
  }
}

TEST_CASE("every byte is judged alike at every position of an id") {
  for (std::size_t length : {1U, 7U, 8U, 9U, 16U, 36U}) {
    for (std::size_t at = 0; at < length; ++at) {
      for (int byte = 0; byte < 0x80; ++byte) {
        std::string id(length, 'x');
        id[at] = static_cast<char>(byte);
        const bool control = byte < 0x20 || byte == 0x7F;
        CHECK(why_not_tenant_id(id).has_value() == control);
      }
      std::string cut(length, 'x');
      cut[at] = '\xE6';
      CHECK(why_not_tenant_id(cut) == "is not valid UTF-8");
    }
  }
}
