/** The gateway as the command line starts it, over the API server of another process. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { buildableKinds } from '../../src/backends/drivers.ts';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { presetNamespace } from '../../src/demo/world/serving.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createLogger } from '../../src/log.ts';
import { answerParent } from '../child.ts';

const delay = monitorEventLoopDelay({ resolution: 1 });

answerParent({
  /** Starts over that API server; answers the port. */
  async start(apiServer: string) {
    const flags = [
      ...['--listen', '127.0.0.1:0', '--discover=false', '--backends', 'kserve'],
      ...['--kserve-discovery-namespace', presetNamespace],
    ];
    const { settings } = parseServe(flags, {}, { buildable: buildableKinds });
    const log = createLogger({ format: 'json', stream: { write: () => true } });
    const { url } = await serve(settings, log, process.env, openServer(apiServer));
    delay.enable();
    return Number(new URL(url).port);
  },
  /** Milliseconds that the event loop was late since it was asked last: the middle, all but one in a hundred, the most. */
  delay() {
    const [median, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map(ns => ns / 1e6);
    delay.reset();
    return { median, p99, max };
  },
});
