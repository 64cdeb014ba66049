// Vercel's AI SDK against a live server, whose address is in BASE_URL.
import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, streamText } from "ai";

const url = process.env.BASE_URL;
const model = createOpenAI({ baseURL: url, apiKey: "any" }).responses("smollm2-135m");
const brief = { model, maxRetries: 0, maxOutputTokens: 6 };

/** What the server has stored under a path. */
async function stored(path) {
  const answer = await fetch(`${url}/${path}`);
  return { status: answer.status, body: await answer.json() };
}

/** The text of a stored response, or of a listed item. */
const text = (holder) => (holder.output ?? [holder]).flatMap((item) => item.content.map((part) => part.text)).join("");

const options = (openai) => ({ providerOptions: { openai } });

test("a text is what is stored", async () => {
  const result = await generateText({ ...brief, instructions: "Be kind.", prompt: "Good morning!" });
  const { body } = await stored(`responses/${result.response.id}`);
  assert.ok(result.text);
  assert.equal(text(body), result.text);
  assert.equal(result.providerMetadata.openai.responseId, body.id);
  assert.equal(result.usage.inputTokens, body.usage.input_tokens);
  assert.equal(result.usage.outputTokens, body.usage.output_tokens);
  assert.equal(result.finishReason, body.status === "completed" ? "stop" : "length");
  const listed = (await stored(`responses/${body.id}/input_items?order=asc`)).body.data;
  assert.deepEqual(listed.map((item) => [item.role, text(item)]), [["system", "Be kind."], ["user", "Good morning!"]]);
});

test("a stream is what is stored", async () => {
  const result = streamText({ ...brief, prompt: "What is the capital of France?" });
  const deltas = [];
  for await (const delta of result.textStream) deltas.push(delta);
  const { id } = await result.response;
  const { body } = await stored(`responses/${id}`);
  assert.ok(text(body));
  assert.equal(deltas.join(""), await result.text);
  assert.equal(text(body), deltas.join(""));
  assert.equal((await result.usage).totalTokens, body.usage.total_tokens);
  assert.equal(await result.finishReason, body.status === "completed" ? "stop" : "length");
});

test("a stream comes bit by bit", async () => {
  const deltas = [];
  const { textStream } = streamText({ ...brief, prompt: "[[slow: 0.05]] [[say: one two three]]" });
  for await (const delta of textStream) deltas.push(delta);
  assert.deepEqual(deltas, ["one", " two", " three"]);
});

for (const streamed of [false, true]) {
  /** One turn, streamed or not: its text and the response's id. */
  const turn = async (request) => {
    const result = streamed ? streamText({ ...brief, ...request }) : await generateText({ ...brief, ...request });
    return { text: await result.text, id: (await result.response).id, messages: await result.responseMessages };
  };
  const how = streamed ? ", streaming" : "";

  test(`turns are chained by previousResponseId${how}`, async () => {
    const first = await turn({ prompt: "My name is Ada." });
    const second = await turn({ prompt: "I like sums.", ...options({ previousResponseId: first.id }) });
    const { body } = await stored(`responses/${second.id}`);
    assert.equal(body.previous_response_id, first.id);
    const listed = (await stored(`responses/${second.id}/input_items?order=asc`)).body.data;
    assert.deepEqual(listed.map(text), ["My name is Ada.", first.text, "I like sums."]);
  });

  test(`turns go into a conversation${how}`, async () => {
    const { id } = await (await fetch(`${url}/conversations`, { method: "POST" })).json();
    const first = await turn({ prompt: "one", ...options({ conversation: id }) });
    const second = await turn({ prompt: "two", ...options({ conversation: id }) });
    const listed = (await stored(`conversations/${id}/items?order=asc`)).body.data;
    assert.deepEqual(listed.map(text), ["one", first.text, "two", second.text]);
  });

  test(`a history is replayed whole${how}`, async () => {
    const first = await turn({ prompt: "My name is Ada.", ...options({ store: false }) });
    const said = { role: "user", content: "My name is Ada." };
    const messages = [said, ...first.messages, { role: "user", content: "I like sums." }];
    const second = await turn({ messages, ...options({ store: false }) });
    assert.ok(second.text);
    assert.equal((await stored(`responses/${second.id}`)).status, 404);
  });

  test(`a history is replayed by references${how}`, async () => {
    const first = await turn({ prompt: "My name is Ada." });
    const said = { role: "user", content: "My name is Ada." };
    const messages = [said, ...first.messages, { role: "user", content: "[[show-prompt]]" }];
    const second = await turn({ messages, maxOutputTokens: undefined });
    assert.match(second.text, /You said: My name is Ada\./);
    const listed = (await stored(`responses/${second.id}/input_items?order=asc`)).body.data;
    const [answer] = (await stored(`responses/${first.id}`)).body.output;
    assert.equal(listed[1].id, answer.id);
  });

  test(`the model sees the chain${how}`, async () => {
    const first = await turn({ prompt: "My name is Ada." });
    const request = { prompt: "[[show-prompt]]", maxOutputTokens: undefined };
    const prompt = (await turn({ ...request, ...options({ previousResponseId: first.id }) })).text;
    assert.match(prompt, /My name is Ada\.[^]*You said: My name is Ada\.[^]*show-prompt/);
  });

  test(`an answer that is cut says so${how}`, async () => {
    const request = { ...brief, prompt: "Count to a hundred, please.", maxOutputTokens: 3 };
    const result = streamed ? streamText(request) : await generateText(request);
    assert.equal(await result.finishReason, "length");
    assert.equal((await result.usage).outputTokens, 3);
  });

  test(`errors are the SDK's own${how}`, async () => {
    const failure = async (request) => {
      let seen;
      try {
        if (!streamed) await generateText({ ...brief, prompt: "x", ...request });
        const result = streamText({ ...brief, prompt: "x", ...request, onError: ({ error }) => (seen = error) });
        await result.consumeStream();
      } catch (error) {
        seen = error;
      }
      assert.ok(APICallError.isInstance(seen), String(seen));
      assert.equal(seen.isRetryable, false);
      return [seen.statusCode, seen.data.error.code, seen.data.error.param];
    };
    const unknown = createOpenAI({ baseURL: url, apiKey: "any" }).responses("no-such-model");
    assert.deepEqual(await failure({ model: unknown }), [404, "model_not_found", "model"]);
    assert.deepEqual(await failure(options({ previousResponseId: "resp_unknown" })), [
      400,
      "previous_response_not_found",
      "previous_response_id",
    ]);
    assert.deepEqual(await failure(options({ conversation: "conv_unknown" })), [404, "not_found", "conversation"]);
  });
}

test("an engine's fault ends a stream with an error", async () => {
  const errors = [];
  const request = { ...brief, prompt: "[[fail: It is broken.]]", onError: ({ error }) => errors.push(error) };
  await streamText(request).consumeStream();
  assert.equal(errors.length, 1);
  assert.match(JSON.stringify(errors[0]) + String(errors[0].message), /It is broken\./);
});
