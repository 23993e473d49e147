#include "dispatch.hpp"

#include <stdexcept>
#include <string>

namespace fedsel {

bool supported(Level level) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  switch (level) {
    case Level::plain:
      return true;
    case Level::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Level::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  }
  return false;
#else
  return level == Level::plain;
#endif
}

Level best_level() {
  if (supported(Level::avx512)) return Level::avx512;
  if (supported(Level::avx2)) return Level::avx2;
  return Level::plain;
}

Level level_from(std::string_view name) {
  if (name == "auto") return best_level();
  for (Level level : {Level::plain, Level::avx2, Level::avx512})
    if (name == name_of(level)) {
      if (!supported(level)) throw std::invalid_argument("this CPU does not support level " + std::string(name));
      return level;
    }
  throw std::invalid_argument("level must be auto, plain, avx2 or avx512, got " + std::string(name));
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::plain:
      return "plain";
    case Level::avx2:
      return "avx2";
    case Level::avx512:
      return "avx512";
  }
  return "plain";
}

}  // namespace fedsel
