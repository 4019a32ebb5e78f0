/** How the image of a container comes to its node. */
import { backoffAfter } from './faults.ts';
import type { LivePod, Surroundings } from './surroundings.ts';

/** An attempt that fails does so soon, in milliseconds at most. */
const refusedMs = 1_000;

/** Resolves when the node has the image; one that does not exist is asked for again and again. */
export async function pullImage(live: LivePod, around: Surroundings, container: string, image: string): Promise<void> {
  const { images, pace, exists } = around;
  const key = `${live.node} ${image}`;
  if (images.has(key)) {
    live.told(container, 'Pulled', `Container image "${image}" already present on machine`);
    return;
  }
  for (let attempts = 1; ; attempts++) {
    live.told(container, 'Pulling', `Pulling image "${image}"`);
    if (exists(image)) break;
    await live.pause(Math.min(pace.pullMs, refusedMs));
    const why = `rpc error: code = NotFound desc = failed to pull and unpack image "${image}": not found`;
    live.told(container, 'Failed', `Failed to pull image "${image}": ${why}`, 'Warning');
    live.told(container, 'Failed', 'Error: ErrImagePull', 'Warning');
    live.say(container, { waiting: { reason: 'ErrImagePull', message: why } });
    await live.pause(Math.min(pace.backoffMs, refusedMs));
    const message = `Back-off pulling image "${image}"`;
    live.told(container, 'BackOff', message);
    live.told(container, 'Failed', 'Error: ImagePullBackOff', 'Warning');
    live.say(container, { waiting: { reason: 'ImagePullBackOff', message: `${message}: ErrImagePull: ${why}` } });
    await live.pause(backoffAfter(attempts, pace.backoffMs));
  }
  await live.pause(pace.pullMs);
  images.add(key);
  const took = `${pace.pullMs / 1000}s`;
  const size = 'Image size: 9843127711 bytes.';
  live.told(
    container,
    'Pulled',
    `Successfully pulled image "${image}" in ${took} (${took} including waiting). ${size}`,
  );
}
