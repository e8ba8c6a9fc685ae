// The backend's dense products.
#include <fmt/format.h>

#include <algorithm>

#include "bench/micro/benchmarks.h"
#include "bench/record/clock.h"
#include "engines/cpu/cpu_backend.h"

namespace kvmark {
namespace {

// (rows, inputs) · (outputs, inputs)ᵀ, by as many matrices as are asked for.
struct ProductShape {
  WeightType type;
  int rows, inputs, outputs;

  int64_t weight_bytes() const { return int64_t{outputs} * inputs * kvmark::weight_bytes(type); }
  double flop() const { return 2.0 * rows * inputs * outputs; }
};

class Products {
 public:
  Products(const ProductShape& shape, int64_t matrices, ThreadPool& pool)
      : backend_(make_cpu_backend(pool)),
        x_(backend_->alloc(shape.rows, shape.inputs)),
        y_(backend_->alloc(shape.rows, shape.outputs)) {
    const std::vector<float> values = normal_values(std::max<int64_t>(x_.size(), shape.inputs));
    std::copy_n(values.begin(), x_.size(), x_.data);
    const auto source = [&](int, float* row) { std::copy_n(values.begin(), shape.inputs, row); };
    for (int64_t i = 0; i < matrices; ++i) {
      weights_.push_back(backend_->load(shape.outputs, shape.inputs, shape.type, source));
    }
  }

  int64_t weight_bytes() const { return backend_->weight_bytes_held(); }

  // One product by each matrix in turn; the seconds of all.
  double run() {
    const int64_t start = now_ns();
    for (const Weight& weight : weights_) backend_->matmul(x_, weight, nullptr, y_);
    return 1e-9 * static_cast<double>(now_ns() - start);
  }

 private:
  std::unique_ptr<Backend> backend_;
  Tensor x_, y_;
  std::vector<Weight> weights_;
};

constexpr std::pair<const char*, WeightType> kTypes[] = {
    {"f32", WeightType::f32}, {"f16", WeightType::f16}, {"bf16", WeightType::bf16}};

void register_gemv(Lab& lab, Machine& machine, const char* type, const ProductShape& shape) {
  const int64_t bytes = shape.weight_bytes();
  const int64_t matrices = (machine.working_set_bytes() + bytes - 1) / bytes;
  lab.add(
      fmt::format("gemv/{}/{}x{}/t{}", type, shape.outputs, shape.inputs, machine.threads()),
      [=, &machine] { return std::make_unique<Products>(shape, matrices, machine.pool()); },
      [&machine](benchmark::State& state, Products& products) {
        time_reads(state, machine.ceiling(), products.weight_bytes(),
                   [&] { return products.run(); });
      });
}

// A pass is some 2 GFLOP, by matrices in turn as in the layers of a model.
void register_gemm(Lab& lab, Machine& machine, const char* type, const ProductShape& shape) {
  const auto matrices = static_cast<int64_t>(std::max(1.0, 2e9 / shape.flop()));
  lab.add(
      fmt::format("gemm/{}/{}x{}x{}/t{}", type, shape.rows, shape.inputs, shape.outputs,
                  machine.threads()),
      [=, &machine] { return std::make_unique<Products>(shape, matrices, machine.pool()); },
      [=, &machine](benchmark::State& state, Products& products) {
        time_flops(state, machine.pool(), static_cast<double>(matrices) * shape.flop(),
                   [&] { return products.run(); });
      });
}

}  // namespace

void register_dense_benchmarks(Lab& lab) {
  for (const auto& machine : lab.machines()) {
    for (const auto& [name, type] : kTypes) {
      // SmolLM2-135M, GPT-2, and what larger models have; (outputs, inputs).
      for (const auto& [outputs, inputs] :
           {std::pair{576, 576}, {3072, 768}, {2048, 2048}, {4096, 11008}, {8192, 8192}}) {
        register_gemv(lab, *machine, name, {type, 1, inputs, outputs});
      }
      // The four products of a layer of GPT-2; (inputs, outputs).
      for (const int rows : {64, 256, 512}) {
        for (const auto& [inputs, outputs] :
             {std::pair{768, 768}, {768, 2304}, {768, 3072}, {3072, 768}}) {
          register_gemm(lab, *machine, name, {type, rows, inputs, outputs});
        }
      }
    }
  }
}

}  // namespace kvmark
