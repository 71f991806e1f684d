// One request with the anthropic package for Node.
const Anthropic = require("@anthropic-ai/sdk");
const { ask, say, refused, left } = require("./say.cjs");

// The usage in the names of the other API, so that node.py knows one.
const counts = (usage) => ({ prompt_tokens: usage.input_tokens, completion_tokens: usage.output_tokens });
const calls = (content) => content.filter((block) => block.type === "tool_use")
  .map(({ name, input }) => ({ name, arguments: JSON.stringify(input) }));

async function main() {
  const client = new Anthropic({
    baseURL: ask.url, apiKey: "none", maxRetries: ask.retries, timeout: ask.timeout * 1000,
    defaultHeaders: { "x-request-id": ask.request_id },
  });
  if (!ask.stream) {
    const message = await client.messages.create(ask.body);
    const text = message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    return say({ text, calls: calls(message.content), usage: counts(message.usage) });
  }
  const { stream: _, ...body } = ask.body;
  const stream = client.messages.stream(body);
  let events = 0;
  for await (const event of stream) {
    if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
      say({ event: event.delta.text });
      events += 1;
    }
    if (events === ask.leave_after) { stream.abort(); return left(); }
  }
  const message = await stream.finalMessage();
  return say({ calls: calls(message.content), usage: counts(message.usage) });
}

main().catch((error) => {
  if (!(error instanceof Anthropic.APIError) || error.status === undefined) throw error;
  refused(error, error.error?.error ?? {});
});
