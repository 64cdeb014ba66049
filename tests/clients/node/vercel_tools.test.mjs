// Vercel's AI SDK with tools and reasoning against a live server, whose address is in BASE_URL.
import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

const url = process.env.BASE_URL;
const model = createOpenAI({ baseURL: url, apiKey: "any" }).responses("smollm2-135m");
const brief = { model, maxRetries: 0, maxOutputTokens: 2000 };
const FIND = '[[call: find {"city": "Paris"}]]';
const options = (openai) => ({ providerOptions: { openai } });

/** Two tools, the first of which makes the model call the second, and the list of what they were called with. */
function tools() {
  const called = [];
  const make = (name, inputSchema, output) =>
    tool({ inputSchema, execute: async (input) => (called.push([name, input]), output) });
  const find = make("find", z.object({ city: z.string() }), '[[say: Let me add.]][[call: add {"left": 2, "right": 40}]]');
  const add = make("add", z.object({ left: z.number().int(), right: z.number().int() }), "[[say: It is 42.]]");
  return { called, tools: { find, add } };
}

for (const store of [true, false]) {
  for (const streamed of [false, true]) {
    const how = `${streamed ? ", streaming" : ""}${store ? "" : ", without storing"}`;
    const run = async (request) => {
      const whole = { ...brief, ...options({ store }), stopWhen: isStepCount(5), ...request };
      const result = streamed ? streamText(whole) : await generateText(whole);
      if (streamed) await result.consumeStream();
      return { text: await result.text, steps: await result.steps, result };
    };

    test(`three steps with two tools${how}`, async () => {
      const { called, tools: two } = tools();
      const { text, steps } = await run({ tools: two, prompt: `[[think: First I look.]]${FIND}` });
      assert.deepEqual(called, [["find", { city: "Paris" }], ["add", { left: 2, right: 40 }]]);
      assert.equal(text, "It is 42.");
      assert.deepEqual(steps.map((step) => step.finishReason), ["tool-calls", "tool-calls", "stop"]);
      assert.equal(steps[0].usage.outputTokenDetails.reasoningTokens > 0, true);
    });

    test(`parallel calls${how}`, async () => {
      const { called, tools: two } = tools();
      const { steps } = await run({ tools: two, prompt: `${FIND}${FIND}`, stopWhen: isStepCount(1) });
      assert.equal(called.length, 2);
      assert.equal(new Set(steps[0].toolCalls.map((call) => call.toolCallId)).size, 2);
    });

    test(`a call that must be${how}`, async () => {
      const { called, tools: two } = tools();
      const toolChoice = { type: "tool", toolName: "add" };
      await run({ tools: two, toolChoice, prompt: "[[say: No.]]", stopWhen: isStepCount(1) });
      assert.equal(called.length, 1);
      assert.equal(called[0][0], "add");
      assert.equal(typeof called[0][1].left, "number");
    });

    test(`structured output at the end of a loop${how}`, async () => {
      const { tools: two } = tools();
      const output = Output.object({ schema: z.object({ answer: z.string(), sure: z.boolean() }) });
      const { result } = await run({ tools: two, output, prompt: FIND });
      assert.equal(typeof (await result.output).answer, "string");
    });
  }
}
