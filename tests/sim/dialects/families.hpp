#pragma once
// The makers of the single dialects; only make_dialect() needs them.

#include <memory>

#include "tests/sim/dialects/dialect.hpp"

namespace sim::dialects {

std::unique_ptr<Dialect> make_openai(Ask ask);  // chat, completions
std::unique_ptr<Dialect> make_responses(Ask ask);
std::unique_ptr<Dialect> make_anthropic(Ask ask);
std::unique_ptr<Dialect> make_tgi(Ask ask);
std::unique_ptr<Dialect> make_ollama(Ask ask);
std::unique_ptr<Dialect> make_llamacpp(Ask ask);
std::unique_ptr<Dialect> make_triton(Ask ask);
std::unique_ptr<Dialect> make_reading(Ask ask);  // embeddings, rerank

}  // namespace sim::dialects
