// Which instruction set the hot loops use, decided at run time so that one wheel serves every CPU.
#pragma once

#include <string_view>

namespace fedsel {

enum class Level { plain, avx2, avx512 };

bool supported(Level level);
Level best_level();

// Throws std::invalid_argument for an unknown name or a level this CPU lacks; "auto" gives the best one.
Level level_from(std::string_view name);
std::string_view name_of(Level level);

}  // namespace fedsel
