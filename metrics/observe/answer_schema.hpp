#pragma once
// The members of an inference server's JSON that anybody here ever looks at, whatever the API.

#include "metrics/observe/json_schema.hpp"

namespace noren::metrics {

/// Of an answer: a whole JSON document, or one event of a stream.
const JsonSchema& answer_schema();

/// Of a request body.
const JsonSchema& request_schema();

}  // namespace noren::metrics
