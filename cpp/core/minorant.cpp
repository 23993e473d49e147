#include "minorant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace fedsel {
namespace {

constexpr double kOthers = 0.6;      // weight of other clients in q, as a share of the choices
constexpr double kOutward = 1e-9;    // by which computed ratios are moved outwards
constexpr double kRounding = 1e-11;  // relative error of sums over cells, generously
constexpr int kMostSteps = 50;

// gamma of the comment in the header, decreasing.
double gamma_of(double u) {
  const double d = u - 1.0;
  if (std::abs(d) < 1e-3) return 0.5 - d / 6.0 + d * d / 12.0 - d * d * d / 20.0;  // the rest is below 1e-13
  if (u <= 0.0) return 1.0;
  if (!(u < 1e300)) return 0.0;
  return (u * std::log(u) - d) / (d * d);
}

// Cells of a problem: one column a client, those that nobody has left out.
struct Columns {
  Members clients;              // fixed, then free
  std::size_t fixed, size = 0;  // number of cells
  std::vector<double> weight;   // of a cell
  std::vector<double> counts;   // clients x cells
  std::vector<double> records;  // of a client

  explicit Columns(const Problem& problem) : clients(problem.fixed()), fixed(clients.size()) {
    clients.insert(clients.end(), problem.free().begin(), problem.free().end());
    const LossModel& model = problem.model();
    const auto& segments = model.layout().segments();
    std::vector<std::size_t> cells;
    for (std::size_t g = 0; g < segments.size(); ++g) {
      const double of_segment = model.loss_of(model.layout().multiples()[g]);
      if (of_segment == 0.0) continue;
      for (std::size_t c = segments[g].begin; c < segments[g].end; ++c)
        if (std::any_of(clients.begin(), clients.end(), [&](std::uint32_t i) { return model.row(i)[c] > 0; })) {
          cells.push_back(c);
          weight.push_back(of_segment);
        }
    }
    size = cells.size();
    counts.reserve(clients.size() * size);
    for (auto client : clients) {
      for (auto c : cells) counts.push_back(model.row(client)[c]);
      records.push_back(model.row(client)[0]);
    }
  }

  const double* column(std::size_t i) const { return counts.data() + i * size; }
};

struct Share {
  double value, count, records;
};

// The largest ratio (base.count + sum count) / (base.records + sum records) of any `choices` of the clients; with sign
// -1 the least. Steps of Dinkelbach's grow until the best choice stays the same.
double extreme_ratio(std::vector<Share>& shares, std::size_t choices, const Share& base, double sign, double ratio) {
  for (int step = 0; step < kMostSteps; ++step) {
    for (auto& share : shares) share.value = sign * (share.count - ratio * share.records);
    if (choices < shares.size())
      std::nth_element(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(choices), shares.end(),
                       [](const Share& a, const Share& b) { return a.value > b.value; });
    double count = base.count, records = base.records;
    for (std::size_t i = 0; i < choices; ++i) {
      count += shares[i].count;
      records += shares[i].records;
    }
    const double next = count / records;
    if (!(sign * (next - ratio) > 1e-13 * ratio)) return next;
    ratio = next;
  }
  return sign > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;  // never seen; still a bound
}

}  // namespace

bool Minorant::applies(const Problem& problem) {
  if (problem.fixed().size() + problem.free().size() > kMaxClients) return false;
  const auto has_records = [&](std::uint32_t client) { return problem.model().row(client)[0] > 0; };
  return problem.model().consistent() && std::all_of(problem.fixed().begin(), problem.fixed().end(), has_records) &&
         std::all_of(problem.free().begin(), problem.free().end(), has_records);
}

Minorant::Minorant(const Problem& problem, const Members& likely) {
  const Columns columns(problem);
  const std::size_t count = columns.clients.size(), choices = problem.choices(), cells = columns.size;

  // q: the fixed and the likely members, and a little of everyone else.
  std::vector<double> part(count, 1.0);
  std::size_t sure = 0;
  for (std::size_t i = columns.fixed; i < count; ++i) {
    const bool is_likely = std::find(likely.begin(), likely.end(), columns.clients[i]) != likely.end();
    sure += is_likely;
    if (!is_likely) part[i] = 0.0;
  }
  const double missing = choices > sure ? static_cast<double>(choices - sure) : 0.0;
  const double others = std::max(missing, kOthers * static_cast<double>(choices)) + 1e-3;
  for (double& p : part)
    if (p == 0.0) p = others / static_cast<double>(count - columns.fixed - sure);
  std::vector<double> q(cells, 0.0);
  double all = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t c = 0; c < cells; ++c) q[c] += part[i] * columns.column(i)[c];
    all += part[i] * columns.records[i];
  }
  for (double& share : q) share /= all;

  // Weights of (u - 1)^2, in bits.
  std::vector<double> curvature(cells), logs(cells);
  std::vector<Share> shares(count - columns.fixed);
  for (std::size_t c = 0; c < cells; ++c) {
    Share base{0.0, 0.0, 0.0};
    for (std::size_t i = 0; i < columns.fixed; ++i) {
      base.count += columns.column(i)[c];
      base.records += columns.records[i];
    }
    for (std::size_t i = columns.fixed; i < count; ++i)
      shares[i - columns.fixed] = {0.0, columns.column(i)[c], columns.records[i]};
    const double sign = columns.weight[c] > 0.0 ? 1.0 : -1.0;
    const double ratio = extreme_ratio(shares, choices, base, sign, q[c]) / q[c] * (1.0 + sign * kOutward);
    curvature[c] = columns.weight[c] * q[c] * gamma_of(ratio) / std::numbers::ln2;
    logs[c] = columns.weight[c] * std::log2(q[c]);
  }

  // s_i = sum_x c_x x_i log2 q, and K_ij / 2 = sum_x curvature (x_i / q - n_i) (x_j / q - n_j).
  const std::size_t clients = problem.model().clients();
  std::vector<double> records(clients, 1.0), scores(clients, 0.0), couplings(clients * clients, 0.0);
  std::vector<double> differences(count * cells), weighted(cells);
  double linear = 0.0, quadratic = 0.0, farthest = -1.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double* column = columns.column(i);
    double score = 0.0, size = 0.0, distance = 0.0;
    for (std::size_t c = 0; c < cells; ++c) {
      const double difference = column[c] / q[c] - columns.records[i];
      differences[i * cells + c] = difference;
      score += logs[c] * column[c];
      size += std::abs(logs[c]) * column[c];
      distance += std::abs(curvature[c]) * difference * difference;
    }
    records[columns.clients[i]] = columns.records[i];
    scores[columns.clients[i]] = score;
    linear = std::max(linear, size / columns.records[i]);
    quadratic = std::max(quadratic, distance / (columns.records[i] * columns.records[i]));
    if (i >= columns.fixed && distance > farthest) {
      farthest = distance;
      farthest_ = columns.clients[i];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double* own = differences.data() + i * cells;
    for (std::size_t c = 0; c < cells; ++c) weighted[c] = 2.0 * curvature[c] * own[c];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* other = differences.data() + j * cells;
      double sums[8] = {};
      std::size_t c = 0;
      for (; c + 8 <= cells; c += 8)
        for (std::size_t l = 0; l < 8; ++l) sums[l] += weighted[c + l] * other[c + l];
      double sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
      for (; c < cells; ++c) sum += weighted[c] * other[c];
      couplings[columns.clients[i] * clients + columns.clients[j]] = sum;
      couplings[columns.clients[j] * clients + columns.clients[i]] = sum;
    }
  }
  // The form is a mean of couplings per record, none larger than the largest diagonal one (Cauchy and Schwarz).
  allowance_ = kRounding * (linear + quadratic + 1.0);
  model_ = QuadraticModel(std::move(records), std::move(scores), std::move(couplings));
}

}  // namespace fedsel
