// openai-node's own reading of answers and arguments against a live server, whose address is in BASE_URL.
import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "any", maxRetries: 0 });
const model = "smollm2-135m";
const brief = { model, max_output_tokens: 2000 };

const address = z.object({ street: z.string(), number: z.number().int().nullable() });
const node = z.object({
  value: z.number(),
  get children() {
    return z.array(node);
  },
});
const kinds = {
  text: z.object({ text: z.string() }),
  numbers: z.object({ whole: z.number().int(), part: z.number(), yes: z.boolean(), nothing: z.null() }),
  nullable: z.object({ note: z.string().nullable(), count: z.number().nullable() }),
  "optional and nullable": z.object({ note: z.string().nullable().optional() }),
  enumeration: z.object({ colour: z.enum(["red", "blue"]) }),
  literal: z.object({ only: z.literal("this"), many: z.literal([1, 2]) }),
  list: z.object({ tags: z.array(z.string()), pairs: z.array(z.array(z.number())) }),
  nested: z.object({ name: z.string(), address }),
  shared: z.object({ home: address, work: address }),
  "several objects": z.object({ people: z.array(z.object({ name: z.string(), address })) }),
  union: z.object({ value: z.union([z.string(), z.number(), z.array(z.boolean())]) }),
  "discriminated union": z.object({
    pet: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("cat"), lives: z.number() }),
      z.object({ kind: z.literal("dog"), good: z.boolean() }),
    ]),
  }),
  recursive: node,
  bounds: z.object({ age: z.number().int().min(0).max(130), share: z.number().gt(0).lt(1) }),
  multiple: z.object({ dozen: z.number().int().multipleOf(12) }),
  lengths: z.object({ code: z.string().min(2).max(4), few: z.array(z.number()).min(2).max(3) }),
  pattern: z.object({ plate: z.string().regex(/^[A-Z]{1,3}-[0-9]{1,4}$/) }),
  formats: z.object({ day: z.iso.date(), at: z.iso.datetime(), id: z.uuid(), mail: z.email() }),
  described: z.object({ text: z.string().describe("A sentence.") }).describe("An answer."),
  empty: z.object({}),
};

for (const [kind, schema] of Object.entries(kinds)) {
  for (const said of ["", "I have nothing to say.", '{"x": [1, "two"]}']) {
    test(`a format: ${kind}, where the model says ${said || "nothing"}`, async () => {
      const text = { format: zodTextFormat(schema, "answer") };
      const response = await client.responses.parse({ ...brief, input: `[[say: ${said}]]`, text });
      assert.equal(response.status, "completed");
      assert.deepEqual(schema.parse(response.output_parsed), response.output_parsed);
      assert.deepEqual(JSON.parse(response.output_text), response.output_parsed);
    });
  }

  test(`a tool: ${kind}`, async () => {
    const tools = [zodResponsesFunction({ name: "answer", parameters: schema })];
    const call = { ...brief, input: '[[call: answer {"x": [1, "two"]}]]', tools };
    const choice = { ...brief, input: "[[say: No.]]", tools, tool_choice: { type: "function", name: "answer" } };
    for (const request of [call, choice]) {
      const { output } = await client.responses.parse(request);
      const calls = output.filter((item) => item.type === "function_call");
      assert.ok(calls.length);
      for (const made of calls) assert.deepEqual(schema.parse(made.parsed_arguments), made.parsed_arguments);
    }
  });
}

test("a stream is parsed", async () => {
  const text = { format: zodTextFormat(kinds.nested, "answer") };
  const stream = client.responses.stream({ ...brief, input: "[[say: Anna]]", text });
  const deltas = [];
  for await (const event of stream) if (event.type === "response.output_text.delta") deltas.push(event.delta);
  const final = await stream.finalResponse();
  assert.equal(deltas.join(""), final.output_text);
  assert.equal(kinds.nested.parse(final.output_parsed).name, final.output_parsed.name);
});

for (const chained of [false, true]) {
  test(`a loop with two tools, ${chained ? "chained" : "replayed"}`, async () => {
    const tools = ["find", "count"].map((name) => zodResponsesFunction({ name, parameters: kinds.text }));
    const returned = ['[[call: count {"text": "two"}]]', "[[say: It is done.]]"];
    let input = [{ role: "user", content: '[[think: Hm.]][[call: find {"text": "one"}]]' }];
    let previous_response_id;
    const called = [];
    for (;;) {
      const response = await client.responses.parse({ ...brief, input, tools, previous_response_id });
      const calls = response.output.filter((item) => item.type === "function_call");
      if (!calls.length) {
        assert.equal(response.output_text, "It is done.");
        break;
      }
      called.push(...calls.map((call) => [call.name, call.parsed_arguments.text]));
      const outputs = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: returned.shift() }));
      if (chained) previous_response_id = response.id;
      input = chained ? outputs : [...input, ...toResponseInputItems(response.output), ...outputs];
    }
    assert.deepEqual(called, [["find", "one"], ["count", "two"]]);
  });
}
