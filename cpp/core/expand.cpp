#include "expand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "parallel.hpp"
#include "polish.hpp"

namespace fedsel {
namespace {

constexpr int kMaxExpansions = 20;   // re-expansion may cycle; it settles or repeats within a few steps
constexpr int kMaxIterations = 100;  // Dinkelbach converges superlinearly
constexpr std::size_t kPromisingPerChoice = 4, kPromising = 64;  // clients a first descent tries
constexpr std::size_t kScoresPerCheck = 64;                      // clients scored between two looks at the clock

// For any reference tables q, I_W(X;Y) = E_W[log2 q_xy / (q_x q_y)] + (a remainder of second order in W - q), so
//
//     loss(W) ~ sum_{i in W} s_i / sum_{i in W} n_i,   s_i = sum of h over the rows of client i,
//
// with h the weighted sum of the tables' pointwise mutual informations. Returns s; cells that q does not hold give 0.
std::vector<double> linear_scores(const LossModel& model, const std::int32_t* reference, Control& control) {
  std::vector<double> h(model.cells(), 0.0);
  std::vector<double> row_sums, column_sums;
  for (std::size_t t = 0; t < model.tables().size(); ++t) {
    const PairTable& table = model.tables()[t];
    const std::int32_t* q = reference + table.offset;
    row_sums.assign(table.rows, 0.0);
    column_sums.assign(table.columns, 0.0);
    double total = 0.0;
    for (std::size_t i = 0; i < table.rows; ++i)
      for (std::size_t j = 0; j < table.columns; ++j) {
        const double cell = std::max(q[i * table.columns + j], 0);
        row_sums[i] += cell;
        column_sums[j] += cell;
        total += cell;
      }
    for (std::size_t i = 0; i < table.rows; ++i)
      for (std::size_t j = 0; j < table.columns; ++j) {
        const double cell = q[i * table.columns + j];
        if (cell > 0)
          h[table.offset + i * table.columns + j] =
              model.table_weights()[t] * std::log2(cell * total / (row_sums[i] * column_sums[j]));
      }
  }
  std::vector<double> scores(model.clients());
  for (std::size_t i = 0; i < model.clients(); ++i) {
    if (i % kScoresPerCheck == 0 && control.stopped()) break;  // the rest keep score 0: any federation will do now
    const std::int32_t* row = model.row(i);
    double parts[kLanes] = {};  // as many sums as there are lanes, so that additions need not wait for one another
    for (std::size_t c = 0; c < model.cells(); c += kLanes)
      for (std::size_t l = 0; l < kLanes; ++l) parts[l] += h[c + l] * row[c + l];
    scores[i] = std::accumulate(parts, parts + kLanes, 0.0);
  }
  return scores;
}

// The free clients that, with the fixed ones, make the smallest sum s / sum n (Dinkelbach 1967): for a given ratio,
// those of smallest s_i - ratio n_i; repeat with their ratio until it stops falling. Constraints are left to the
// repair.
Members smallest_ratio(const std::vector<double>& s, const std::vector<double>& n, const Problem& problem) {
  Members order = problem.free(), best;
  const std::size_t k = problem.choices();
  if (k == 0) return best;
  double fixed_s = 0.0, fixed_n = 0.0;
  for (auto i : problem.fixed()) fixed_s += s[i], fixed_n += n[i];
  double ratio = std::accumulate(s.begin(), s.end(), 0.0) / std::accumulate(n.begin(), n.end(), 0.0);
  for (int iteration = 0; iteration < kMaxIterations; ++iteration) {
    auto before = [&](std::uint32_t a, std::uint32_t b) {
      const double left = s[a] - ratio * n[a], right = s[b] - ratio * n[b];
      return left != right ? left < right : a < b;
    };
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k) - 1, order.end(), before);
    Members pick(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k));
    std::sort(pick.begin(), pick.end());
    if (pick == best) break;
    double sum_s = fixed_s, sum_n = fixed_n;
    for (auto i : pick) sum_s += s[i], sum_n += n[i];
    ratio = sum_s / sum_n;
    best = std::move(pick);
  }
  return best;
}

// The free clients that look best by themselves at this ratio: a descent that tries only them costs little in a large
// pool, and misses little.
Members promising(const std::vector<double>& s, const std::vector<double>& n, double ratio, const Problem& problem) {
  Members clients = problem.free();
  const std::size_t count = kPromisingPerChoice * problem.choices() + kPromising;
  if (count >= clients.size()) return clients;
  std::nth_element(clients.begin(), clients.begin() + static_cast<std::ptrdiff_t>(count), clients.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     const double left = s[a] - ratio * n[a], right = s[b] - ratio * n[b];
                     return left != right ? left < right : a < b;
                   });
  clients.resize(count);
  std::sort(clients.begin(), clients.end());
  return clients;
}

}  // namespace

ExpansionResult expand(const Problem& problem, const ExpansionOptions& options, Control& control) {
  const LossModel& model = problem.model();
  const auto n = model.records();
  const std::size_t starts = options.random_starts + 1;
  std::vector<Leaderboard> boards(starts, Leaderboard(options.keep));

  parallel_for(starts, options.threads, [&](std::size_t start, std::size_t) {
    if (start > 0 && control.stopped()) return;
    Evaluator evaluator(model);
    Philox random(options.seed, start);
    Members reference = problem.fixed();
    if (start > 0)
      reference = problem.random_start(random);
    else
      reference.insert(reference.end(), problem.free().begin(), problem.free().end());

    Candidate best{std::numeric_limits<double>::infinity(), {}};
    std::vector<double> scores;
    std::set<Members> seen;
    for (int expansion = 0; expansion < kMaxExpansions && seen.insert(reference).second; ++expansion) {
      scores = linear_scores(model, sum_rows(model, reference).data(), control);
      reference = problem.start(smallest_ratio(scores, n, problem), random);
      Candidate candidate{evaluator.loss(sum_rows(model, reference).data()), reference};
      control.evaluations.fetch_add(1, std::memory_order_relaxed);
      boards[start].add(candidate.loss, candidate.members);
      if (best.members.empty() || candidate < best) best = std::move(candidate);
      if (control.stopped()) break;
    }
    double sum_s = 0.0, sum_n = 0.0;
    for (auto client : best.members) sum_s += scores[client], sum_n += n[client];
    const SwapDescent descent(problem, promising(scores, n, sum_s / sum_n, problem));
    Federation federation(model, best.members);
    descent.run(federation, best.loss, evaluator, control, boards[start]);
  });

  ExpansionResult result{Leaderboard(options.keep), {}};
  for (const auto& board : boards) result.board.merge(board);
  Evaluator evaluator(model);
  result.certified = descend_best(problem, evaluator, control, result.board);
  return result;
}

}  // namespace fedsel
