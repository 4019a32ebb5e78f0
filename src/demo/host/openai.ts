import type { Clock } from './clock.ts';
import type { ServerEvent } from './reply.ts';

/** One chat completion, as OpenAI shapes it. */
export interface Completion {
  readonly clock: Clock;
  /** As the answer names it. */
  readonly model: string;
  readonly words: readonly string[];
  readonly promptWords: number;
  /** Between two words. */
  readonly tokenMs: number;
}

export async function chatCompletion(completion: Completion, signal: AbortSignal): Promise<object> {
  const { clock, words, promptWords, tokenMs } = completion;
  await clock.sleep(tokenMs * words.length, signal);
  return {
    ...head(completion, 'chat.completion'),
    choices: [
      { index: 0, message: { role: 'assistant', content: words.join('') }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: {
      prompt_tokens: promptWords,
      completion_tokens: words.length,
      total_tokens: promptWords + words.length,
    },
  };
}

export async function* chatChunks(completion: Completion, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const { clock, words, tokenMs } = completion;
  const chunk = (delta: object, finish: string | null = null) => ({
    data: JSON.stringify({
      ...head(completion, 'chat.completion.chunk'),
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    }),
  });
  for (const content of words) {
    await clock.sleep(tokenMs, signal);
    yield chunk({ role: 'assistant', content });
  }
  yield chunk({}, 'stop');
  yield { data: '[DONE]' };
}

const head = ({ clock, model }: Completion, object: string) => ({
  id: 'chatcmpl-emulated',
  object,
  created: Math.floor(clock.now() / 1000),
  model,
});

export const embeddingList = (model: string, vectors: readonly (readonly number[])[], promptWords: number) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ object: 'embedding', embedding, index })),
  model,
  usage: { prompt_tokens: promptWords, total_tokens: promptWords },
});

/** What a conversation says, as one text. */
export function promptOf(messages: unknown): string {
  if (!Array.isArray(messages)) return '';
  return messages.map(message => (typeof message?.content === 'string' ? message.content : '')).join('\n');
}
