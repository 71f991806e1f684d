// One request with the openai package for Node.
const OpenAI = require("openai");
const { ask, say, refused, left } = require("./say.cjs");

async function main() {
  const client = new OpenAI({
    baseURL: ask.url + "/v1", apiKey: "none", maxRetries: ask.retries, timeout: ask.timeout * 1000,
    defaultHeaders: { "x-request-id": ask.request_id },
  });
  const answer = await client.chat.completions.create(ask.body);
  if (!ask.stream) {
    const { message } = answer.choices[0];
    return say({ text: message.content ?? "", calls: message.tool_calls?.map((c) => c.function), usage: answer.usage });
  }
  let usage = null, events = 0;
  for await (const chunk of answer) {
    usage = chunk.usage ?? usage;
    for (const { delta } of chunk.choices) {
      if (delta.tool_calls) say({ calls: delta.tool_calls.map((c) => c.function) });
      if (delta.content) { say({ event: delta.content }); events += 1; }
    }
    if (events === ask.leave_after) { answer.controller.abort(); return left(); }
  }
  return say({ usage });
}

main().catch((error) => {
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) throw error;
  refused(error, error.error ?? {});
});
