#include <doctest/doctest.h>

#include <stdexcept>

#include "dispatch.hpp"

using namespace fedsel;

TEST_CASE("levels have names, and unknown ones are refused") {
  CHECK(level_from("plain") == Level::plain);
  CHECK(level_from("auto") == best_level());
  CHECK_THROWS_WITH_AS(level_from("sse9"), "level must be auto, plain, avx2 or avx512, got sse9",
                       std::invalid_argument);
  CHECK(supported(Level::plain));
  for (Level level : {Level::avx2, Level::avx512})
    if (!supported(level)) CHECK_THROWS_AS(level_from(name_of(level)), std::invalid_argument);
}
