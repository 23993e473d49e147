#include <doctest/doctest.h>

#if !defined(_WIN32)

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "federation.hpp"
#include "made_model.hpp"

using namespace fedsel;

namespace {

constexpr std::size_t kOffset = 64;

// A pool's rows in a file, removed at the end.
class RowFile {
 public:
  RowFile(const made::Pool& pool, const LossModel& model) {
    char name[] = "/tmp/fedsel-test-XXXXXX";
    const int file = mkstemp(name);
    REQUIRE(file >= 0);
    path = name;
    std::FILE* stream = fdopen(file, "wb");
    const std::string start(kOffset, '\0');
    std::fwrite(start.data(), 1, kOffset, stream);
    for (std::size_t i = 0; i < pool.clients; ++i)
      std::fwrite(model.row(i), sizeof(std::int32_t), model.stride(), stream);
    std::fclose(stream);
  }
  ~RowFile() { std::remove(path.c_str()); }
  std::string path;
};

LossModel mapped(const made::Pool& pool, const LossModel& model, const std::string& path) {
  auto rows = std::make_shared<const MappedRows>(path, kOffset, pool.clients * model.stride());
  return LossModel(std::move(rows), pool.clients, pool.tables, model.consistent(), {2.0, 0.89, 0.11, -1.33},
                   model.level());
}

}  // namespace

TEST_CASE("a model of mapped rows is that of the rows") {
  for (const auto& pool : {made::consistent_pool(1, 30, 5), made::pool(1, 30, 5)}) {
    const auto model = pool.model();
    const RowFile file(pool, model);
    const auto other = mapped(pool, model, file.path);
    Evaluator ours(model), theirs(other);
    for (const Members& members : {Members{0}, Members{3, 7, 20}, Members{29, 1, 2, 4, 5}})
      CHECK(ours.loss(sum_rows(model, members).data()) == theirs.loss(sum_rows(other, members).data()));
    other.check_rows();
  }
}

TEST_CASE("a file that is cut while it is mapped is an error, not the end of the process") {
  const auto pool = made::consistent_pool(1, 400, 6);
  const auto model = pool.model();
  const RowFile file(pool, model);
  const auto other = mapped(pool, model, file.path);
  REQUIRE(truncate(file.path.c_str(), 4096) == 0);
  std::int64_t sum = 0;
  for (std::size_t c = 0; c < other.cells(); ++c) sum += other.row(399)[c];  // a page that is gone
  CHECK(sum == 0);
  CHECK_THROWS_AS(other.check_rows(), RowsLost);
  // Also where the file has its old size again: what was read in between was not there.
  REQUIRE(truncate(file.path.c_str(), static_cast<off_t>(kOffset + 4 * pool.clients * model.stride())) == 0);
  CHECK_THROWS_AS(other.check_rows(), RowsLost);
}

TEST_CASE("files of another size, and more files than can be watched, are refused") {
  const auto pool = made::consistent_pool(1, 10, 4);
  const auto model = pool.model();
  const RowFile file(pool, model);
  const std::size_t values = pool.clients * model.stride();
  CHECK_THROWS_AS(MappedRows(file.path, kOffset, values + 1), RowsLost);
  CHECK_THROWS_AS(MappedRows(file.path, kOffset, values - 1), RowsLost);
  CHECK_THROWS_AS(MappedRows(file.path, 4, values), RowsLost);
  CHECK_THROWS_AS(MappedRows("/nowhere", kOffset, values), RowsLost);
  std::vector<std::unique_ptr<MappedRows>> open;
  for (int i = 0; i < 64; ++i) open.push_back(std::make_unique<MappedRows>(file.path, kOffset, values));
  CHECK_THROWS_AS(MappedRows(file.path, kOffset, values), RowsLost);
  open.pop_back();
  const MappedRows again(file.path, kOffset, values);
  again.check();
}

#endif
